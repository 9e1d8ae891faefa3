"""How a block of keys and vectors lies in one array of bytes: 16 of key, w numbers, and 4 of scale for int8."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.config import VectorType
from hippogpu.precision import ScaledRows, Vectors
from hippogpu.store.text_keys import KEY_BYTES, Keys

HEADER_BYTES = 128
_NUMBER: dict[VectorType, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "int8": np.dtype("i1"),
}
_SCALE = np.dtype("<f4")


def row_bytes(kind: VectorType, width: int) -> int:
    return KEY_BYTES + _NUMBER[kind].itemsize * width + (_SCALE.itemsize if kind == "int8" else 0)


def packed(keys: Keys, vectors: Vectors) -> NDArray[np.uint8]:
    """Keys and vectors side by side, (rows, row_bytes) uint8."""
    columns = [keys, *(vectors if isinstance(vectors, ScaledRows) else [vectors])]
    rows = len(keys)
    return np.concatenate([np.ascontiguousarray(one).reshape(rows, -1).view(np.uint8) for one in columns], axis=1)


def unpacked(rows: NDArray[np.uint8], kind: VectorType) -> tuple[Keys, Vectors]:
    """The keys and vectors in such rows, as views of them."""
    keys: Keys = rows[:, :KEY_BYTES].view("<u8")
    if kind == "int8":
        scales = rows[:, -_SCALE.itemsize :].view(_SCALE)[:, 0]
        return keys, ScaledRows(rows[:, KEY_BYTES : -_SCALE.itemsize].view(np.int8), scales)
    return keys, rows[:, KEY_BYTES:].view(_NUMBER[kind])
