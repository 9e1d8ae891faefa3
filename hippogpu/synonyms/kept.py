"""Files of unfinished work: whole and with their digest, or not at all; and room on disk for what is large."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.disk import allocate, failures_of, replace_atomically

_HEAD = struct.Struct("<32sqq")
# Less is held in memory.
_LEAST_MAPPED_BYTES = 1 << 20


class Kept(NamedTuple):
    """Two numbers that the writer gave, and the bytes, mapped."""

    first: int
    second: int
    body: NDArray[np.uint8]


def keep(path: Path, first: int, second: int, columns: Sequence[NDArray[Any]]) -> None:
    """Writes two numbers and the bytes of the columns, one behind the other."""
    views = [np.ascontiguousarray(column).reshape(-1).view(np.uint8).data for column in columns if column.size]
    digest = hashlib.sha256(struct.pack("<qq", first, second))
    for view in views:
        digest.update(view)
    with failures_of(path):
        replace_atomically(path, [_HEAD.pack(digest.digest(), first, second), *map(bytes, views)])


def kept(path: Path) -> Kept | None:
    """What was kept there, None where there is nothing that is whole."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return None
            wanted, first, second = _HEAD.unpack(head)
            digest = hashlib.sha256(head[32:])
            while block := file.read(1 << 20):
                digest.update(block)
            if digest.digest() != wanted:
                return None
        return Kept(first, second, mapped_body(path))
    except OSError:
        return None


def mapped_body(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file that kept has looked at, or that keep wrote."""
    if path.stat().st_size == _HEAD.size:
        return np.empty(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, "r", _HEAD.size))


def room(shape: tuple[int, ...], kind: Any, folder: Path | None, name: str) -> NDArray[Any]:
    """An array to be filled: in memory, or, where it is large, over a file of the folder with what it held before."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if folder is None or size < _LEAST_MAPPED_BYTES:
        return np.empty(shape, kind)
    path = folder / name
    allocate(path, size, anew=False)
    with failures_of(path):
        return np.asarray(np.memmap(path, kind, "r+", shape=shape))
