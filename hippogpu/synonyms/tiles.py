"""One product of two blocks of vectors: which pairs of it are near, decided so that no blocking shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hippogpu.synonyms.pairs import Pairs, Wanted, cosines, joined
from hippogpu.types import AnyFloats, AnyInts, Bools, Floats, Ints

# A float32 product of two unit rows of a few thousand columns errs by less; pairs this close are decided in float64.
MARGIN = 1e-4
# Rows a side: the product and what is compared with the threshold stay in the cache.
ROWS = 1024

Keep = Callable[[AnyInts, AnyInts], Bools]


class Rows(NamedTuple):
    """Some phrases: their numbers (m,) int32 and their vectors (m, w) float32."""

    numbers: Ints
    vectors: Floats

    def part(self, which: slice) -> Rows:
        return Rows(self.numbers[which], self.vectors[which])


def near_pairs(left: Rows, right: Rows, *, keep: Keep, wanted: Wanted, threshold: float, cap: int) -> Pairs:
    """Directed pairs between two blocks, both ways, whose cosine reaches the threshold.

    keep : which pairs (i, j) of rows of the blocks count, so that none counts twice; it is asked of near ones only
    All of the best cap of each phrase among those of the other block are there; of more, only some. Found by a float32
    product, decided in float64.
    """
    near = left.vectors @ right.vectors.T
    flat = np.flatnonzero(near >= np.float32(threshold - MARGIN))
    if not len(flat):
        return joined([])
    i, j = np.divmod(flat, near.shape[1])
    scores = near.ravel()[flat]
    del near
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
