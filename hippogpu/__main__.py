"""The command hippogpu, and python -m hippogpu."""

from __future__ import annotations

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Runs a verb. While the program itself is being loaded, an interruption is one line and an exit code too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    from hippogpu.cli import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"error: Interrupted before anything was begun.\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
