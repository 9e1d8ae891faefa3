"""Immutable, content-named files: written whole and durably or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

from hippogpu.disk import failures_of, make_own_folder, new_file, write_all

_BUFFER_BYTES = 1 << 20


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


def write_pieces(folder: Path, role: str, shape: tuple[int, ...], dtype: str, pieces: Iterable[NDArray[Any]]) -> Entry:
    """As write_array, for an array of that shape that comes in pieces of rows, of which one is held at a time."""
    expected = np.dtype(dtype)

    def write(file: Any) -> None:
        head = {"descr": npy.dtype_to_descr(expected), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(file, head)
        rows = 0
        for piece in pieces:
            if piece.dtype != expected or piece.shape[1:] != shape[1:]:
                raise ValueError(f"a piece of '{role}' is {piece.dtype}{piece.shape}, not rows of {dtype}{shape}")
            rows += len(piece)
            if piece.size:
                file.write(np.ascontiguousarray(piece))
        if rows != shape[0]:
            raise ValueError(f"the pieces of '{role}' have {rows} rows, not {shape[0]}")

    name, size, digest = _write_named(folder, role, ".npy", write)
    return Entry(name, size, digest, expected.str, shape)


def write_table(folder: Path, role: str, columns: pa.Table) -> Entry:
    """Stores columns as an Arrow IPC file and says what it is."""

    def write(file: Any) -> None:
        with pa.ipc.new_file(file, columns.schema) as writer:
            writer.write_table(columns)

    name, size, digest = _write_named(folder, role, ".arrow", write)
    return Entry(name, size, digest, "arrow", (columns.num_rows,))


class _Hashing:
    """A binary file that hashes what passes through it, and hands it on in large pieces."""

    def __init__(self, handle: int) -> None:
        self._handle, self._held = handle, bytearray()
        self.size = 0
        self.digest = hashlib.sha256()
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self.size += len(view)
        if len(self._held) + len(view) > _BUFFER_BYTES:
            self.hand_on()
        if len(view) > _BUFFER_BYTES:
            write_all(self._handle, view)
        else:
            self._held += view
        return len(view)

    def hand_on(self) -> None:
        """Writes what is held back."""
        held, self._held = self._held, bytearray()
        write_all(self._handle, memoryview(held))

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing: hand_on is called once, at the end."""

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
    with failures_of(folder / f"{role}{ending}"):
        make_own_folder(folder)
        with new_file(folder / f".{role}.{os.getpid()}.tmp") as (handle, temporary):
            hashing = _Hashing(handle)
            write(hashing)
            hashing.hand_on()
            os.fsync(handle)
            digest = hashing.digest.hexdigest()
            name = f"{role}-{digest[:16]}{ending}"
            os.replace(temporary, folder / name)
    return name, hashing.size, digest
