"""A second opinion on PageRank: NVIDIA's cuGraph, one seed vector a call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from hippogpu.backends.checks import check_solve
from hippogpu.backends.cuda import CudaBackend
from hippogpu.backends.cuda_solve import CudaGraph
from hippogpu.backends.values import Certified, Graph, PassagePart, Residual, SparseSeeds, TopK
from hippogpu.config import LinearSolver
from hippogpu.errors import require_extra
from hippogpu.types import AnyFloats, Csr, Ints

# cuGraph stops when a step changes less than this in L1: never, so that the steps are those asked for.
NO_TOLERANCE = 1e-300


@dataclass(frozen=True, slots=True)
class CugraphGraph:
    """The graph as pylibcugraph holds it, beside the cuda backend's arrays, which it iterates over."""

    arrays: CudaGraph
    resident: Any

    @property
    def nodes(self) -> int:
        return self.arrays.nodes

    def __iter__(self) -> Iterator[Any]:
        return iter(self.arrays)


class CugraphBackend:
    """Power iteration through pylibcugraph in float64; everything else is the cuda backend's, kernels and all.

    cuGraph has no batches, no Chebyshev steps, no signed columns and no push: solve with the solver 'chebyshev',
    diffuse, residual, push and rank_diffused are no second opinion. MissingExtraError without pylibcugraph.
    """

    name = "cugraph"

    def __init__(self, budget_bytes: int = 512 * 2**20) -> None:
        purpose = "The backend 'cugraph' (extra cugraph13, or cugraph12 for CUDA 12)"
        library: Any = require_extra("pylibcugraph", package="pylibcugraph", extra="cugraph13", purpose=purpose)
        self._cupy: Any = require_extra("cupy", package="cupy", extra="cuda13", purpose="The backend 'cugraph'")
        self._cuda = CudaBackend(budget_bytes)
        self._library, self._handle = library, library.ResourceHandle()

    def put(self, array: Any) -> Any:
        return self._cuda.put(array)

    def get(self, array: Any) -> AnyFloats:
        return self._cuda.get(array)

    def put_graph(self, graph: Csr) -> Graph:
        xp, library = self._cupy, self._library
        # cuGraph takes pointers and columns of one type. Its own symmetrise would keep the lesser of two weights: the
        # graph comes with both directions and one weight a pair.
        whole = xp.int32 if graph.nonzeros < 2**31 else xp.int64
        resident = library.SGGraph(
            self._handle,
            library.GraphProperties(is_symmetric=True, is_multigraph=False),
            xp.asarray(graph.indptr, dtype=whole),
            xp.asarray(graph.indices, dtype=whole),
            weight_array=xp.asarray(graph.weights, dtype=xp.float64),
            store_transposed=True,
            renumber=False,
            do_expensive_check=False,
            input_array_format="CSR",
        )
        return cast(Graph, CugraphGraph(cast(CudaGraph, self._cuda.put_graph(graph)), resident))

    def scores(self, queries: Any, keys: Any) -> Any:
        return self._cuda.scores(queries, keys)

    def select(self, scores: Any, k: int) -> Ints:
        return self._cuda.select(scores, k)

    def topk(self, queries: Any, keys: Any, k: int) -> TopK:
        return self._cuda.topk(queries, keys, k)

    def solve(self, graph: Graph, seeds: Any, *, damping: float, steps: int, solver: LinearSolver = "power") -> Any:
        here = cast(CugraphGraph, graph)
        if solver != "power":
            return self._cuda.solve(_arrays(graph), seeds, damping=damping, steps=steps, solver=solver)
        xp = self._cupy
        seeds = self.put(seeds)
        check_solve(graph, self.get(seeds), damping, steps)
        mass = xp.empty(seeds.shape, xp.float32)
        for number, row in enumerate(seeds.astype(xp.float64)):
            mass[number] = self._walk(here, row / row.sum(), damping, steps)
        return mass

    def diffuse(
        self, graph: Graph, columns: Any, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> Any:
        return self._cuda.diffuse(_arrays(graph), columns, damping=damping, steps=steps, solver=solver)

    def residual(self, graph: Graph, columns: Any, diffused: Any, *, damping: float) -> Residual:
        return self._cuda.residual(_arrays(graph), columns, diffused, damping=damping)

    def push(self, graph: Graph, seeds: SparseSeeds, *, passages: int, damping: float, epsilon: float) -> AnyFloats:
        return self._cuda.push(_arrays(graph), seeds, passages=passages, damping=damping, epsilon=epsilon)

    def rank_diffused(
        self,
        graph: Graph,
        part: PassagePart,
        seeds: SparseSeeds,
        k: int,
        *,
        damping: float,
        epsilon: float,
        least_epsilon: float,
    ) -> Certified:
        return self._cuda.rank_diffused(
            _arrays(graph), part, seeds, k, damping=damping, epsilon=epsilon, least_epsilon=least_epsilon
        )

    def _walk(self, graph: CugraphGraph, seeds: Any, damping: float, steps: int) -> Any:
        """PPR mass for one float64 row of seeds that sums to 1.

        cuGraph walks from the joined nodes' seeds alone, whose mass never reaches a node without edges, so its own rule
        for those does not show. G·seeds is that mass times their share, with (1 − d)·seeds at the others; PRPACK's rule
        only rescales it.
        """
        xp = self._cupy
        joined = graph.arrays.degrees > 0
        share = float(xp.where(joined, seeds, 0.0).sum())
        mass = (1 - damping) * xp.where(joined, 0.0, seeds)
        nodes = xp.flatnonzero(joined & (seeds > 0)).astype(xp.int32 if graph.nodes < 2**31 else xp.int64)
        if len(nodes):
            # A copy of each array: older releases renumbered the personalisation in place.
            guess, values = nodes.copy(), seeds[nodes] / share
            found, ranks, _ = self._library.personalized_pagerank(
                self._handle, graph.resident, None, None,
                initial_guess_vertices=guess, initial_guess_values=values.copy(),
                personalization_vertices=nodes, personalization_values=values,
                alpha=damping, epsilon=NO_TOLERANCE, max_iterations=steps,
                do_expensive_check=False, fail_on_nonconvergence=False,
            )  # fmt: skip
            mass[found] += share * ranks
        return mass / (1 - damping * (1 - share))


def _arrays(graph: Graph) -> Graph:
    """The cuda backend's graph of this one."""
    return cast(Graph, cast(CugraphGraph, graph).arrays)
