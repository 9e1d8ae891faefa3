"""Arrays that wait in a file without a name: nothing of it is left, whatever happens."""

from __future__ import annotations

import io
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hippogpu.disk import failures_of


class Spooled(NamedTuple):
    """Where an array lies in a spool."""

    start: int
    dtype: np.dtype[Any]
    rows: int


class Spool:
    """Arrays of one axis, in memory up to most_bytes and in a file of the folder beyond, or in memory all of them."""

    def __init__(self, folder: Path | None, *, most_bytes: int) -> None:
        self._folder = folder
        # A limit of 0 is none.
        most, place = (0, None) if folder is None else (max(most_bytes, 1), str(folder))
        self._file = SpooledTemporaryFile(max_size=most, dir=place)  # noqa: SIM115  (closed by __exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def put(self, array: NDArray[Any]) -> Spooled:
        with self._failures():
            start = self._file.seek(0, io.SEEK_END)
            self._file.write(np.ascontiguousarray(array).view(np.uint8).data)
        return Spooled(start, array.dtype, len(array))

    def get(self, spooled: Spooled) -> NDArray[Any]:
        size = spooled.rows * spooled.dtype.itemsize
        with self._failures():
            self._file.seek(spooled.start)
            data = self._file.read(size)
        return np.frombuffer(data, spooled.dtype)

    def _failures(self) -> Any:
        return failures_of(self._folder or Path())
