"""Vectors as they are stored: in float32, in float16, or in int8 with a scale a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.config import VectorType
from hippogpu.types import AnyFloats, AnyInts, Floats

_MOST = 127
_SUMMED_ROWS = 1 << 14


class ScaledRows(NamedTuple):
    """Unit rows in a byte a number: row i is scales[i] · values[i]. values (rows, w) int8 · scales (rows,) float32."""

    values: NDArray[np.int8]
    scales: Floats

    @property
    def shape(self) -> tuple[int, int]:
        rows, width = self.values.shape
        return rows, width

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.scales.nbytes


Vectors = NDArray[np.float32] | NDArray[np.float16] | ScaledRows
"""(rows, w) unit vectors as they are stored; shape and nbytes are those of all, len is not: use shape[0]."""


def rounded(rows: Floats, kind: VectorType) -> Vectors:
    """Unit rows (rows, w) as they are stored as that type; a second rounding changes nothing.

    int8: the greatest number of a row becomes ±127, and its scale gives the row length 1.
    """
    if kind == "float32":
        return rows
    if kind == "float16":
        return rows.astype(np.float16)
    most = np.abs(rows).max(axis=1, keepdims=True, initial=np.finfo(np.float32).tiny)
    values = np.rint(rows * (_MOST / most)).astype(np.int8)
    lengths = np.sqrt((values.astype(np.int32) ** 2).sum(axis=1))
    return ScaledRows(values, (1 / np.maximum(lengths, 1)).astype(np.float32))


def empty_rows(rows: int, width: int, kind: VectorType) -> Vectors:
    """Room for so many rows of that type."""
    if kind == "int8":
        return ScaledRows(np.empty((rows, width), np.int8), np.empty(rows, np.float32))
    return np.empty((rows, width), np.float16) if kind == "float16" else np.empty((rows, width), np.float32)


def arrays_of(vectors: Vectors) -> tuple[NDArray[Any], ...]:
    """The arrays they are made of: the numbers, and the scales of int8."""
    return vectors if isinstance(vectors, ScaledRows) else (vectors,)


def part(vectors: Any, rows: slice | AnyInts) -> Any:
    """Some rows as they are stored; those of a slice without a copy."""
    if isinstance(vectors, ScaledRows):
        return ScaledRows(vectors.values[rows], vectors.scales[rows])
    return vectors[rows]


def kind_of(vectors: Vectors) -> VectorType:
    """As what they are stored."""
    if isinstance(vectors, ScaledRows):
        return "int8"
    return "float16" if vectors.dtype == np.float16 else "float32"


def is_small(vectors: Any) -> bool:
    """Whether they are stored in fewer bytes than float32."""
    return isinstance(vectors, ScaledRows) or bool(vectors.dtype == np.float16)


def float_rows(vectors: Vectors, which: slice | AnyInts) -> Floats:
    """Some rows as float32 (rows, w): those that are meant wherever vectors are compared.

    Rows that are stored in float32 are not copied for a slice.
    """
    if isinstance(vectors, ScaledRows):
        return vectors.values[which].astype(np.float32) * vectors.scales[which, None]
    rows: NDArray[Any] = vectors[which]
    return rows.astype(np.float32, copy=False)


def float_columns(vectors: Vectors, rows: slice, columns: slice) -> Floats:
    """Some columns of some rows as float32 (rows, columns)."""
    if isinstance(vectors, ScaledRows):
        return float_rows(ScaledRows(vectors.values[:, columns], vectors.scales), rows)
    return float_rows(vectors[:, columns], rows)


def summed(vectors: Vectors) -> AnyFloats:
    """The sum of all rows, (w,) float64, a block at a time."""
    if not is_small(vectors):
        whole: AnyFloats = float_rows(vectors, slice(None)).sum(axis=0, dtype=np.float64)
        return whole
    total = np.zeros(vectors.shape[1])
    for first in range(0, vectors.shape[0], _SUMMED_ROWS):
        total += float_rows(vectors, slice(first, first + _SUMMED_ROWS)).sum(axis=0, dtype=np.float64)
    return total
