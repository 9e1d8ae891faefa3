"""The columns of an index table, memory-mapped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.store.arrow_layout import Malformed, layout_of
from hippogpu.store.files import Entry
from hippogpu.store.mapped import damaged, mapped
from hippogpu.text_columns import TextColumn as TextColumn

_NUMBERS: Mapping[pa.DataType, Any] = {pa.int32(): np.int32, pa.float32(): np.float32, pa.float64(): np.float64}
# Whole texts are UTF-8; bytes are texts that may hold half a character (a lone surrogate).
_DECODING: Mapping[pa.DataType, str] = {pa.large_string(): "strict", pa.large_binary(): "surrogatepass"}


class Columns(NamedTuple):
    """The columns of a table by name: texts, and numbers (rows,) or, for lists of one length, (rows, w)."""

    texts: Mapping[str, TextColumn]
    numbers: Mapping[str, NDArray[Any]]


def read_table(folder: Path, entry: Entry, schema: pa.Schema) -> Columns:
    """The columns of an entry; IndexDamagedError when they are not those of the schema and entry.

    No text is read: only where each begins and ends.
    """
    columns, rows = read_columns(folder / entry.file, mapped(folder, entry), schema)
    if (rows,) != entry.shape:
        raise damaged(folder / entry.file, f"it holds {rows} rows, not {', '.join(map(str, entry.shape))}")
    return columns


def read_columns(path: Path, file: memoryview, schema: pa.Schema) -> tuple[Columns, int]:
    """The columns in the bytes of a file, and how many rows each has; IndexDamagedError, naming the path."""
    try:
        layout = layout_of(file, schema)
        texts, numbers = {}, {}
        for field in schema:
            views = layout.buffers[field.name]
            if field.type in _DECODING:
                starts = _starts(views[1], layout.rows, len(views[2]))
                texts[field.name] = TextColumn(
                    starts, views[2], refuse=partial(damaged, path), errors=_DECODING[field.type]
                )
            else:
                numbers[field.name] = _column(views[-1], layout.rows, field.type)
    except Malformed as error:
        raise damaged(path, f"it is no table of {', '.join(schema.names)}: {error}") from error
    return Columns(texts, numbers), layout.rows


def _column(view: memoryview, rows: int, dtype: pa.DataType) -> NDArray[Any]:
    if pa.types.is_fixed_size_list(dtype):
        flat = _values(view, rows * dtype.list_size, _NUMBERS[dtype.value_type])
        return flat.reshape(rows, dtype.list_size)
    return _values(view, rows, _NUMBERS[dtype])


def _starts(view: memoryview, rows: int, letters: int) -> NDArray[np.int64]:
    if not rows:
        return np.zeros(1, np.int64)
    starts: NDArray[np.int64] = _values(view, rows + 1, np.int64)
    if starts[0] < 0 or starts[-1] > letters or not np.all(starts[:-1] <= starts[1:]):
        raise Malformed("the places of its texts do not ascend inside it")
    return starts


def _values(view: memoryview, count: int, dtype: Any) -> NDArray[Any]:
    """So many numbers from the beginning of a buffer; Malformed where it is shorter."""
    if count * np.dtype(dtype).itemsize > len(view):
        raise Malformed(f"a buffer of {len(view)} bytes is too short for {count} numbers")
    return np.frombuffer(view, dtype, count) if count else np.empty(0, dtype)
