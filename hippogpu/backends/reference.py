"""The specification: float64, NumPy only, short. Every other backend is held to it."""

from __future__ import annotations

import numpy as np

from hippogpu.backends.seam import Graph, TopK, check_solve, select_rows, topk_blockwise
from hippogpu.types import AnyFloats, Csr, Ints


class ReferenceBackend:
    """Double precision on the CPU; meant to be read and compared with, not to be fast."""

    name = "reference"

    def __init__(self, budget_bytes: int = 512 * 2**20) -> None:
        self._budget_bytes = budget_bytes

    def put(self, array: AnyFloats) -> AnyFloats:
        return np.ascontiguousarray(array, np.float64)

    def get(self, array: AnyFloats) -> AnyFloats:
        return array

    def put_graph(self, graph: Csr) -> Graph:
        weights = graph.weights.astype(np.float64)
        return Graph(graph.indptr, graph.indices, weights, row_sums(graph, weights))

    def scores(self, queries: AnyFloats, keys: AnyFloats) -> AnyFloats:
        return np.asarray(queries, np.float64) @ np.asarray(keys, np.float64).T

    def select(self, scores: AnyFloats, k: int) -> Ints:
        return select_rows(scores, k)

    def topk(self, queries: AnyFloats, keys: AnyFloats, k: int) -> TopK:
        queries = np.asarray(queries, np.float64)
        return topk_blockwise(queries, keys, k, budget_bytes=self._budget_bytes, multiply=self.scores)

    def solve(self, graph: Graph, seeds: AnyFloats, *, damping: float, steps: int) -> AnyFloats:
        check_solve(graph, seeds, damping, steps)
        r: AnyFloats = np.asarray(seeds, np.float64).T
        r = r / r.sum(axis=0)
        isolated = graph.degrees == 0
        inverse = np.divide(1.0, graph.degrees, out=np.zeros(graph.nodes), where=~isolated)
        x = r
        for _ in range(steps):
            restart = damping * x[isolated].sum(axis=0) + 1 - damping
            x = damping * adjacent_sums(graph, inverse[:, None] * x) + restart * r
        return np.ascontiguousarray(x.T)


def adjacent_sums(graph: Graph, x: AnyFloats) -> AnyFloats:
    """A·x for x (n, B): each node's weighted sum over its neighbours."""
    sums = np.zeros_like(x)
    filled = np.flatnonzero(np.diff(graph.indptr))
    if len(filled):
        products = graph.weights[:, None] * x[graph.indices]
        sums[filled] = np.add.reduceat(products, graph.indptr[filled], axis=0)
    return sums


def row_sums(graph: Csr, weights: AnyFloats) -> AnyFloats:
    """Weighted degree of every node, (n,) float64; 0 for a node without edges."""
    sums = np.zeros(graph.nodes, np.float64)
    filled = np.flatnonzero(np.diff(graph.indptr))
    if len(filled):
        sums[filled] = np.add.reduceat(weights.astype(np.float64), graph.indptr[filled])
    return sums
