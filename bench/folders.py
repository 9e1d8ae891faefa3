"""Where a bench keeps what it makes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def work_folder(work: Path | None) -> Iterator[Path]:
    """The folder of --work, made when it is missing; without one, a folder that is gone afterwards."""
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
        yield work
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
