"""python -m bench.oracle PATH, the same as python -m bench oracle PATH."""

from __future__ import annotations

import typer

from bench.oracle.command import oracle

if __name__ == "__main__":
    typer.run(oracle)
