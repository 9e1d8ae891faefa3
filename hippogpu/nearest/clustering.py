"""Centroids of vectors by k-means, without chance: the same vectors give the same centroids, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hippogpu.nearest.nearest_row import nearest_rows, table_of
from hippogpu.types import AnyFloats, AnyInts, Floats, Ints

OnRound = Callable[[int, int], None]


def evenly_spaced(rows: int, count: int) -> AnyInts:
    """`count` numbers of [0, rows), ascending, each but where count > rows once."""
    return np.arange(count, dtype=np.int64) * rows // count


def centroids_of(
    vectors: Floats, count: int, *, rounds: int, unit: bool = False, on_round: OnRound | None = None
) -> Floats:
    """`count` means (count, w) of near vectors (n, w): Lloyd's rounds from vectors at even spaces.

    A centroid that nothing is near to takes the place of the vector farthest from its own (ties: the lower one). With
    `unit` all have length 1, so that the nearest by inner product is the nearest by angle.
    """
    centroids = np.ascontiguousarray(vectors[evenly_spaced(len(vectors), count)], np.float32)
    squares = (vectors.astype(np.float32) ** 2).sum(axis=1)
    for number in range(rounds):
        nearest, scores = nearest_rows(vectors, table_of(centroids))
        centroids = _means(vectors, nearest, squares - 2 * scores, count)
        if unit:
            lengths = np.sqrt((centroids.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
            centroids = (centroids / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
        if on_round is not None:
            on_round(number + 1, rounds)
    return centroids


def _means(vectors: Floats, nearest: Ints, distances: AnyFloats, count: int) -> Floats:
    sizes = np.bincount(nearest, minlength=count)
    means = np.empty((count, vectors.shape[1]), np.float32)
    for axis in range(vectors.shape[1]):
        sums = np.bincount(nearest, weights=vectors[:, axis], minlength=count)
        means[:, axis] = sums / np.maximum(sizes, 1)
    empty = np.flatnonzero(sizes == 0)
    farthest = np.lexsort((np.arange(len(distances)), -distances))[: len(empty)]
    means[empty[: len(farthest)]] = vectors[farthest]
    return means
