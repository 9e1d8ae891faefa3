"""The specification: float64, NumPy only, short. Every other backend is held to it."""

from __future__ import annotations

import numpy as np

from hippogpu.backends.checks import (
    check_columns,
    check_diffused,
    check_push,
    check_residual,
    check_solve,
    check_steps,
)
from hippogpu.backends.rows import best_of_row, select_rows, topk_blockwise
from hippogpu.backends.steps import step_weights, steps_for
from hippogpu.backends.values import (
    Certified,
    Graph,
    PassagePart,
    Residual,
    SparseSeeds,
    TopK,
    seed_columns,
    stored_rounding,
)
from hippogpu.config import LinearSolver
from hippogpu.precision import Vectors, float_rows, is_small
from hippogpu.types import AnyFloats, Csr, Ints

# Rows of a residual that are looked at together.
_ROWS = 65536
# The reference walks to the end: it leaves out less than float64 can tell.
_WALKED_OUT = 1e-16


class ReferenceBackend:
    """Double precision on the CPU; meant to be read and compared with, not to be fast."""

    name = "reference"

    def __init__(self, budget_bytes: int = 512 * 2**20) -> None:
        self._budget_bytes = budget_bytes

    def put(self, array: Vectors | AnyFloats) -> AnyFloats:
        return np.ascontiguousarray(float_rows(array, slice(None)) if is_small(array) else array, np.float64)

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

    def solve(
        self, graph: Graph, seeds: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "power"
    ) -> AnyFloats:
        check_solve(graph, seeds, damping, steps)
        r: AnyFloats = np.asarray(seeds, np.float64)
        r = r / r.sum(axis=1, keepdims=True)
        isolated = r[:, graph.degrees == 0].sum(axis=1)
        x = self.diffuse(graph, r.T, damping=damping, steps=steps, solver=solver)
        return np.ascontiguousarray((x / (1 - damping * isolated)).T)

    def diffuse(
        self, graph: Graph, columns: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> AnyFloats:
        check_steps(damping, steps)
        check_columns(graph, columns)
        s: AnyFloats = np.asarray(columns, np.float64)
        x, before = s, s
        for omega in step_weights(solver, damping, steps):
            walked = damping * walk(graph, x) + (1 - damping) * s
            x, before = omega * (walked - before) + before, x
        return x

    def residual(self, graph: Graph, columns: AnyFloats, diffused: AnyFloats, *, damping: float) -> Residual:
        check_residual(graph, columns, diffused, damping)
        s, x = np.asarray(columns, np.float64), np.asarray(diffused, np.float64)
        return residual_of((1 - damping) * s + damping * walk(graph, x) - x, graph.degrees)

    def push(self, graph: Graph, seeds: SparseSeeds, *, passages: int, damping: float, epsilon: float) -> AnyFloats:
        check_push(graph, seeds, passages, damping, epsilon)
        columns = seed_columns(seeds, graph.nodes, slice(0, len(seeds.indptr) - 1))
        steps = steps_for("power", damping, _WALKED_OUT)
        brought = self.diffuse(graph, columns, damping=damping, steps=steps, solver="power")
        return np.ascontiguousarray(brought[:passages].T)

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
        base = part.slope[:, None] * self.scores(part.queries, part.diffused) + part.offset[:, None] * part.ones
        rows = []
        for number, row in enumerate(base):
            here = slice(int(seeds.indptr[number]), int(seeds.indptr[number + 1]))
            start = np.zeros(graph.nodes)
            np.add.at(start, seeds.nodes[here], seeds.weights[here])
            size = abs(part.slope[number]) * np.linalg.norm(part.queries[number]) + abs(part.offset[number])
            slack = size * stored_rounding(part, graph.degrees[: len(row)])
            rows.append(_rank_pushed(graph, row, slack, start, k, damping, epsilon, least_epsilon))
        columns = zip(*rows, strict=True) if rows else ([],) * 6
        ids, scores, bounds, certified, epsilons, edges = columns
        k = min(k, base.shape[1])
        return Certified(
            np.array(ids, np.int32).reshape(-1, k),
            np.array(scores, np.float64).reshape(-1, k),
            np.array(bounds, np.float64).reshape(-1, k),
            np.array(certified, bool),
            np.array(epsilons, np.float64),
            np.array(edges, np.int64),
        )


def residual_of(left: AnyFloats, degrees: AnyFloats) -> Residual:
    """The two norms of what is left in each column (n, c)."""
    l1, most = np.zeros(left.shape[1]), np.zeros(left.shape[1])
    for start in range(0, len(left), _ROWS):
        size, degree = np.abs(left[start : start + _ROWS]), degrees[start : start + _ROWS, None]
        l1 += size.sum(axis=0)
        np.maximum(most, np.divide(size, degree, out=np.zeros(size.shape), where=degree > 0).max(axis=0), out=most)
    return Residual(l1, most)


def _rank_pushed(
    graph: Graph,
    base: AnyFloats,
    slack: AnyFloats,
    seeds: AnyFloats,
    k: int,
    damping: float,
    epsilon: float,
    least: float,
) -> tuple[Ints, AnyFloats, AnyFloats, bool, float, int]:
    """One row of Certified: pushes on with a tenth of epsilon until no other passage can reach the k-th."""
    passages, edges = len(base), 0
    degrees = graph.degrees[:passages]
    mass: AnyFloats = np.zeros(graph.nodes)
    left: AnyFloats = np.array(seeds)
    while True:
        mass, left, touched = push(graph, mass, left, damping=damping, epsilon=epsilon)
        edges += touched
        # G·left is (1 − d)·left and d·G·P·left, which is at most d·epsilon·degree, as G and P keep the degrees.
        scores = base + mass[:passages] + (1 - damping) * left[:passages]
        bounds = damping * epsilon * degrees + slack
        chosen = best_of_row(scores, min(k, passages))
        others = np.ones(passages, bool)
        others[chosen] = False
        certain = bool(np.all((scores + bounds)[others] <= (scores - slack)[chosen].min(initial=np.inf)))
        if certain or epsilon <= least:
            return chosen.astype(np.int32), scores[chosen], bounds[chosen], certain, epsilon, edges
        epsilon = max(epsilon / 10, least)


def push(
    graph: Graph, mass: AnyFloats, left: AnyFloats, *, damping: float, epsilon: float
) -> tuple[AnyFloats, AnyFloats, int]:
    """Forward push to left ≤ epsilon · degree everywhere: mass + G·left stays what it was. Edges touched come last.

    A node without edges keeps 1 − d of what it holds, and passes nothing on.
    """
    edges = 0
    while True:
        active = left > epsilon * graph.degrees
        if not active.any():
            return mass, left, edges
        edges += int(np.diff(graph.indptr)[active].sum())
        moved = np.where(active, left, 0.0)
        mass = mass + (1 - damping) * moved
        left = left - moved + damping * walk(graph, moved[:, None])[:, 0]


def walk(graph: Graph, x: AnyFloats) -> AnyFloats:
    """P·x = A·D⁻¹·x for x (n, B): where the mass stands after one step; that of isolated nodes is gone."""
    inverse = np.divide(1.0, graph.degrees, out=np.zeros(graph.nodes), where=graph.degrees > 0)
    return adjacent_sums(graph, inverse[:, None] * x)


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
        sums[filled] = np.add.reduceat(weights, graph.indptr[filled], dtype=np.float64)
    return sums
