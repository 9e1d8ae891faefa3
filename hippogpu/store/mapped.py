"""Files of an index, memory-mapped: refused when they are not what their manifest says."""

from __future__ import annotations

import errno
import hashlib
import math
import mmap
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError
from hippogpu.store.files import Entry

_BLOCK = 1 << 20
_NPY_START = 10  # the magic string, two bytes of version, two of the header's length
_NPY_ALIGNMENT = 64  # where NumPy lets the numbers of a file begin; compiled code takes no others
_MOST_ROWS = 1 << 40


def read_array(folder: Path, entry: Entry) -> NDArray[Any]:
    """The array of an entry, memory-mapped read-only; IndexDamagedError when it is not what the entry says.

    The header is compared with the one expected, not evaluated. entry.dtype must be a type that the caller chose.
    """
    path, dtype = folder / entry.file, np.dtype(entry.dtype)
    with opened(folder, entry) as file:
        offset = _data_offset(path, file, entry)
        if offset + math.prod(entry.shape) * dtype.itemsize != entry.bytes or max(entry.shape, default=0) > _MOST_ROWS:
            raise damaged(path, f"{entry.bytes} bytes are not those of {entry.dtype}{entry.shape}")
        if 0 in entry.shape:
            return np.empty(entry.shape, dtype)
        return np.frombuffer(_map(file), dtype, offset=offset).reshape(entry.shape)


def _data_offset(path: Path, file: BinaryIO, entry: Entry) -> int:
    """Where the numbers of an .npy file begin, after a look at its header."""
    start = file.read(_NPY_START)
    header = file.read(int.from_bytes(start[-2:], "little"))
    offset = _NPY_START + len(header)
    expected = f"{{'descr': '{entry.dtype}', 'fortran_order': False, 'shape': {entry.shape}, }}"
    begins = start[:-2] == npy.magic(1, 0) and offset % _NPY_ALIGNMENT == 0
    if not begins or header.strip() != expected.encode("ascii"):
        raise damaged(path, f"it does not begin as an array of {entry.dtype}{entry.shape} does")
    return offset


def mapped(folder: Path, entry: Entry) -> memoryview:
    """The bytes of an entry's file, read-only; none is read before it is used."""
    with opened(folder, entry) as file:
        return memoryview(_map(file) if entry.bytes else b"")


def _map(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def opened(folder: Path, entry: Entry) -> BinaryIO:
    """The file of an entry, open for reading, after a look at presence, kind and size; IndexDamagedError for others.

    Links are not followed and nothing is waited for, be it a pipe.
    """
    path = folder / entry.file
    if folder.is_symlink():
        raise damaged(path, f"'{folder}' is a link, no folder")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise damaged(path, _unopened(error)) from error
    state = os.fstat(handle)
    if stat.S_ISREG(state.st_mode) and state.st_size == entry.bytes:
        return os.fdopen(handle, "rb", buffering=0)
    os.close(handle)
    if not stat.S_ISREG(state.st_mode):
        raise damaged(path, "it is no plain file")
    raise damaged(path, f"it has {state.st_size} bytes, not {entry.bytes}")


def _unopened(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "it is missing"
    if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
        return "it is no plain file"
    return f"it cannot be opened ({error.strerror})"


def damaged(path: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"The index file '{path}' is damaged: {what}. Restore it from a copy, or remove the index folder's CURRENT "
        "file and index the corpus again (finished extractions are kept)."
    )


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as file:
        return sha256_in(file)


def sha256_in(file: BinaryIO) -> str:
    """The SHA-256 of what follows in an open file, as 64 hex digits."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
