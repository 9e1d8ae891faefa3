"""The CPU: BLAS products and threaded, compiled loops, in float32 unless float64 is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
    from hippogpu.backends.cpu_rank import Desk, Scoring

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
        self._lock = threading.Lock()
        self._desks_of: AnyFloats | None = None
        self._desks: list[Desk] = []

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
        check_diffused(graph, part, seeds, k, damping=damping, epsilon=epsilon, least_epsilon=least_epsilon)
        found = nothing_certified(len(part.queries), min(k, len(part.diffused)))
        if not found.ids.size:
            found.certified[:] = True
            return found
        self._rank(graph, part, seeds, found, damping=damping, epsilon=epsilon, least=least_epsilon)
        return found

    def _rank(
        self,
        graph: Graph,
        part: PassagePart,
        seeds: SparseSeeds,
        found: Certified,
        *,
        damping: float,
        epsilon: float,
        least: float,
    ) -> None:
        """Fills Certified, each query on a thread that takes the next when it is done."""
        from hippogpu.backends.cpu_push import Walk
        from hippogpu.backends.cpu_rank import rank_row

        walk = Walk(graph.indptr, graph.indices, graph.weights, damping)
        scoring = self._scoring(graph, part)
        seeds = seeds._replace(weights=np.asarray(seeds.weights, np.float64))
        numbers = iter(range(len(found.ids)))

        def work() -> None:
            with self._desk(graph, len(part.diffused)) as desk:
                for row in numbers:
                    rank_row(walk, scoring, seeds, row, desk, found, epsilon, least)

        run_together(work, len(found.ids))

    def _scoring(self, graph: Graph, part: PassagePart) -> Scoring:
        from hippogpu.backends.cpu_rank import Scoring

        queries = np.ascontiguousarray(part.queries, self._dtype)
        slope, offset = (np.asarray(values, np.float64) for values in (part.slope, part.offset))
        fine = np.abs(slope) * np.linalg.norm(queries.astype(np.float64), axis=1) + np.abs(offset)
        # The rounding of a sum of w products is at most w roundoffs of the product of the lengths, and the length of a
        # row of G·V at most that of G·1, as V has unit rows. Some more roundoffs go into the sums around it.
        roundoff = float(np.finfo(self._dtype).eps) / 2
        rough = fine * (queries.shape[1] + 8) * roundoff
        degrees = graph.degrees[: len(part.ones)]
        rounding = part.error * degrees + roundoff * part.ones
        most = np.array([degrees.max(), part.ones.max(), rounding.max()])
        products = queries @ part.diffused.T
        return Scoring(products, slope, offset, part.ones, part.diffused, queries, degrees, rough, fine, rounding, most)

    @contextmanager
    def _desk(self, graph: Graph, passages: int) -> Iterator[Desk]:
        """Working memory for the graph that no other thread uses; it is kept for the next call."""
        from hippogpu.backends.cpu_rank import desk_for

        with self._lock:
            if self._desks_of is not graph.degrees:
                self._desks_of, self._desks = graph.degrees, []
            desks = self._desks
            fitting = [place for place, desk in enumerate(desks) if len(desk.scores) == passages]
            desk = desks.pop(fitting[0]) if fitting else None
        desk = desk or desk_for(graph, passages, self._dtype)
        yield desk
        # After an error the memory is not all zeros, and is dropped.
        desks.append(desk)


def run_together(work: Callable[[], None], most: int) -> None:
    """Runs the work on as many threads as numba may use, `most` at most; an error of any is raised."""
    import numba

    threads = min(int(numba.get_num_threads()), most)
    if threads == 1:
        work()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
