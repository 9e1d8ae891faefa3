"""Texts as Arrow holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.types import Longs

_BLOCK_TEXTS = 65536


class ArrowTexts(Sequence[str]):
    """Texts of an Arrow column, decoded as they are read."""

    def __init__(self, column: pa.Array[Any]) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, i: Any) -> Any:
        return self._column[i].to_pylist() if isinstance(i, slice) else self._column[range(len(self))[i]].as_py()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _BLOCK_TEXTS):
            yield from map(str, self._column.slice(first, _BLOCK_TEXTS).to_pylist())

    def __arrow_array__(self, type: Any = None) -> pa.Array[Any]:
        return self._column


def texts_of(offsets: Longs, letters: NDArray[np.uint8]) -> pa.Array[Any]:
    """Texts as an Arrow column of where each begins and of all their letters in a row, not copied."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.data), pa.py_buffer(letters.data))
