"""The CPU: BLAS products and threaded, compiled loops, in float32 unless float64 is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from hippogpu.backends.reference import residual_of, row_sums
from hippogpu.backends.seam import (
    Certified,
    Graph,
    PassagePart,
    Residual,
    SparseSeeds,
    TopK,
    check_columns,
    check_damping,
    check_diffused,
    check_solve,
    check_steps,
    check_topk,
    no_number,
    nothing_certified,
    select_rows,
    step_weights,
)
from hippogpu.config import LinearSolver, Precision
from hippogpu.types import AnyFloats, Csr, Ints

if TYPE_CHECKING:
    from hippogpu.backends.cpu_push import Space

# A block of scores of this size stays in the caches between the product and the look at it.
_CACHED_BYTES = 4 * 2**20
# Above so many hits a row is sorted whole: a heap of that size would cost more.
_HEAP_HITS = 2048
# Columns whose residual is worked out together, in float64.
_RESIDUAL_COLUMNS = 32
# Columns that are iterated together: wider ones only spread the same work over more memory.
_GROUP_BYTES = 256


class CpuBackend:
    """All cores (NUMBA_NUM_THREADS and the BLAS's own variable limit them)."""

    name = "cpu"

    def __init__(self, budget_bytes: int = 512 * 2**20, precision: Precision = "float32") -> None:
        self._budget_bytes = budget_bytes
        self._dtype = np.dtype(precision)
        self._kept: tuple[AnyFloats, Space] | None = None

    def put(self, array: AnyFloats) -> AnyFloats:
        return np.ascontiguousarray(array, self._dtype)

    def get(self, array: AnyFloats) -> AnyFloats:
        return array

    def put_graph(self, graph: Csr) -> Graph:
        return Graph(graph.indptr, graph.indices, graph.weights, row_sums(graph, graph.weights))

    def scores(self, queries: AnyFloats, keys: AnyFloats) -> AnyFloats:
        return np.asarray(queries, self._dtype) @ keys.T

    def select(self, scores: AnyFloats, k: int) -> Ints:
        return select_rows(scores, k)

    def topk(self, queries: AnyFloats, keys: AnyFloats, k: int) -> TopK:
        from hippogpu.backends.cpu_select import nothing_yet, put_in_order, take_in

        queries = np.ascontiguousarray(queries, self._dtype)
        check_topk(queries, keys, k)
        k = min(k, len(keys))
        if k > _HEAP_HITS:
            return self._topk_sorted(queries, keys, k)
        best = nothing_yet(len(queries), k, self._dtype)
        budget_bytes = min(self._budget_bytes, _CACHED_BYTES)
        rows = max(1, budget_bytes // (self._dtype.itemsize * max(len(queries), 1)))
        for start in range(0, len(keys), rows):
            take_in(queries @ keys[start : start + rows].T, start, best)
        if best.bad.any():
            raise no_number()
        put_in_order(best)
        return TopK(best.ids, best.scores, best.low, best.high)

    def _topk_sorted(self, queries: AnyFloats, keys: AnyFloats, k: int) -> TopK:
        scores = queries @ keys.T
        ids = select_rows(scores, k)
        return TopK(ids, np.take_along_axis(scores, ids, axis=1), scores.min(axis=1), scores.max(axis=1))

    def solve(
        self, graph: Graph, seeds: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "power"
    ) -> AnyFloats:
        check_solve(graph, seeds, damping, steps)
        sums = seeds.sum(axis=1, dtype=np.float64)
        isolated = seeds[:, graph.degrees == 0].sum(axis=1, dtype=np.float64) / sums
        # The restart of isolated mass only rescales, and so does the sum of the seeds: both at once, at the end.
        factors = 1 / (sums * (1 - damping * isolated))
        x = self.diffuse(graph, seeds.T, damping=damping, steps=steps, solver=solver)
        return np.ascontiguousarray(x.T * factors[:, None].astype(self._dtype))

    def diffuse(
        self, graph: Graph, columns: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> AnyFloats:
        from hippogpu.backends.cpu_iterate import iterate

        check_steps(damping, steps)
        check_columns(graph, columns)
        omegas = step_weights(solver, damping, steps)
        out = np.empty(columns.shape, self._dtype)
        group = _GROUP_BYTES // self._dtype.itemsize
        for first in range(0, columns.shape[1], group):
            iterate(graph, columns[:, first : first + group], damping, omegas, out[:, first : first + group])
        return out

    def residual(self, graph: Graph, columns: AnyFloats, diffused: AnyFloats, *, damping: float) -> Residual:
        from hippogpu.backends.cpu_iterate import iterate

        check_damping(damping)
        check_columns(graph, columns)
        parts = []
        for first in range(0, columns.shape[1], _RESIDUAL_COLUMNS):
            here = np.s_[:, first : first + _RESIDUAL_COLUMNS]
            walked = np.empty(columns[here].shape, np.float64)
            iterate(graph, columns[here], damping, [1.0], walked, start=diffused[here])
            parts.append(residual_of(np.subtract(walked, diffused[here], out=walked), graph.degrees))
        return Residual(*(np.concatenate(column) for column in zip(*parts, strict=True)))

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
        from hippogpu.backends.cpu_push import rank_rows

        check_diffused(graph, part, seeds, k, damping=damping, epsilon=epsilon, least_epsilon=least_epsilon)
        passages, queries = len(part.diffused), np.ascontiguousarray(part.queries, self._dtype)
        found = nothing_certified(len(queries), min(k, passages))
        if not found.ids.size:
            found.certified[:] = True
            return found
        roundoff = float(np.finfo(self._dtype).eps) / 2
        slope, offset = (np.asarray(values, np.float64) for values in (part.slope, part.offset))
        length = np.abs(slope) * np.linalg.norm(np.asarray(part.queries, np.float64), axis=1)
        with self._space(graph, passages) as space:
            rank_rows(
                graph.indptr, graph.indices, graph.weights, graph.degrees, queries @ part.diffused.T, part.diffused,
                part.ones, queries, slope, offset,
                # The rounding of a sum of w products is at most w roundoffs of the product of the lengths, and the
                # length of a row of G·V at most that of G·1, as V has unit rows.
                length * (queries.shape[1] + 2) * roundoff, length + np.abs(offset),
                part.error * graph.degrees[:passages] + roundoff * part.ones,
                seeds.indptr, seeds.nodes, np.asarray(seeds.weights, np.float64), damping, epsilon, least_epsilon,
                *space, *found,
            )  # fmt: skip
        return found

    @contextmanager
    def _space(self, graph: Graph, passages: int) -> Iterator[Space]:
        """Working memory for the graph that no other thread uses; the last one is kept for the next call."""
        from hippogpu.backends.cpu_push import space_for, threads

        kept, self._kept = self._kept, None
        if kept is None or kept[0] is not graph.degrees or kept[1].mass.shape != (threads(), passages):
            kept = (graph.degrees, space_for(graph, passages, threads()))
        yield kept[1]
        # After an error the memory is not all zeros, and is dropped.
        self._kept = kept
