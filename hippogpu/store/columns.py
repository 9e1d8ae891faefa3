"""The columns of an index table, memory-mapped: texts are decoded one at a time, as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.store.arrow_layout import Malformed, layout_of
from hippogpu.store.files import Entry
from hippogpu.store.mapped import damaged, mapped

_BLOCK_TEXTS = 65536
_NUMBERS: Mapping[pa.DataType, Any] = {pa.int32(): np.int32, pa.float32(): np.float32, pa.float64(): np.float64}
# Whole texts are UTF-8; bytes are texts that may hold half a character (a lone surrogate).
_DECODING: Mapping[pa.DataType, str] = {pa.large_string(): "strict", pa.large_binary(): "surrogatepass"}


class TextColumn(Sequence[str]):
    """Texts read from a mapping; IndexDamagedError, naming the file, for one that is no UTF-8.

    starts : (rows + 1) int64, ascending inside the letters: where each text begins and the one before it ends
    """

    __slots__ = ("_errors", "_letters", "_path", "_starts")

    def __init__(self, path: Path, starts: NDArray[np.int64], letters: memoryview, errors: str) -> None:
        self._path, self._starts, self._letters, self._errors = path, starts, letters, errors

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        at = range(len(self))[i]
        return self._text(int(self._starts[at]), int(self._starts[at + 1]))

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _BLOCK_TEXTS):
            places = self._starts[first : first + _BLOCK_TEXTS + 1].tolist()
            for start, end in pairwise(places):
                yield self._text(start, end)

    def _text(self, start: int, end: int) -> str:
        try:
            return str(self._letters[start:end], "utf-8", self._errors)
        except UnicodeDecodeError as error:
            raise damaged(self._path, f"a text of it is no UTF-8 ({error})") from error


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
                texts[field.name] = TextColumn(path, starts, views[2], _DECODING[field.type])
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
