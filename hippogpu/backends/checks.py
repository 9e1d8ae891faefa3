"""Whether a call means something; the same words on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from hippogpu.backends.values import Graph, PassagePart, SparseSeeds
from hippogpu.errors import UsageError
from hippogpu.types import AnyFloats

# Rows of seeds must sum to 1 within this; it leaves room for float32 rows of a million nodes.
SEED_SUM_TOLERANCE = 1e-3


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
    if len(seeds.indptr) != queries + 1:
        raise UsageError(f"Give the seeds of {queries} queries, one weight a node.")
    _check_seeds(graph, seeds)
    for name in ("queries", "slope", "offset"):
        if not np.all(np.isfinite(getattr(part, name))):
            raise UsageError(f"The '{name}' of the passage part must be finite.")


def check_push(graph: Graph, seeds: SparseSeeds, passages: int, damping: float, epsilon: float) -> None:
    """UsageError unless the call to push means something."""
    check_damping(damping)
    if not 0.0 < epsilon <= 1.0:
        raise UsageError(f"epsilon must be above 0 and at most 1. Got {epsilon}.")
    if not 0 <= passages <= graph.nodes:
        raise UsageError(f"Passages are the first of {graph.nodes} nodes. Got {passages} passages.")
    _check_seeds(graph, seeds)


def _check_seeds(graph: Graph, seeds: SparseSeeds) -> None:
    if not len(seeds.indptr) or int(seeds.indptr[-1]) != len(seeds.nodes) or len(seeds.nodes) != len(seeds.weights):
        raise UsageError(f"Give one weight a node of {len(seeds.nodes)} seeds. Got {len(seeds.weights)} weights.")
    if len(seeds.nodes) and (seeds.nodes.min() < 0 or seeds.nodes.max() >= graph.nodes):
        raise UsageError(f"Seeds must be nodes in [0, {graph.nodes}).")
    if not np.all(np.isfinite(seeds.weights)) or np.any(np.asarray(seeds.weights) < 0):
        raise UsageError("Weights of seeds must be finite and not negative.")


def check_topk(queries: AnyFloats, keys: Any, k: int) -> None:
    """UsageError unless the shapes agree and k is at least 1."""
    if k < 1:
        raise UsageError(f"k must be at least 1. Got {k}.")
    if queries.ndim != 2 or len(keys.shape) != 2 or queries.shape[1] != keys.shape[1]:
        raise UsageError(f"Queries and keys must be of one width. Got {queries.shape} and {keys.shape}.")


def no_number() -> UsageError:
    return UsageError("Scores must be numbers. Some are NaN: look for a vector that is not finite.")
