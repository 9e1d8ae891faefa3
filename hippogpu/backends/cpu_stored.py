"""Inner products with keys that are stored in two bytes or in one a number: they become float32 in a core's cache.

For few queries the time is that of reading the keys, so fewer bytes are less time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hippogpu.backends.cpu_products import fill_products, turned_queries
from hippogpu.precision import ScaledRows, Vectors, float_rows, part
from hippogpu.types import AnyFloats, Floats

# From so many queries on, rows are turned into float32 once for all, and go through the tiles of cpu_products: by then
# the products one query at a time take longer. At a million rows of width 384 those take 33 ms of one core a query in
# float16 and 18 in int8, where tiles take 310 and 280 for eight.
TILED_HALVES, TILED_BYTES = 10, 16
# Rows that are turned together: at a width of 384 they take 200 KB.
_BLOCK = 128
_DOUBLE_ROWS = 1024


@intrinsic
def _from_half(typing: Any, bits: Any) -> Any:
    """The float32 of the bits of a float16; loops over it become vector instructions."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), write


if TYPE_CHECKING:

    def _half_products(bits: NDArray[np.uint16], queries: Floats, out: Floats) -> None: ...

    def _half_tiles(bits: NDArray[np.uint16], turned: Floats, out: Floats) -> None: ...

    def _byte_products(values: NDArray[np.int8], scales: Floats, queries: Floats, out: Floats) -> None: ...

    def _byte_tiles(values: NDArray[np.int8], scales: Floats, turned: Floats, out: Floats) -> None: ...

else:
    # Sums may be taken in any order, so that they are vectors; NaN stays NaN.
    _any_order = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})

    @_any_order
    def _half_products(bits, queries, out):
        """out (B, rows) = queries · keysᵀ, for the bits of float16 keys (rows, w)."""
        for row in range(len(bits)):
            for query in range(len(queries)):
                total = np.float32(0)
                for axis in range(bits.shape[1]):
                    total += _from_half(bits[row, axis]) * queries[query, axis]
                out[query, row] = total

    @_any_order
    def _byte_products(values, scales, queries, out):
        """out (B, rows) = queries · keysᵀ, for keys scales · values."""
        for row in range(len(values)):
            for query in range(len(queries)):
                total = np.float32(0)
                for axis in range(values.shape[1]):
                    total += np.float32(values[row, axis]) * queries[query, axis]
                out[query, row] = total * scales[row]

    @numba.njit(nogil=True, cache=True)
    def _half_tiles(bits, turned, out):
        rows = np.empty((_BLOCK, bits.shape[1]), np.float32)
        for first in range(0, len(bits), _BLOCK):
            count = min(_BLOCK, len(bits) - first)
            for row in range(count):
                for axis in range(bits.shape[1]):
                    rows[row, axis] = _from_half(bits[first + row, axis])
            fill_products(rows[:count], turned, out[:, first : first + count])

    @numba.njit(nogil=True, cache=True)
    def _byte_tiles(values, scales, turned, out):
        rows = np.empty((_BLOCK, values.shape[1]), np.float32)
        for first in range(0, len(values), _BLOCK):
            count = min(_BLOCK, len(values) - first)
            for row in range(count):
                for axis in range(values.shape[1]):
                    rows[row, axis] = np.float32(values[first + row, axis]) * scales[first + row]
            fill_products(rows[:count], turned, out[:, first : first + count])


class StoredProduct:
    """Writes queries · keysᵀ (B, rows) for contiguous keys in float16 or int8."""

    def __init__(self, queries: AnyFloats, keys: Vectors | AnyFloats) -> None:
        self._queries = queries
        least = TILED_BYTES if isinstance(keys, ScaledRows) else TILED_HALVES
        self._tiled = queries.dtype == np.float32 and len(queries) >= least
        self._turned = turned_queries(queries) if self._tiled else queries

    def __call__(self, keys: Vectors, out: AnyFloats) -> None:
        if self._queries.dtype != np.float32:
            self._doubles(keys, out)
        elif isinstance(keys, ScaledRows):
            (_byte_tiles if self._tiled else _byte_products)(keys.values, keys.scales, self._turned, out)
        else:
            (_half_tiles if self._tiled else _half_products)(keys.view(np.uint16), self._turned, out)

    def _doubles(self, keys: Vectors, out: AnyFloats) -> None:
        for first in range(0, keys.shape[0], _DOUBLE_ROWS):
            rows = slice(first, first + _DOUBLE_ROWS)
            block = float_rows(part(keys, rows), slice(None)).astype(self._queries.dtype)
            np.matmul(self._queries, block.T, out=out[:, rows])
