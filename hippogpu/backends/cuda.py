"""One NVIDIA GPU: float32 through CuPy, with kernels of our own for the walk, the top-k and the push."""

from __future__ import annotations

import os
from typing import Any, Literal, cast

import numpy as np

from hippogpu.backends._kernels import Kernels
from hippogpu.backends.checks import (
    SEED_SUM_TOLERANCE,
    check_answers,
    check_columns,
    check_damping,
    check_diffused,
    check_push,
    check_solve,
    check_steps,
)
from hippogpu.backends.cuda_layout import compress, cut
from hippogpu.backends.cuda_rank import Device, rank_in_blocks
from hippogpu.backends.cuda_solve import LEAST_DEGREE, THREADS, WARP, CudaGraph, Teams, Walk, blocks, columns_at_once
from hippogpu.backends.cuda_sparse import SparseWalk
from hippogpu.backends.cuda_topk import best_of_rows, topk_in_blocks
from hippogpu.backends.devices import require_cupy
from hippogpu.backends.reference import row_sums
from hippogpu.backends.steps import steps_for
from hippogpu.backends.values import Certified, Graph, PassagePart, Residual, SparseSeeds, TopK, seed_columns
from hippogpu.config import LinearSolver
from hippogpu.errors import HippoError, UsageError
from hippogpu.precision import ScaledRows, float_rows, is_small
from hippogpu.types import AnyFloats, Csr, Ints

Product = Literal["kernels", "cusparse"]
# DLPack's numbers of CUDA memory: the device's own, and managed.
DLPACK_CUDA = (2, 13)


