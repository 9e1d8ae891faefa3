"""The k greatest scores of each row on the device, with the tie rule and the extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hippogpu.backends._kernels import Kernels
from hippogpu.backends.seam import TopK, check_topk, no_number

THREADS = 512
# Keys that a block sorts in shared memory; for more of them whole rows are sorted.
MOST_CHOSEN = 2048
# Scores of a chunk, at least: below that a block has more to sort than to read.
LEAST_CHUNK = 2**14
# Blocks that fill a large device; a row is cut into more chunks only while there are fewer.
ENOUGH_BLOCKS = 512


def best_of_rows(cupy: Any, kernels: Kernels, scores: Any, k: int, *, numbers: Any = None) -> TopK:
    """TopK of (B, columns) float32 scores, k ≤ columns; numbers (B, columns) int32 name them, ascending within ties.

    UsageError for a score that is not a number.
    """
    rows, columns = scores.shape
    scores = cupy.ascontiguousarray(scores, dtype=cupy.float32)
    if k > MOST_CHOSEN:
        best = _best_by_sorting(cupy, scores, k, numbers)
    elif rows and columns:
        best = _best_by_chunks(cupy, kernels, scores, k, numbers)
    else:
        shape = (rows, min(k, columns))
        nothing = cupy.full(rows, np.inf, cupy.float32)
        return TopK(cupy.empty(shape, cupy.int32), cupy.empty(shape, cupy.float32), nothing, -nothing)
    if bool((cupy.isnan(best.low) | cupy.isnan(best.high)).any()):
        raise no_number()
    return best


def _best_by_chunks(cupy: Any, kernels: Kernels, scores: Any, k: int, numbers: Any) -> TopK:
    """The best of each chunk, a block each, then the best of those."""
    rows, columns = scores.shape
    chunks = min(max(1, ENOUGH_BLOCKS // rows), max(1, columns // max(LEAST_CHUNK, 4 * k)))
    best = _launch(cupy, kernels, scores, k, numbers, chunks)
    if chunks == 1:
        return best
    # Chunks come in ascending order and each in descending score, so the place among them keeps the tie rule.
    merged = _launch(cupy, kernels, best.scores, k, best.ids, 1)
    return TopK(merged.ids, merged.scores, best.low, best.high)


def _launch(cupy: Any, kernels: Kernels, scores: Any, k: int, numbers: Any, chunks: int) -> TopK:
    """The best k of every chunk, (B, chunks · k), and the extremes of every row."""
    rows, columns = scores.shape
    chunk = -(-columns // chunks)
    chunks = -(-columns // chunk)
    values = cupy.empty((rows, chunks * k), cupy.float32)
    ids = cupy.empty((rows, chunks * k), cupy.int32)
    low, high = cupy.empty((rows, chunks), cupy.float32), cupy.empty((rows, chunks), cupy.float32)
    # An unused pointer still must point somewhere.
    named = ids if numbers is None else cupy.ascontiguousarray(numbers, dtype=cupy.int32)
    kernels.launch(
        "topk_rows", (rows, chunks), THREADS,
        scores, named, int(numbers is not None), columns, chunk, k, values, ids, low, high,
    )  # fmt: skip
    return TopK(ids, values, low.min(axis=1), high.max(axis=1))


def _best_by_sorting(cupy: Any, scores: Any, k: int, numbers: Any) -> TopK:
    """The same by a stable sort of whole rows; NaN shows in the extremes."""
    # CuPy's argsort is stable, so equal scores keep their order.
    places = cupy.argsort(-scores, axis=1)[:, :k]
    ids = places if numbers is None else cupy.take_along_axis(numbers, places, axis=1)
    best = cupy.take_along_axis(scores, places, axis=1)
    return TopK(ids.astype(cupy.int32), best, scores.min(axis=1), scores.max(axis=1))


def topk_in_blocks(cupy: Any, kernels: Kernels, queries: Any, keys: Any, k: int, *, budget_bytes: int) -> TopK:
    """TopK of queries (B, w) among keys (rows, w), float32, over blocks of keys whose product fits the budget."""
    check_topk(queries, keys, k)
    count = len(queries)
    rows = max(1, budget_bytes // (4 * max(count, 1)))
    total = best_of_rows(cupy, kernels, cupy.empty((count, 0), cupy.float32), k)
    for start in range(0, len(keys), rows):
        scores = queries @ keys[start : start + rows].T
        here = best_of_rows(cupy, kernels, scores, min(k, scores.shape[1]))
        total = _merged(cupy, kernels, total, TopK(here.ids + np.int32(start), *here[1:]), k)
    return total


def _merged(cupy: Any, kernels: Kernels, earlier: TopK, later: TopK, k: int) -> TopK:
    """The best of two blocks; the earlier has the lower numbers and stands first, so the tie rule survives."""
    low, high = cupy.minimum(earlier.low, later.low), cupy.maximum(earlier.high, later.high)
    if not earlier.ids.shape[1]:
        return TopK(later.ids, later.scores, low, high)
    ids = cupy.concatenate([earlier.ids, later.ids], axis=1)
    scores = cupy.concatenate([earlier.scores, later.scores], axis=1)
    best = best_of_rows(cupy, kernels, scores, min(k, scores.shape[1]), numbers=ids)
    return TopK(best.ids, best.scores, low, high)
