"""One question's way through the cells: what their bytes say of each fact, and the best of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from hippogpu.backends.cpu_select import sift
from hippogpu.store.fact_cells import FactCells
from hippogpu.types import AnyInts, Floats, Ints

if TYPE_CHECKING:

    def _scan(
        probes: AnyInts,
        coarse: Floats,
        shares: Floats,
        cells: FactCells,
        scores: Floats,
        ids: Ints,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def _scan(probes, coarse, shares, cells, scores, ids):
        """Keeps the best facts of some cells in a heap, worst on top, ties to the lower number."""
        count, pieces = len(scores), cells.codes.shape[1]
        for probe in probes:
            base = coarse[probe]
            for place in range(cells.indptr[probe], cells.indptr[probe + 1]):
                code = cells.codes[place]
                even, odd = base, np.float32(0)
                for piece in range(0, pieces - 1, 2):
                    even += shares[piece, code[piece]]
                    odd += shares[piece + 1, code[piece + 1]]
                if pieces % 2:
                    even += shares[pieces - 1, code[pieces - 1]]
                score, fact = even + odd, cells.facts[place]
                if score > scores[0] or (score == scores[0] and fact < ids[0]):
                    scores[0], ids[0] = score, fact
                    sift(scores, ids, count)


def shortlisted(query: Floats, coarse: Floats, cells: FactCells, probes: AnyInts, count: int) -> Ints:
    """The `count` facts of some cells that seem nearest to a query (w,), ascending; fewer where the cells hold fewer.

    coarse (cells,): the query's products with the centroids
    """
    scores, ids = np.full(count, -np.inf, np.float32), np.full(count, np.iinfo(np.int32).max, np.int32)
    _scan(probes, coarse, shares_of(query, cells.codebooks), cells, scores, ids)
    return np.sort(ids[scores > -np.inf])


def shares_of(query: Floats, codebooks: Floats) -> Floats:
    """What each value of each byte adds to the product with a query (w,), (M, 256)."""
    pieces, _, size = codebooks.shape
    padded = np.zeros(pieces * size, np.float32)
    padded[: len(query)] = query
    shares: Floats = np.ascontiguousarray((codebooks @ padded.reshape(pieces, size, 1))[:, :, 0])
    return shares
