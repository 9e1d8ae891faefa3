"""Texts as Arrow holds them: where each begins, and the letters of all in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError
from hippogpu.text_columns import TextColumn
from hippogpu.types import Longs


def array_of(offsets: Longs, letters: NDArray[np.uint8]) -> pa.Array[Any]:
    """Texts as an Arrow array over the same bytes."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.data), pa.py_buffer(letters.data))


def column_of(array: pa.Array[Any]) -> TextColumn:
    """Texts of an Arrow array that begins where its buffers do, over the same bytes."""
    if not len(array):
        return TextColumn(np.zeros(1, np.int64), memoryview(b""), refuse=IndexDamagedError)
    offsets, letters = (memoryview(buffer or b"") for buffer in array.buffers()[1:])
    return TextColumn(np.frombuffer(offsets, np.int64, len(array) + 1), letters, refuse=IndexDamagedError)
