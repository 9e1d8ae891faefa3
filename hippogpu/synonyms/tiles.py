"""One product of two blocks of vectors: which pairs of it are near, decided so that no blocking shows."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np

from hippogpu.backends.cuda_near import near_on_device
from hippogpu.backends.devices import find_device
from hippogpu.config.retrieval import BackendName
from hippogpu.synonyms.pairs import Pairs, Wanted, cosines, joined
from hippogpu.types import AnyFloats, AnyInts, Bools, Floats, Ints, Longs

# A float32 product of two unit rows of a few thousand columns errs by less; pairs this close are decided in float64.
MARGIN = 1e-4
# Rows a side: the product and what is compared with the threshold stay in the cache.
ROWS = 1024
# The same on a device, whose products are worth a launch only when they are large, and bytes of one product.
_LEAST_DEVICE_ROWS, _MOST_DEVICE_ROWS, _DEVICE_BYTES = 256, 8192, 8

Keep = Callable[[AnyInts, AnyInts], Bools]
FindNear = Callable[[Floats, Floats, float], tuple[Longs, Floats]]
"""From rows (m, w) and (c, w) float32 and a number: places (row · c + column) and values of products that reach it."""


class Products(NamedTuple):
    """Where blocks are multiplied, and so many rows a side at a time."""

    find: FindNear
    rows: int


def near_on_host(left: Floats, right: Floats, least: float) -> tuple[Longs, Floats]:
    """FindNear by BLAS on the calling thread."""
    products = left @ right.T
    flat = np.flatnonzero(products >= np.float32(least))
    return flat, products.ravel()[flat]


def products_on(backend: BackendName, budget_bytes: int) -> Products:
    """The device for cuda, and for auto where one answers; else the host. The device's memory stays in the budget."""
    if backend == "cuda" or (backend == "auto" and find_device().device is not None):
        fit = isqrt(budget_bytes // _DEVICE_BYTES)
        return Products(near_on_device, max(_LEAST_DEVICE_ROWS, min(fit, _MOST_DEVICE_ROWS)))
    return Products(near_on_host, ROWS)


class Rows(NamedTuple):
    """Some phrases: their numbers (m,) int32 and their vectors (m, w) float32."""

    numbers: Ints
    vectors: Floats

    def part(self, which: slice) -> Rows:
        return Rows(self.numbers[which], self.vectors[which])


def near_pairs(
    left: Rows,
    right: Rows,
    *,
    keep: Keep,
    wanted: Wanted,
    threshold: float,
    cap: int,
    find: FindNear = near_on_host,
) -> Pairs:
    """Directed pairs between two blocks, both ways, whose cosine reaches the threshold.

    keep : which pairs (i, j) of rows of the blocks count, so that none counts twice; it is asked of near ones only
    find : finds pairs by a float32 product; they are decided in float64
    All of the best cap of each phrase among those of the other block are there; of more, only some.
    """
    flat, scores = find(left.vectors, right.vectors, threshold - MARGIN)
    if not len(flat):
        return joined([])
    i, j = np.divmod(flat, len(right.numbers))
    which = np.flatnonzero(keep(i, j))
    i, j, scores = i[which], j[which], scores[which]
    source, target = left.numbers[i], right.numbers[j]
    there = _contending(i, scores, wanted.pairs(source, target), cap)
    back = _contending(j, scores, wanted.pairs(target, source), cap)
    which = np.flatnonzero(there | back)
    exact = np.zeros(len(i), np.float64)
    exact[which] = cosines(left.vectors, right.vectors, i[which], j[which])
    reached = exact >= threshold
    pairs = Pairs(source, target, exact)
    return joined([pairs.where(there & reached), pairs.where(back & reached).turned()])


def _contending(groups: AnyInts, scores: AnyFloats, which: Bools, cap: int) -> Bools:
    """Which may be among the best cap of their group, for all that a float32 score can tell."""
    chosen = np.flatnonzero(which)
    if len(chosen) <= cap:
        return which
    groups, scores = groups[chosen], scores[chosen]
    counts = np.bincount(groups)
    if counts.max() <= cap:
        return which
    # By group, and inside by descending score: a score is at most 1, and a little for rounding.
    order = np.argsort(groups * 4.0 - scores, kind="stable")
    firsts = np.cumsum(counts) - counts
    least = np.full(len(counts), -np.inf)
    crowded = np.flatnonzero(counts > cap)
    if cap:
        least[crowded] = scores[order[firsts[crowded] + cap - 1]] - 2 * MARGIN
    else:
        least[crowded] = np.inf
    contending = np.zeros(len(which), bool)
    contending[chosen[scores >= least[groups]]] = True
    return contending
