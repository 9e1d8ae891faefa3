"""Pairs of near phrases: which are wanted, which are the nearest of a phrase, and how near exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.precision import Vectors, float_rows
from hippogpu.types import AnyFloats, AnyInts, Bools, Floats, Ints

# float64 copies of the rows of pairs that are multiplied at a time.
_PRODUCT_BYTES = 8 * 2**20
PAIR_BYTES = 16


class Pairs(NamedTuple):
    """Directed pairs of phrases, (pairs,) each: int32, int32, and their cosine in float64."""

    source: Ints
    target: Ints
    cosine: AnyFloats

    def where(self, which: Bools | AnyInts | slice) -> Pairs:
        return Pairs(self.source[which], self.target[which], self.cosine[which])

    def turned(self) -> Pairs:
        return Pairs(self.target, self.source, self.cosine)


NO_PAIRS = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64))


class Wanted(NamedTuple):
    """Who looks for whom, a bool a phrase each.

    searching : looks for synonyms · findable : may be one · open : looks among all · fresh : no phrase that is not open
    has met it yet
    """

    searching: Bools
    findable: Bools
    open: Bools
    fresh: Bools

    def pairs(self, source: AnyInts, target: AnyInts) -> Bools:
        """Which of the directed pairs are to be found."""
        wanted: Bools = self.searching[source] & self.findable[target] & (self.open[source] | self.fresh[target])
        return wanted


def nearest(pairs: Pairs, cap: int) -> Pairs:
    """At most cap pairs of each source, sorted by (source, descending cosine, target)."""
    order = np.lexsort((pairs.target, -pairs.cosine, pairs.source))
    ordered = pairs.where(order)
    return ordered.where(place_in_run(ordered.source) < cap)


def place_in_run(groups: AnyInts) -> AnyInts:
    """The place of each element within its run of equal values, counted from 0."""
    places = np.arange(len(groups))
    first = np.ones(len(groups), bool)
    first[1:] = groups[1:] != groups[:-1]
    return places - np.maximum.accumulate(np.where(first, places, 0))


def joined(parts: Sequence[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True))) if parts else NO_PAIRS


def cosines(left: Floats, right: Floats, i: AnyInts, j: AnyInts) -> AnyFloats:
    """Float64 inner products of left[i] and right[j], rows of float32."""
    found = np.empty(len(i), np.float64)
    pairs = max(1, _PRODUCT_BYTES // (16 * left.shape[1]))
    for start in range(0, len(i), pairs):
        part = slice(start, start + pairs)
        found[part] = np.einsum("ij,ij->i", left[i[part]].astype(np.float64), right[j[part]].astype(np.float64))
    return found


def stored_cosines(vectors: Vectors, source: AnyInts, target: AnyInts) -> AnyFloats:
    """The same of pairs of stored rows, a few thousand pairs at a time."""
    found = np.empty(len(source), np.float64)
    pairs = max(1, _PRODUCT_BYTES // (16 * vectors.shape[1]))
    for start in range(0, len(source), pairs):
        part = slice(start, start + pairs)
        left, right = float_rows(vectors, source[part]), float_rows(vectors, target[part])
        found[part] = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
    return found
