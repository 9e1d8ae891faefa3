"""Only facts of near cells are compared, by their bytes, and the best of those again by their stored rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hippogpu.backends.checks import check_topk, no_number
from hippogpu.backends.rows import best_of_row
from hippogpu.backends.threads import run_together, single_blas_thread
from hippogpu.nearest.rescoring import best_by_rows
from hippogpu.nearest.seam import Near
from hippogpu.precision import Vectors
from hippogpu.store.fact_cells import FactCells
from hippogpu.types import AnyInts, Floats, Ints

PROBES, SHORTLIST = 128, 256


class CellRows(NamedTuple):
    """Cells that passed FactCells.check, and the rows they were made of.

    probes: cells that are looked at · shortlist: facts of them that are compared by their stored rows
    With all cells and all facts the result is that of ExactRows.
    """

    cells: FactCells
    rows: Vectors
    probes: int = PROBES
    shortlist: int = SHORTLIST

    @property
    def name(self) -> str:
        return "ivfpq"

    @property
    def shape(self) -> tuple[int, int]:
        rows, width = self.rows.shape
        return rows, width

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes

    @property
    def exact(self) -> bool:
        return False

    def looking(self, *, probes: int, shortlist: int) -> CellRows:
        return self._replace(probes=probes, shortlist=shortlist)

    def topk(self, queries: Floats, k: int) -> Near:
        """The extremes are those of the shortlists: of the query for high, of the opposite query for low."""
        queries = np.ascontiguousarray(queries, np.float32)
        check_topk(queries, self.cells.centroids, k)
        if not np.isfinite(queries).all():
            raise no_number()
        count = len(queries)
        k = min(k, self.shape[0])
        ids, scores = np.empty((count, k), np.int32), np.empty((count, k), np.float32)
        low, high = np.empty(count, np.float32), np.empty(count, np.float32)
        with single_blas_thread():
            coarse = queries @ self.cells.centroids.T

            def work(numbers: Iterator[int]) -> None:
                for number in numbers:
                    query = queries[number]
                    ids[number], scores[number] = self._best(query, coarse[number], k)
                    low[number] = -self._best(-query, -coarse[number], 1)[1][0]
                    high[number] = scores[number, 0]

            run_together(range(count), work)
        return Near(ids, scores, low, high, exact=False)

    def _best(self, query: Floats, coarse: Floats, k: int) -> tuple[Ints, Floats]:
        # Compiled at its first use.
        from hippogpu.nearest.scanning import shortlisted

        probes = self._probed(coarse, k)
        near = shortlisted(query, coarse, self.cells, probes, min(max(self.shortlist, k), self.shape[0]))
        return best_by_rows(self.rows, query, near, k)

    def _probed(self, coarse: Floats, k: int) -> AnyInts:
        """The cells nearest to a query: as many as are to be looked at, and more while they hold fewer than k facts."""
        cells = self.cells.indptr
        count = min(self.probes, len(coarse))
        nearest = best_of_row(coarse, count)
        while int((cells[nearest + 1] - cells[nearest]).sum()) < k:
            count = min(2 * count, len(coarse))
            nearest = best_of_row(coarse, count)
        return nearest