class CudaBackend:
    """Single precision on the current CUDA device, every block of work under a byte budget.

    Arrays are CuPy's; `put` takes NumPy's, CuPy's, and through DLPack any other on the device, without a copy where the
    type is float32 already; keys in float16 and int8 stay as they are. `product` chooses the sparse product of solve
    and diffuse: the fused step, or cuSPARSE, the baseline it is compared with. MissingExtraError without CuPy,
    HippoError without a device.
    """

    name = "cuda"

    def __init__(self, budget_bytes: int = 512 * 2**20, product: Product = "kernels") -> None:
        self._cupy = require_cupy()
        if os.environ.get("CUPY_TF32", "0") not in ("", "0"):
            raise HippoError("CUPY_TF32 is set: inner products would keep 10 bits. Unset it and start again.")
        self._budget_bytes = budget_bytes
        self._kernels = Kernels(self._cupy)
        self._walk: Walk | SparseWalk
        self._walk = Walk(self._cupy, self._kernels) if product == "kernels" else SparseWalk(self._cupy)

    def put(self, array: Any) -> Any:
        xp = self._cupy
        if isinstance(array, ScaledRows):
            return ScaledRows(*(xp.ascontiguousarray(xp.asarray(one)) for one in array))
        half = getattr(array, "dtype", None) == np.float16
        return xp.ascontiguousarray(xp.asarray(array)) if half else self._floats(array)

    def _floats(self, array: Any) -> Any:
        """The array on the device in float32."""
        xp = self._cupy
        if not isinstance(array, (np.ndarray, xp.ndarray)) and hasattr(array, "__dlpack_device__"):
            on_device = array.__dlpack_device__()[0] in DLPACK_CUDA
            array = xp.from_dlpack(array) if on_device else np.from_dlpack(array)
        return xp.ascontiguousarray(xp.asarray(array), dtype=xp.float32)

    def get(self, array: Any) -> AnyFloats:
        host: AnyFloats = self._cupy.asnumpy(array)
        return host

    def put_graph(self, graph: Csr) -> Graph:
        xp = self._cupy
        arrays = (*compress(graph), *cut(graph.indptr), row_sums(graph, graph.weights))
        return cast(Graph, CudaGraph(*(xp.asarray(array) for array in arrays)))

    def scores(self, queries: Any, keys: Any) -> Any:
        queries, keys = self._floats(queries), self.put(keys)
        if not is_small(keys):
            return queries @ keys.T
        scores = self._cupy.empty((len(queries), keys.shape[0]), np.float32)
        for rows in blocks(keys.shape[0], max(1, self._budget_bytes // (4 * keys.shape[1]))):
            scores[:, rows] = queries @ float_rows(keys, rows).T
        return scores

    def select(self, scores: Any, k: int) -> Ints:
        if k < 1:
            raise UsageError(f"k must be at least 1. Got {k}.")
        scores = self._floats(scores)
        best = best_of_rows(self._cupy, self._kernels, scores, min(k, scores.shape[1]))
        numbers: Ints = self.get(best.ids).astype(np.int32, copy=False)
        return numbers

    def topk(self, queries: Any, keys: Any, k: int) -> TopK:
        queries, keys = self._floats(queries), self.put(keys)
        best = topk_in_blocks(self._cupy, self._kernels, queries, keys, k, budget_bytes=self._budget_bytes)
        return TopK(*(self._cupy.asnumpy(array) for array in best))

    def solve(self, graph: Graph, seeds: Any, *, damping: float, steps: int, solver: LinearSolver = "power") -> Any:
        here = _on_device(graph)
        seeds = self._floats(seeds)
        self._check_seeds(graph, seeds, damping, steps)
        xp = self._cupy
        mass = xp.empty(seeds.shape, xp.float32)
        for rows in blocks(len(seeds), columns_at_once(here.nodes, self._budget_bytes)):
            sums = seeds[rows].sum(axis=1, dtype=xp.float64)
            isolated = xp.where(here.degrees == 0, seeds[rows], 0).sum(axis=1, dtype=xp.float64) / sums
            columns = xp.ascontiguousarray((seeds[rows] / sums[:, None]).T, dtype=xp.float32)
            walked = self._walk.run(here, columns, damping=damping, steps=steps, solver=solver)
            mass[rows] = (walked / (1 - damping * isolated)).T
        return mass

    def diffuse(
        self, graph: Graph, columns: Any, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> Any:
        here = _on_device(graph)
        check_steps(damping, steps)
        columns = self._floats(columns)
        self._check_columns(graph, columns)
        xp = self._cupy
        diffused = xp.empty(columns.shape, xp.float32)
        for some in blocks(columns.shape[1], columns_at_once(here.nodes, self._budget_bytes)):
            block = xp.ascontiguousarray(columns[:, some])
            diffused[:, some] = self._walk.run(here, block, damping=damping, steps=steps, solver=solver)
        return diffused

    def residual(self, graph: Graph, columns: Any, diffused: Any, *, damping: float) -> Residual:
        check_damping(damping)
        columns, diffused = self._floats(columns), self._floats(diffused)
        self._check_columns(graph, columns)
        check_answers(columns, diffused)
        xp, here = self._cupy, _on_device(graph)
        l1, over_degree = xp.zeros(columns.shape[1], xp.float64), xp.zeros(columns.shape[1], xp.float64)
        inverse = xp.where(here.degrees > 0, 1.0 / xp.maximum(here.degrees, LEAST_DEGREE), 0.0)
        for rows in blocks(here.nodes, max(1, self._budget_bytes // max(16 * columns.shape[1], 1))):
            left = self._left_over(here, columns, diffused, inverse, damping, rows)
            l1 += left.sum(axis=0)
            over_degree = xp.maximum(over_degree, (left * inverse[rows, None]).max(axis=0))
        return Residual(self.get(l1), self.get(over_degree))

    def push(self, graph: Graph, seeds: SparseSeeds, *, passages: int, damping: float, epsilon: float) -> AnyFloats:
        """Few columns walk the whole graph together here: on a GPU that is faster than chains of small pushes."""
        check_push(graph, seeds, passages, damping, epsilon)
        xp, here = self._cupy, _on_device(graph)
        brought = np.zeros((len(seeds.indptr) - 1, passages), np.float32)
        steps = steps_for("power", damping, epsilon)
        for some in blocks(len(brought), columns_at_once(here.nodes, self._budget_bytes)):
            rows = slice(some.start, min(some.stop, len(brought)))
            columns = xp.ascontiguousarray(seed_columns(seeds, here.nodes, rows, xp), dtype=xp.float32)
            walked = self._walk.run(here, columns, damping=damping, steps=steps, solver="power")
            brought[rows] = self.get(walked[:passages].T)
        return brought

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
        check_diffused(graph, part, seeds, k, damping=damping, epsilon=epsilon, least_epsilon=least_epsilon)
        part = part._replace(diffused=self._floats(part.diffused), ones=self._floats(part.ones))
        return rank_in_blocks(
            Device(self._cupy, self._kernels, self.get), _on_device(graph), part, seeds, k,
            damping=damping, epsilon=epsilon, least_epsilon=least_epsilon, budget_bytes=self._budget_bytes,
        )  # fmt: skip

    def _left_over(
        self, graph: CudaGraph, columns: Any, diffused: Any, inverse: Any, damping: float, rows: slice
    ) -> Any:
        """|(1 − d)·s + d·P·x − x| of some rows, (rows, c) float64."""
        xp, batch = self._cupy, columns.shape[1]
        count = min(rows.stop, graph.nodes) - rows.start
        left = xp.empty((count, batch), xp.float64)
        column_lanes = min(WARP, 1 << max(batch - 1, 0).bit_length())
        teams = Teams(1, column_lanes, WARP // column_lanes)
        self._kernels.launch(
            "residual_rows", teams.grid(count, batch), THREADS,
            *graph.edges, columns, diffused, inverse, np.float64(damping), left, batch, rows.start, count, *teams[1:],
        )  # fmt: skip
        return left

    def _check_seeds(self, graph: Graph, seeds: Any, damping: float, steps: int) -> None:
        """check_solve, whose words need the rows on the host: they are fetched when something is wrong."""
        check_steps(damping, steps)
        xp = self._cupy
        if seeds.ndim == 2 and seeds.shape[1] == graph.nodes:
            sums = seeds.sum(axis=1, dtype=xp.float64)
            # NaN fails every comparison.
            if bool((xp.abs(sums - 1) <= SEED_SUM_TOLERANCE).all()) and bool((seeds >= 0).all()):
                return
        check_solve(graph, self.get(seeds), damping, steps)

    def _check_columns(self, graph: Graph, columns: Any) -> None:
        """check_columns, fetching the columns only when something is wrong."""
        xp = self._cupy
        if columns.ndim == 2 and columns.shape[0] == graph.nodes and bool(xp.isfinite(columns.sum(axis=0)).all()):
            return
        check_columns(graph, self.get(columns))


def _on_device(graph: Graph) -> CudaGraph:
    """The graph as put_graph of this backend gave it; UsageError for another's."""
    if not isinstance(graph, CudaGraph):
        raise UsageError("The graph was not put on the backend 'cuda'. Give what its put_graph returned.")
    return graph
