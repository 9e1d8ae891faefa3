"""Facts found along a graph of near ones on the GPU: CAGRA of cuVS. Not run on a GPU yet."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hippogpu.backends import Backend
from hippogpu.backends.checks import check_topk, no_number
from hippogpu.errors import UsageError, require_extra
from hippogpu.nearest.rescoring import best_by_rows
from hippogpu.nearest.seam import Near, Nearest
from hippogpu.precision import Vectors, float_rows
from hippogpu.types import Floats

# Neighbours of a fact in the graph, and in the one that it is thinned out from: cuVS's own choice.
DEGREE, FIRST_DEGREE = 64, 128
MOST_CANDIDATES = 512
"""cuVS keeps no longer list of the best so far with the kernel that serves few questions."""


class CagraRows(NamedTuple):
    """A CAGRA index over stored rows, whose candidates are compared again by the rows themselves.

    beyond serves where more than MOST_CANDIDATES rows are asked for.
    """

    cagra: Any
    index: Any
    rows: Vectors
    backend: Backend
    nbytes: int
    beyond: Nearest
    shortlist: int = 256

    @property
    def name(self) -> str:
        return "cagra"

    @property
    def exact(self) -> bool:
        return False

    @property
    def shape(self) -> tuple[int, int]:
        rows, width = self.rows.shape
        return rows, width

    def looking(self, *, probes: int, shortlist: int) -> CagraRows:
        return self._replace(shortlist=min(shortlist, MOST_CANDIDATES))

    def topk(self, queries: Floats, k: int) -> Near:
        """The extremes are those of the lists: of the query for high, of the opposite query for low."""
        queries = np.ascontiguousarray(queries, np.float32)
        check_topk(queries, self.rows, k)
        if not np.isfinite(queries).all():
            raise no_number()
        k = min(k, self.shape[0])
        if k > MOST_CANDIDATES or not len(queries):
            return self.beyond.topk(queries, k)
        count = min(max(k, self.shortlist), self.shape[0])
        nearest, farthest = self._candidates(queries, count), self._candidates(-queries, count)
        if min(map(len, [*nearest, *farthest])) < k:
            return self.beyond.topk(queries, k)
        best = [best_by_rows(self.rows, query, row, k) for query, row in zip(queries, nearest, strict=True)]
        low = [best_by_rows(self.rows, -query, row, 1)[1][0] for query, row in zip(queries, farthest, strict=True)]
        ids, scores = (np.stack(column) for column in zip(*best, strict=True))
        return Near(ids, scores, -np.array(low, np.float32), scores[:, 0], exact=False)

    def _candidates(self, queries: Floats, count: int) -> Any:
        searching = self.cagra.SearchParams(itopk_size=max(64, -(-count // 32) * 32))
        asked = self.backend.put(queries).astype(np.float16)
        _, ids = self.cagra.search(searching, self.index, asked, count)
        found = np.asarray(ids.copy_to_host()).astype(np.int64)
        # A place that nothing was found for holds the greatest number.
        return [row[row < self.shape[0]] for row in found]


def cagra_rows(rows: Vectors, backend: Backend, beyond: Nearest) -> CagraRows:
    """The graph of the rows by inner product, made now; UsageError unless the backend is cuda.

    MissingExtraError without cuVS. It is made anew at each opening: minutes for millions of rows.
    """
    if backend.name != "cuda":
        raise UsageError(
            f'fact_store = "cagra" needs a GPU, and the backend is \'{backend.name}\'. Set fact_store = "own".'
        )
    cagra = _cagra()
    parameters = cagra.IndexParams(
        metric="inner_product", graph_degree=DEGREE, intermediate_graph_degree=FIRST_DEGREE, build_algo="ivf_pq"
    )
    held = float_rows(rows, slice(None)).astype(np.float16)
    index = cagra.build(parameters, held)
    return CagraRows(cagra, index, rows, backend, held.nbytes + 4 * DEGREE * len(held), beyond)


def _cagra() -> Any:
    purpose = 'fact_store = "cagra" (set "own" to do without)'
    return require_extra("cuvs.neighbors.cagra", package="cuvs-cu13", extra="cuvs13", purpose=purpose)
