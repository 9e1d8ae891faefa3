"""A verb that tells in a file which stage it is in: python -m bench.scale.staged FILE VERB..."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hippogpu.cli import main as run_verb
from hippogpu.index.stages import Stages


def telling(file: Path) -> None:
    """From now on each stage of a commit is written into the file, with the time, as it begins."""
    inner = Stages.__call__

    @contextmanager
    def told(self: Stages, name: str) -> Iterator[None]:
        file.write_text(f"{name} {time.monotonic()}", encoding="ascii")
        with inner(self, name):
            yield

    Stages.__call__ = told  # type: ignore[method-assign]


if __name__ == "__main__":
    telling(Path(sys.argv[1]))
    sys.argv = ["hippogpu", *sys.argv[2:]]
    run_verb()
