"""python -m hippogpu is the command hippogpu."""

from hippogpu.cli import main

main()
