"""The CPU: BLAS products and a threaded sparse × dense step in float32."""

from __future__ import annotations

import numpy as np

from hippogpu.backends.reference import row_sums
from hippogpu.backends.seam import Graph, TopK, check_solve, select_rows, topk_blockwise
from hippogpu.types import AnyFloats, Csr, Floats, Ints


class CpuBackend:
    """Single precision on all cores (NUMBA_NUM_THREADS and the BLAS's own variable limit them)."""

    name = "cpu"

    def __init__(self, budget_bytes: int = 512 * 2**20) -> None:
        self._budget_bytes = budget_bytes

    def put(self, array: AnyFloats) -> Floats:
        return np.ascontiguousarray(array, np.float32)

    def get(self, array: Floats) -> Floats:
        return array

    def put_graph(self, graph: Csr) -> Graph:
        sums = row_sums(graph, graph.weights)
        return Graph(graph.indptr, graph.indices, graph.weights, sums.astype(np.float32))

    def scores(self, queries: AnyFloats, keys: AnyFloats) -> AnyFloats:
        return np.asarray(queries, np.float32) @ keys.T

    def select(self, scores: AnyFloats, k: int) -> Ints:
        return select_rows(scores, k)

    def topk(self, queries: AnyFloats, keys: AnyFloats, k: int) -> TopK:
        queries = np.asarray(queries, np.float32)
        return topk_blockwise(queries, keys, k, budget_bytes=self._budget_bytes, multiply=self.scores)

    def solve(self, graph: Graph, seeds: AnyFloats, *, damping: float, steps: int) -> Floats:
        from hippogpu.backends.cpu_kernels import step

        check_solve(graph, seeds, damping, steps)
        r = normalised_columns(seeds)
        scale = np.divide(damping, graph.degrees, out=np.zeros(graph.nodes, np.float32), where=graph.degrees > 0)
        isolated_seeds = r[graph.degrees == 0].sum(axis=0, dtype=np.float64)
        # The iteration runs on y = d·D⁻¹·x, so that a step is one pass: x = A·y + (d·λ + 1 − d)·r.
        # Isolated nodes only ever hold their share of the restart, so λ needs no pass of its own.
        y, spare = r * scale[:, None], np.empty_like(r)
        loose = isolated_seeds
        ones = np.ones(graph.nodes, np.float32)
        for number in range(steps):
            restart = damping * loose + 1 - damping
            last = number == steps - 1
            step(
                graph.indptr, graph.indices, graph.weights, y, r, restart.astype(np.float32),
                ones if last else scale, spare,
            )  # fmt: skip
            y, spare, loose = spare, y, restart * isolated_seeds
        return np.ascontiguousarray(y.T)


def normalised_columns(seeds: AnyFloats) -> Floats:
    """The seeds as (n, B) float32 columns that sum to 1, normalised in float64."""
    sums = seeds.sum(axis=1, dtype=np.float64)
    return np.ascontiguousarray((seeds / sums[:, None]).T, np.float32)
