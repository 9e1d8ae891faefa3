"""The few verbs every backend has, and the checks they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from hippogpu.config import LinearSolver
from hippogpu.errors import UsageError
from hippogpu.types import AnyFloats, AnyInts, Bools, Csr, Ints, Longs

# Rows of seeds must sum to 1 within this; it leaves room for float32 rows of a million nodes.
SEED_SUM_TOLERANCE = 1e-3
# Diffused vectors are stored in float32.
STORED_ROUNDOFF = 2.0**-24


class TopK(NamedTuple):
    """The k best keys of each query, descending, ties by lower number; and the extremes over all keys.

    ids (B, k) int32 · scores (B, k) · low (B,) · high (B,), all of the backend's own float type
    """

    ids: Ints
    scores: AnyFloats
    low: AnyFloats
    high: AnyFloats


class Graph(NamedTuple):
    """A checked graph on a backend: its CSR arrays and weighted degrees, (n,) in the backend's float type."""

    indptr: Any
    indices: Any
    weights: Any
    degrees: Any

    @property
    def nodes(self) -> int:
        return len(self.degrees)


class Residual(NamedTuple):
    """How far x is from solving its system, for each column: (1 − d)·s + d·P·x − x.

    l1 (c,) float64         its L1 norm; that of the error is at most l1 ÷ (1 − d)
    over_degree (c,) float64 its greatest share of a degree; the error of a node is at most that · degree ÷ (1 − d)
    """

    l1: AnyFloats
    over_degree: AnyFloats


class SparseSeeds(NamedTuple):
    """Seeds that few nodes hold: those of query b are nodes[indptr[b]:indptr[b+1]], each once, with their weights.

    indptr (B+1,) int64 · nodes int32 · weights ≥ 0, in any unit
    """

    indptr: Longs
    nodes: Ints
    weights: AnyFloats


class PassagePart(NamedTuple):
    """What the passage seeds add to G·s at every passage: slope·(diffused·query) + offset·ones.

    diffused (P, w) G·V on passages and ones (P,) G·1 on passages, both put on the backend
    queries (B, w) · slope (B,) · offset (B,)
    error: diffused·query is off by at most error · |query| · degree, and ones by error · degree (Residual.error)
    """

    diffused: Any
    ones: Any
    queries: AnyFloats
    slope: AnyFloats
    offset: AnyFloats
    error: float = 0.0


class Certified(NamedTuple):
    """The k passages with the greatest G·s of each query, descending, ties by lower number, and how sure that is.

    ids (B, k) int32 · scores (B, k) float64, short of G·s by at most bounds (B, k), and over by roundings alone
    certified (B,) whether no other passage can reach the k-th score
    epsilon (B,) what no residual ÷ degree exceeds in the end · edges (B,) int64 edges touched, repeats counted
    """

    ids: Ints
    scores: AnyFloats
    bounds: AnyFloats
    certified: Bools
    epsilon: AnyFloats
    edges: Longs


