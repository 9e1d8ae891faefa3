"""The CPU: BLAS products and threaded, compiled loops, in float32 unless float64 is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from hippogpu.backends.checks import (
    check_columns,
    check_diffused,
    check_push,
    check_residual,
    check_solve,
    check_steps,
    check_topk,
    no_number,
)
from hippogpu.backends.reference import residual_of, row_sums
from hippogpu.backends.rows import put_rows, select_rows, topk_blockwise
from hippogpu.backends.steps import step_weights
from hippogpu.backends.threads import run_together, threads
from hippogpu.backends.values import (
    Certified,
    Graph,
    PassagePart,
    Residual,
    SparseSeeds,
    TopK,
    nothing_certified,
    stored_rounding,
)
from hippogpu.config import LinearSolver, Precision
from hippogpu.precision import ScaledRows, Vectors, is_small
from hippogpu.types import AnyFloats, Csr, Ints

if TYPE_CHECKING:
    from hippogpu.backends.cpu_iterate import Buffers
    from hippogpu.backends.cpu_rank import Desk, Scoring

# Above so many hits a row is sorted whole: a heap of that size would cost more.
_HEAP_HITS = 2048
# Columns that are iterated together: wider ones only spread the same work over more memory.
_GROUP_BYTES = 256


class CpuBackend:
    """All cores (NUMBA_NUM_THREADS limits them). Safe to call from several threads; solves then take turns."""

    name = "cpu"

    def __init__(self, budget_bytes: int = 512 * 2**20, precision: Precision = "float32") -> None:
        self._budget_bytes = budget_bytes
        self._dtype = np.dtype(precision)
        self._lock = threading.Lock()
        self._desks_of: AnyFloats | None = None
        self._desks: list[Desk] = []
        # Memory that is touched for the first time costs as much as some steps, so the last group's is kept.
        self._buffers: Buffers | None = None

    def put(self, array: Vectors | AnyFloats) -> Any:
        return put_rows(array, self._dtype)

    def get(self, array: AnyFloats) -> AnyFloats:
        return array

    def put_graph(self, graph: Csr) -> Graph:
        return Graph(graph.indptr, graph.indices, graph.weights, row_sums(graph, graph.weights))

    def scores(self, queries: AnyFloats, keys: Vectors | AnyFloats) -> AnyFloats:
        if isinstance(keys, ScaledRows) or is_small(keys):
            from hippogpu.backends.cpu_dense import all_products

            queries = np.ascontiguousarray(queries, self._dtype)
            return all_products(queries, keys, budget_bytes=self._budget_bytes)
        return np.asarray(queries, self._dtype) @ keys.T

    def select(self, scores: AnyFloats, k: int) -> Ints:
        return select_rows(scores, k)

    def topk(self, queries: AnyFloats, keys: Vectors | AnyFloats, k: int) -> TopK:
        queries = np.ascontiguousarray(queries, self._dtype)
        check_topk(queries, keys, k)
        k = min(k, keys.shape[0])
        if k > _HEAP_HITS or not len(queries):
            return topk_blockwise(queries, keys, k, budget_bytes=self._budget_bytes, multiply=self.scores)
        from hippogpu.backends.cpu_dense import best_keys

        return best_keys(queries, put_rows(keys, self._dtype), k, budget_bytes=self._budget_bytes)

    def solve(
        self, graph: Graph, seeds: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "power"
    ) -> AnyFloats:
        from hippogpu.backends.cpu_iterate import copy_rows, parallel_lock

        check_solve(graph, seeds, damping, steps)
        sums = seeds.sum(axis=1, dtype=np.float64)
        isolated = seeds[:, graph.degrees == 0].sum(axis=1, dtype=np.float64) / sums
        # The restart of isolated mass only rescales, and so does the sum of the seeds: both at once, at the end.
        factors = (1 / (sums * (1 - damping * isolated))).astype(self._dtype)
        omegas = step_weights(solver, damping, steps)
        masses = np.empty(seeds.shape, self._dtype)
        for here, x in self._iterated(graph, seeds.T, seeds.T, damping, omegas, self._dtype):
            with parallel_lock:
                copy_rows(x, factors[here], masses[here])
        return masses

    def diffuse(
        self, graph: Graph, columns: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> AnyFloats:
        check_steps(damping, steps)
        check_columns(graph, columns)
        omegas = step_weights(solver, damping, steps)
        out = np.empty(columns.shape, self._dtype)
        for here, x in self._iterated(graph, columns, columns, damping, omegas, self._dtype):
            out[:, here] = x[:, : here.stop - here.start]
        return out

    def residual(self, graph: Graph, columns: AnyFloats, diffused: AnyFloats, *, damping: float) -> Residual:
        check_residual(graph, columns, diffused, damping)
        parts = []
        for here, x in self._iterated(graph, columns, diffused, damping, [1.0], np.dtype(np.float64)):
            left = x[:, : here.stop - here.start]
            np.subtract(left, diffused[:, here], out=left)
            parts.append(residual_of(left, graph.degrees))
        return Residual(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _iterated(
        self,
        graph: Graph,
        columns: AnyFloats,
        start: AnyFloats,
        damping: float,
        omegas: Sequence[float],
        dtype: np.dtype[Any],
    ) -> Iterator[tuple[slice, AnyFloats]]:
        """Each group of columns with its x, which the next group overwrites."""
        from hippogpu.backends.cpu_iterate import buffers_for, iterate, parallel_lock
        from hippogpu.backends.cpu_step import padded_width

        with self._lock:
            kept, self._buffers = self._buffers, None
        at_once = _GROUP_BYTES // dtype.itemsize
        for first in range(0, columns.shape[1], at_once):
            here = slice(first, min(first + at_once, columns.shape[1]))
            shape = graph.nodes, padded_width(here.stop - first, dtype)
            if kept is None or (kept.y.shape, kept.y.dtype) != (shape, dtype):
                kept = buffers_for(graph, here.stop - first, dtype)
            with parallel_lock:
                x = iterate(graph, columns[:, here], start[:, here], damping, omegas, kept)
            yield here, x
        self._buffers = kept

    def push(self, graph: Graph, seeds: SparseSeeds, *, passages: int, damping: float, epsilon: float) -> AnyFloats:
        """Each query on a thread that takes the next when it is done. float32; the push itself is in float64."""
        check_push(graph, seeds, passages, damping, epsilon)
        from hippogpu.backends.cpu_push import Walk, push_row

        walk = Walk(graph.indptr, graph.indices, graph.weights, damping)
        seeds = seeds._replace(weights=np.asarray(seeds.weights, np.float64))
        brought = np.zeros((len(seeds.indptr) - 1, passages), self._dtype)

        def work(rows: Iterator[int]) -> None:
            with self._desk(graph, passages) as desk:
                for row in rows:
                    here = slice(int(seeds.indptr[row]), int(seeds.indptr[row + 1]))
                    push_row(walk, seeds.nodes[here], seeds.weights[here], desk.left, epsilon, brought[row])

        run_together(range(len(brought)), work)
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

        def work(rows: Iterator[int]) -> None:
            with self._desk(graph, len(part.diffused)) as desk:
                for row in rows:
                    rank_row(walk, scoring, seeds, row, desk, found, epsilon, least)

        run_together(range(len(found.ids)), work)
        if (found.edges < 0).any():
            raise no_number()

    def _scoring(self, graph: Graph, part: PassagePart) -> Scoring:
        from hippogpu.backends.cpu_dense import all_products
        from hippogpu.backends.cpu_rank import Scoring

        queries = np.ascontiguousarray(part.queries, self._dtype)
        slope, offset = (np.asarray(values, np.float64) for values in (part.slope, part.offset))
        fine = np.abs(slope) * np.linalg.norm(queries.astype(np.float64), axis=1) + np.abs(offset)
        # The rounding of a sum of w products is at most w roundoffs of the product of the lengths, and the length of a
        # row of G·V at most that of G·1, as V has unit rows. A few more go into the score's own sums.
        roundoff = float(np.finfo(self._dtype).eps) / 2
        rough = fine * (queries.shape[1] + 8) * roundoff
        degrees = graph.degrees[: len(part.ones)]
        rounding = stored_rounding(part, degrees)
        most = np.array([degrees.max(), part.ones.max(), rounding.max()])
        products = all_products(queries, part.diffused, budget_bytes=self._budget_bytes)
        return Scoring(
            products,
            slope,
            offset,
            part.ones,
            part.diffused,
            queries,
            degrees,
            rough,
            fine,
            rounding,
            most,
            unit=8 * roundoff,
        )

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
        if len(desks) < threads():
            desks.append(desk)
