"""Files of an index, memory-mapped: refused when they are not what their manifest says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError
from hippogpu.store.files import Entry

_BLOCK = 1 << 20
_NPY_START = 10  # the magic string, two bytes of version, two of the header's length


def read_array(folder: Path, entry: Entry) -> NDArray[Any]:
    """The array of an entry, memory-mapped read-only; IndexDamagedError when it is not what the entry says.

    The header is compared with the one expected, not evaluated. entry.dtype must be a type that the caller chose.
    """
    path = checked_path(folder, entry)
    dtype = np.dtype(entry.dtype)
    offset = _data_offset(path, entry)
    if offset + math.prod(entry.shape) * dtype.itemsize != entry.bytes:
        raise damaged(path, f"{entry.bytes} bytes are not those of {entry.dtype}{entry.shape}")
    if 0 in entry.shape:
        return np.empty(entry.shape, dtype)
    return np.memmap(path, dtype, "r", offset, entry.shape)


def _data_offset(path: Path, entry: Entry) -> int:
    """Where the numbers of an .npy file begin, after a look at its header."""
    with path.open("rb") as file:
        start = file.read(_NPY_START)
        header = file.read(int.from_bytes(start[-2:], "little"))
    expected = f"{{'descr': '{entry.dtype}', 'fortran_order': False, 'shape': {entry.shape}, }}"
    if start[:-2] != npy.magic(1, 0) or header.strip() != expected.encode("ascii"):
        raise damaged(path, f"it does not begin as an array of {entry.dtype}{entry.shape} does")
    return _NPY_START + len(header)


def read_table(folder: Path, entry: Entry, schema: pa.Schema) -> pa.Table:
    """The columns of an entry, memory-mapped; IndexDamagedError when they are not those of the schema and entry."""
    path = checked_path(folder, entry)
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, f"it is no table ({error})") from error
    if not table.schema.equals(schema):
        raise damaged(path, f"its columns are not {', '.join(schema.names)}, or of other types")
    if (table.num_rows,) != entry.shape:
        raise damaged(path, f"it holds {table.num_rows} rows, not {entry.shape[0]}")
    if any(column.null_count for column in table.columns):
        raise damaged(path, "it holds missing values")
    return table


def checked_path(folder: Path, entry: Entry) -> Path:
    """The path of an entry, after a look at its presence, kind and size."""
    path = folder / entry.file
    if path.is_symlink() or not path.is_file():
        raise damaged(path, "it is missing" if not path.exists() else "it is no plain file")
    size = path.stat().st_size
    if size != entry.bytes:
        raise damaged(path, f"it has {size} bytes, not {entry.bytes}")
    return path


def damaged(path: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"The index file '{path}' is damaged: {what}. Restore it from a copy, or remove the index folder's CURRENT "
        "file and index the corpus again (finished extractions are kept)."
    )


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, as 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class TextColumn(Sequence[str]):
    """The texts of an Arrow column, read from its mapping one at a time."""

    __slots__ = ("_column",)

    def __init__(self, column: pa.ChunkedArray[Any]) -> None:
        self._column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return self._column[i].to_pylist()
        return self._column[int(i)].as_py()

    def __iter__(self) -> Any:
        for start in range(0, len(self), 65536):
            yield from self._column.slice(start, 65536).to_pylist()
