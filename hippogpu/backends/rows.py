"""The greatest entries of rows on the host, with the tie rule: ties by lower number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hippogpu.backends.checks import check_topk, no_number
from hippogpu.backends.values import TopK
from hippogpu.errors import UsageError
from hippogpu.precision import ScaledRows, Vectors, is_small, part
from hippogpu.types import AnyFloats, AnyInts, Ints


def put_rows(array: Vectors | AnyFloats, dtype: Any) -> Any:
    """The array of that type; rows that are stored in fewer bytes as they are. Nothing that fits already is copied."""
    if isinstance(array, ScaledRows):
        return ScaledRows(np.ascontiguousarray(array.values), np.ascontiguousarray(array.scales))
    return np.ascontiguousarray(array, array.dtype if is_small(array) else dtype)


def best_of_row(row: AnyFloats, k: int) -> AnyInts:
    """Numbers of the k greatest values, descending, ties by lower number; k is at most len(row)."""
    if k == len(row):
        return np.argsort(-row, kind="stable")
    least = np.partition(row, len(row) - k)[len(row) - k]
    above = np.flatnonzero(row > least)
    level = np.flatnonzero(row == least)[: k - len(above)]
    chosen = np.concatenate([above, level])
    return chosen[np.lexsort((chosen, -row[chosen]))]


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
    keys: Vectors | AnyFloats,
    k: int,
    *,
    budget_bytes: int,
    multiply: Callable[[AnyFloats, Any], AnyFloats],
) -> TopK:
    """TopK over blocks of keys, so that no product exceeds the budget."""
    check_topk(queries, keys, k)
    rows = max(1, budget_bytes // (8 * max(len(queries), 1)))
    low = np.full(len(queries), np.inf, queries.dtype)
    high = np.full(len(queries), -np.inf, queries.dtype)
    ids = np.empty((len(queries), 0), np.int32)
    best = np.empty((len(queries), 0), queries.dtype)
    for start in range(0, keys.shape[0], rows):
        scores = multiply(queries, part(keys, slice(start, start + rows)))
        np.minimum(low, scores.min(axis=1), out=low)
        np.maximum(high, scores.max(axis=1), out=high)
        here = select_rows(scores, k)
        ids = np.concatenate([ids, here + np.int32(start)], axis=1)
        best = np.concatenate([best, np.take_along_axis(scores, here, axis=1)], axis=1)
        # Earlier blocks hold lower numbers and stand first, so the tie rule survives the merge.
        order = select_rows(best, k)
        ids, best = np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)
    return TopK(ids, best, low, high)
