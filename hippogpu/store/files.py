"""Immutable, content-named files: written whole and durably or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray


class Entry(NamedTuple):
    """A file as its manifest names it: rows is the number of rows of a table, None for an array."""

    file: str
    bytes: int
    sha256: str
    dtype: str
    shape: tuple[int, ...]


def write_array(folder: Path, role: str, array: NDArray[Any]) -> Entry:
    """Stores an array as .npy and says what it is."""
    array = np.ascontiguousarray(array)

    def write(file: Any) -> None:
        npy.write_array(file, array, allow_pickle=False)

    name, size, digest = _write_named(folder, role, ".npy", write)
    return Entry(name, size, digest, array.dtype.str, array.shape)


def write_table(folder: Path, role: str, columns: pa.Table) -> Entry:
    """Stores columns as an Arrow IPC file and says what it is."""

    def write(file: Any) -> None:
        with pa.ipc.new_file(file, columns.schema) as writer:
            writer.write_table(columns)

    name, size, digest = _write_named(folder, role, ".arrow", write)
    return Entry(name, size, digest, "arrow", (columns.num_rows,))


def write_atomically(path: Path, data: bytes) -> None:
    """Puts the bytes at the path: the old content or the new one is there at any moment, durably after the return."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def read_plain(path: Path, *, most_bytes: int) -> bytes:
    """The content of a small plain file; OSError for a link (ELOOP), anything else that is none, or too much.

    Nothing is read, and nothing waited for, before kind and size are known.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        if state.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {state.st_size} bytes, over {most_bytes}", str(path))
        with open(handle, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Hashing:
    """A binary file that hashes what passes through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self._file.write(view)
        return len(view)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def _write_named(folder: Path, role: str, ending: str, write: Callable[[Any], None]) -> tuple[str, int, str]:
    """Writes a file under <role>-<first 16 hex of its sha256><ending>; name, size and full sha256."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{role}.{os.getpid()}.tmp"
    try:
        with temporary.open("wb") as file:
            hashing = _Hashing(file)
            write(hashing)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        digest = hashing.digest.hexdigest()
        name = f"{role}-{digest[:16]}{ending}"
        temporary.replace(folder / name)
    finally:
        temporary.unlink(missing_ok=True)
    return name, size, digest