class Backend(Protocol):
    """Arrays in, arrays out; batches are rows. Every implementation keeps to the reference's results."""

    @property
    def name(self) -> str: ...

    def put(self, array: AnyFloats) -> Any:
        """The array where this backend computes, in its float type."""
        ...

    def get(self, array: Any) -> AnyFloats:
        """The array as a NumPy array."""
        ...

    def put_graph(self, graph: Csr) -> Graph:
        """A graph that passed Csr.check, with its degrees."""
        ...

    def scores(self, queries: Any, keys: Any) -> Any:
        """Inner products, (B, rows of keys)."""
        ...

    def select(self, scores: Any, k: int) -> Ints:
        """Numbers of the k greatest entries of each row, (B, min(k, columns)), descending, ties by lower number."""
        ...

    def topk(self, queries: Any, keys: Any, k: int) -> TopK:
        """The k nearest keys of each query by inner product, worked out in blocks under the byte budget."""
        ...

    def solve(self, graph: Graph, seeds: Any, *, damping: float, steps: int, solver: LinearSolver = "power") -> Any:
        """Personalised PageRank mass of every node, one row a query.

        seeds : (B, n), rows ≥ 0 summing to 1
        returns (B, n); rows sum to 1, with chebyshev within the solver's own error
        x = d·A·D⁻¹·x + (d·λ + 1 − d)·seeds, where λ is the mass at nodes without edges: it restarts at the seeds
        (PRPACK's rule), which only rescales: x = G·seeds ÷ (1 − d·m₀), m₀ the seed mass on such nodes.
        The error in L1 of power is at most 2·d^steps. HippoRAG 2, section 3.5.
        """
        ...

    def diffuse(
        self, graph: Graph, columns: Any, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> Any:
        """G·columns for G = (1 − d)·(I − d·A·D⁻¹)⁻¹: the plain linear system, without the restart of isolated mass.

        columns : (n, c) of any sign
        returns (n, c)
        """
        ...

    def residual(self, graph: Graph, columns: Any, diffused: Any, *, damping: float) -> Residual:
        """How far `diffused` (n, c) is from G·columns, worked out in float64."""
        ...

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
        """The k passages (nodes 0…P−1) with the greatest G·s, s the passage seeds of `part` and sparse phrase seeds.

        Mass of the sparse seeds is pushed forward until every node keeps at most epsilon · degree. Queries whose k
        passages are not certain then are pushed on, down to least_epsilon at most.
        """
        ...


def power_steps(damping: float, tolerance: float) -> int:
    """Steps after which the power iteration's L1 error is at most `tolerance`: 21 for 1e-6 at damping 0.5."""
    if damping == 0.0:
        return 1
    return max(1, math.ceil(math.log(tolerance / 2) / math.log(damping)))


def chebyshev_contraction(damping: float) -> float:
    """Factor by which a Chebyshev step shrinks the error in the end, on a spectrum in [1 − d, 1 + d]: 0.268 at 0.5."""
    return damping / (1.0 + math.sqrt(1.0 - damping * damping))


def chebyshev_steps(damping: float, tolerance: float) -> int:
    """Steps after which the error is at most `tolerance` of the first one, in the norm weighed by 1 ÷ degree: 12 for
    1e-6 at damping 0.5. The last step is a plain one and contracts by the damping.
    """
    if damping == 0.0:
        return 1
    return 1 + max(0, math.ceil(math.log(tolerance / (2 * damping)) / math.log(chebyshev_contraction(damping))))


def steps_for(solver: LinearSolver, damping: float, tolerance: float) -> int:
    """Steps that a solver takes to the tolerance."""
    return (power_steps if solver == "power" else chebyshev_steps)(damping, tolerance)


def step_weights(solver: LinearSolver, damping: float, steps: int) -> list[float]:
    """The ω of each step of x ← ω·(d·A·D⁻¹·x + (1 − d)·s − x₋₁) + x₋₁: ones for power.

    The last step is a plain one, ω = 1: it needs no x₋₁, and it smooths what is left.
    """
    weights = [1.0] * steps
    if solver == "chebyshev":
        for number in range(1, steps - 1):
            weights[number] = 1.0 / (1.0 - damping**2 * weights[number - 1] / (2.0 if number == 1 else 4.0))
    return weights


def check_damping(damping: float) -> None:
    if not 0.0 <= damping < 1.0:
        raise UsageError(f"The damping must be in [0, 1). Got {damping}.")


def check_steps(damping: float, steps: int) -> None:
    check_damping(damping)
    if steps < 1:
        raise UsageError(f"The number of steps must be at least 1. Got {steps}.")


def check_solve(graph: Graph, seeds: AnyFloats, damping: float, steps: int) -> None:
    """UsageError unless the call to solve means something; the same words on every backend."""
    check_steps(damping, steps)
    if seeds.ndim != 2 or seeds.shape[1] != graph.nodes:
        raise UsageError(f"Seeds must have the shape (queries, {graph.nodes}). Got {seeds.shape}.")
    sums = seeds.sum(axis=1, dtype=np.float64)
    if not np.all(np.isfinite(sums)):
        raise UsageError(f"Seeds must be finite. Row {int(np.argmin(np.isfinite(sums)))} is not.")
    if seeds.size and seeds.min() < 0:
        raise UsageError(f"Seeds must not be negative. Row {int(np.argmin(seeds.min(axis=1)))} has {seeds.min()}.")
    wrong = np.abs(sums - 1) > SEED_SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UsageError(f"Each row of seeds must sum to 1. Row {row} sums to {sums[row]:.6g}: normalise it first.")


def check_columns(graph: Graph, columns: AnyFloats) -> None:
    """UsageError unless there is one finite row a node."""
    if columns.ndim != 2 or columns.shape[0] != graph.nodes:
        raise UsageError(f"Columns must have the shape ({graph.nodes}, columns). Got {columns.shape}.")
    sums = columns.sum(axis=0, dtype=np.float64)
    if not np.all(np.isfinite(sums)):
        raise UsageError(f"Columns must be finite. Column {int(np.argmin(np.isfinite(sums)))} is not.")


def check_residual(graph: Graph, columns: AnyFloats, diffused: AnyFloats, damping: float) -> None:
    """UsageError unless there is an answer to each column."""
    check_damping(damping)
    check_columns(graph, columns)
    check_answers(columns, diffused)


def check_answers(columns: Any, diffused: Any) -> None:
    """UsageError unless both are of one shape."""
    if diffused.shape != columns.shape:
        raise UsageError(f"Give one answer a column: columns are {columns.shape}, answers {diffused.shape}.")


def check_diffused(
    graph: Graph, part: PassagePart, seeds: SparseSeeds, k: int, *, damping: float, epsilon: float, least_epsilon: float
) -> None:
    """UsageError unless the call to rank_diffused means something."""
    check_damping(damping)
    if k < 1:
        raise UsageError(f"k must be at least 1. Got {k}.")
    if not 0.0 < least_epsilon <= epsilon <= 1.0:
        raise UsageError(f"Need 0 < least_epsilon ≤ epsilon ≤ 1. Got least_epsilon {least_epsilon}, epsilon {epsilon}.")
    passages, queries = part.diffused.shape[0], len(part.queries)
    if passages > graph.nodes or part.queries.ndim != 2 or part.queries.shape[1] != part.diffused.shape[1]:
        raise UsageError(
            f"Diffused vectors {part.diffused.shape}, queries {part.queries.shape} and {graph.nodes} nodes do not fit."
        )
    if not len(part.slope) == len(part.offset) == queries or len(part.ones) != passages:
        raise UsageError(
            f"Give a slope and an offset for each of {queries} queries, and one of each of {passages} passages."
        )
    if len(seeds.indptr) != queries + 1 or len(seeds.nodes) != len(seeds.weights):
        raise UsageError(f"Give the seeds of {queries} queries, one weight a node.")
    if len(seeds.nodes) and (seeds.nodes.min() < 0 or seeds.nodes.max() >= graph.nodes):
        raise UsageError(f"Seeds must be nodes in [0, {graph.nodes}).")
    if not np.all(np.isfinite(seeds.weights)) or np.any(np.asarray(seeds.weights) < 0):
        raise UsageError("Weights of seeds must be finite and not negative.")
    for name in ("queries", "slope", "offset"):
        if not np.all(np.isfinite(getattr(part, name))):
            raise UsageError(f"The '{name}' of the passage part must be finite.")


def stored_rounding(part: PassagePart, degrees: AnyFloats) -> AnyFloats:
    """What diffused·query (for a unit query) and ones may be off by at each passage, (P,) float64.

    The diffusion's error, for rows of V that are up to a thousandth longer than 1, and some roundings of float32, in
    which they are stored whatever backend made them.
    """
    ones = np.asarray(part.ones, np.float64)
    off: AnyFloats = 1.001 * part.error * degrees + 4 * STORED_ROUNDOFF * ones
    return off


def nothing_certified(queries: int, k: int) -> Certified:
    """Certified arrays of that shape, to be filled."""
    ids, scores, bounds = np.empty((queries, k), np.int32), np.empty((queries, k)), np.empty((queries, k))
    return Certified(ids, scores, bounds, np.zeros(queries, bool), np.zeros(queries), np.zeros(queries, np.int64))


def check_topk(queries: AnyFloats, keys: AnyFloats, k: int) -> None:
    """UsageError unless the shapes agree and k is at least 1."""
    if k < 1:
        raise UsageError(f"k must be at least 1. Got {k}.")
    if queries.ndim != 2 or keys.ndim != 2 or queries.shape[1] != keys.shape[1]:
        raise UsageError(f"Queries and keys must be of one width. Got {queries.shape} and {keys.shape}.")


def best_of_row(row: AnyFloats, k: int) -> AnyInts:
    """Numbers of the k greatest values, descending, ties by lower number; k is at most len(row)."""
    if k == len(row):
        return np.argsort(-row, kind="stable")
    least = np.partition(row, len(row) - k)[len(row) - k]
    above = np.flatnonzero(row > least)
    level = np.flatnonzero(row == least)[: k - len(above)]
    chosen = np.concatenate([above, level])
    return chosen[np.lexsort((chosen, -row[chosen]))]


def no_number() -> UsageError:
    return UsageError("Scores must be numbers. Some are NaN: look for a vector that is not finite.")


def select_rows(scores: AnyFloats, k: int) -> Ints:
    """best_of_row for each row; UsageError for k < 1 or a score that is not a number."""
    if k < 1:
        raise UsageError(f"k must be at least 1. Got {k}.")
    if np.isnan(scores).any():
        raise no_number()
    k = min(k, scores.shape[1])
    chosen = np.empty((len(scores), k), np.int32)
    for number, row in enumerate(scores):
        chosen[number] = best_of_row(row, k)
    return chosen


def topk_blockwise(
    queries: AnyFloats,
    keys: AnyFloats,
    k: int,
    *,
    budget_bytes: int,
    multiply: Callable[[AnyFloats, AnyFloats], AnyFloats],
) -> TopK:
    """TopK over blocks of keys, so that no product exceeds the budget."""
    check_topk(queries, keys, k)
    rows = max(1, budget_bytes // (8 * max(len(queries), 1)))
    low = np.full(len(queries), np.inf, queries.dtype)
    high = np.full(len(queries), -np.inf, queries.dtype)
    ids = np.empty((len(queries), 0), np.int32)
    best = np.empty((len(queries), 0), queries.dtype)
    for start in range(0, len(keys), rows):
        scores = multiply(queries, keys[start : start + rows])
        np.minimum(low, scores.min(axis=1), out=low)
        np.maximum(high, scores.max(axis=1), out=high)
        here = select_rows(scores, k)
        ids = np.concatenate([ids, here + np.int32(start)], axis=1)
        best = np.concatenate([best, np.take_along_axis(scores, here, axis=1)], axis=1)
        # Earlier blocks hold lower numbers and stand first, so the tie rule survives the merge.
        order = select_rows(best, k)
        ids, best = np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)
    return TopK(ids, best, low, high)
