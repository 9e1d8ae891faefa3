"""The k greatest scores of each row on the device, with the tie rule and the extremes.

xp is CuPy, or NumPy where the kernels are compiled for the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hippogpu.backends._kernels import Kernels
from hippogpu.backends.checks import check_topk, no_number
from hippogpu.backends.values import TopK
from hippogpu.precision import float_rows, is_small

THREADS = 512
# Keys that a block sorts in shared memory; for more of them whole rows are sorted.
MOST_CHOSEN = 2048
# Scores of a chunk, at least: below that a block has more to sort than to read.
LEAST_CHUNK = 2**14
# Blocks that fill a large device; a row is cut into more chunks only while there are fewer.
ENOUGH_BLOCKS = 512


def best_of_rows(xp: Any, kernels: Kernels, scores: Any, k: int, *, numbers: Any = None) -> TopK:
    """TopK of (B, columns) float32 scores, k ≤ columns; numbers (B, columns) int32 name them, ascending within ties.

    UsageError for a score that is not a number.
    """
    rows, columns = scores.shape
    scores = xp.ascontiguousarray(scores, dtype=xp.float32)
    if k > MOST_CHOSEN:
        best = _best_by_sorting(xp, scores, k, numbers)
    elif rows and columns:
        best = _best_by_chunks(xp, kernels, scores, k, numbers)
    else:
        shape = (rows, min(k, columns))
        nothing = xp.full(rows, np.inf, xp.float32)
        return TopK(xp.empty(shape, xp.int32), xp.empty(shape, xp.float32), nothing, -nothing)
    if bool((xp.isnan(best.low) | xp.isnan(best.high)).any()):
        raise no_number()
    return best


def _best_by_chunks(xp: Any, kernels: Kernels, scores: Any, k: int, numbers: Any) -> TopK:
    """The best of each chunk, a block each, then the best of those."""
    rows, columns = scores.shape
    chunks = min(max(1, ENOUGH_BLOCKS // rows), max(1, columns // max(LEAST_CHUNK, 4 * k)))
    best = _launch(xp, kernels, scores, k, numbers, chunks)
    if chunks == 1:
        return best
    # Chunks come in ascending order and each in descending score, so the place among them keeps the tie rule.
    merged = _launch(xp, kernels, best.scores, k, best.ids, 1)
    return TopK(merged.ids, merged.scores, best.low, best.high)


def _launch(xp: Any, kernels: Kernels, scores: Any, k: int, numbers: Any, chunks: int) -> TopK:
    """The best k of every chunk, (B, chunks · k), and the extremes of every row."""
    rows, columns = scores.shape
    chunk = -(-columns // chunks)
    chunks = -(-columns // chunk)
    values = xp.empty((rows, chunks * k), xp.float32)
    ids = xp.empty((rows, chunks * k), xp.int32)
    low, high = xp.empty((rows, chunks), xp.float32), xp.empty((rows, chunks), xp.float32)
    # An unused pointer still must point somewhere.
    named = ids if numbers is None else xp.ascontiguousarray(numbers, dtype=xp.int32)
    kernels.launch(
        "topk_rows", (rows, chunks), THREADS,
        scores, named, int(numbers is not None), columns, chunk, k, values, ids, low, high,
    )  # fmt: skip
    return TopK(ids, values, low.min(axis=1), high.max(axis=1))


def _best_by_sorting(xp: Any, scores: Any, k: int, numbers: Any) -> TopK:
    """The same by a stable sort of whole rows; NaN shows in the extremes."""
    places = xp.argsort(-scores, axis=1, kind="stable")[:, :k]
    ids = places if numbers is None else xp.take_along_axis(numbers, places, axis=1)
    best = xp.take_along_axis(scores, places, axis=1)
    return TopK(ids.astype(xp.int32), best, scores.min(axis=1), scores.max(axis=1))


def topk_in_blocks(xp: Any, kernels: Kernels, queries: Any, keys: Any, k: int, *, budget_bytes: int) -> TopK:
    """TopK of float32 queries (B, w) among keys (rows, w), over blocks of keys that fit the budget.

    Rows that are stored in fewer bytes become float32 a block at a time.
    """
    check_topk(queries, keys, k)
    count = len(queries)
    turned = keys.shape[1] if is_small(keys) else 0
    rows = max(1, budget_bytes // (4 * max(count + turned, 1)))
    total = best_of_rows(xp, kernels, xp.empty((count, 0), xp.float32), k)
    for start in range(0, keys.shape[0], rows):
        scores = queries @ float_rows(keys, slice(start, start + rows)).T
        here = best_of_rows(xp, kernels, scores, min(k, scores.shape[1]))
        total = _merged(xp, kernels, total, TopK(here.ids + np.int32(start), *here[1:]), k)
    return total


def _merged(xp: Any, kernels: Kernels, earlier: TopK, later: TopK, k: int) -> TopK:
    """The best of two blocks; the earlier has the lower numbers and stands first, so the tie rule survives."""
    low, high = xp.minimum(earlier.low, later.low), xp.maximum(earlier.high, later.high)
    if not earlier.ids.shape[1]:
        return TopK(later.ids, later.scores, low, high)
    ids = xp.concatenate([earlier.ids, later.ids], axis=1)
    scores = xp.concatenate([earlier.scores, later.scores], axis=1)
    best = best_of_rows(xp, kernels, scores, min(k, scores.shape[1]), numbers=ids)
    return TopK(best.ids, best.scores, low, high)
