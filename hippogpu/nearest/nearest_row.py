"""The row of a table that is nearest to each vector, in float32: a tile of products at a time, compared while hot.

The sums are ours and not the BLAS's: each adds up one axis after the other with fused steps, so how vectors are cut
into blocks and on how many threads they are compared changes no bit of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from hippogpu.backends.cpu_products import QUERIES, tile_of_products, turned_queries
from hippogpu.backends.threads import run_together
from hippogpu.types import Floats, Ints

# Vectors that are compared together: their products with 32 table rows stay in a core's cache.
_BLOCK = 256


class Table(NamedTuple):
    """Rows to be near to, (rows, w), in the order in which products read them, and minus half their squares (rows,)."""

    turned: Floats
    less: Floats


def table_of(rows: Floats) -> Table:
    """The table of rows (rows, w) float32; the nearest by Euclid's distance has the greatest x·row − |row|² ÷ 2."""
    return Table(turned_queries(rows), (-0.5 * (rows.astype(np.float64) ** 2).sum(axis=1)).astype(np.float32))


if TYPE_CHECKING:

    def _find(vectors: Floats, turned: Floats, less: Floats, ids: Ints, scores: Floats) -> None: ...

else:

    @numba.njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
    def _greatest(line):
        greatest = line[0]
        for value in line:
            greatest = max(greatest, value)
        return greatest

    @numba.njit(nogil=True, cache=True)
    def _take_in(tile, rows, less, first, ids, scores):
        """Takes in the products of some vectors with the table rows first, first + 1, …; ties go to the earlier row."""
        some = len(less)
        for row in range(rows):
            line = tile[row, :some]
            for place in range(some):
                line[place] += less[place]
            if _greatest(line) > scores[row]:
                for place in range(some):
                    if line[place] > scores[row]:
                        scores[row], ids[row] = line[place], first + place

    @numba.njit(nogil=True, cache=True)
    def _find(vectors, turned, less, ids, scores):
        tile = np.empty((_BLOCK, QUERIES), np.float32)
        for first in range(0, len(vectors), _BLOCK):
            rows = min(_BLOCK, len(vectors) - first)
            here = slice(first, first + rows)
            for group in range(len(turned)):
                start = group * QUERIES
                tile_of_products(vectors, turned[group], tile, first, rows)
                _take_in(tile, rows, less[start : start + QUERIES], start, ids[here], scores[here])


def nearest_rows(vectors: Floats, table: Table) -> tuple[Ints, Floats]:
    """The nearest table row of each vector (n, w), ties to the lower; and x·row − |row|² ÷ 2 of it. Both (n,)."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    ids, scores = np.zeros(len(vectors), np.int32), np.full(len(vectors), -np.inf, np.float32)

    def work(starts: Iterator[int]) -> None:
        for start in starts:
            here = slice(start, start + _ROWS)
            _find(vectors[here], table.turned, table.less, ids[here], scores[here])

    run_together(range(0, len(vectors), _ROWS), work)
    return ids, scores


# Vectors that a thread takes at a time.
_ROWS = 8 * _BLOCK
