"""Phrases that mean nearly the same: for each phrase, its nearest ones above a cosine threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.config import IndexConfig
from hippogpu.text import alphanumerics
from hippogpu.types import NO_EDGES, AnyFloats, AnyInts, Bools, Edges, Floats, Longs

# A float32 product of two unit rows of a few thousand columns errs by less; pairs this close are decided in float64.
MARGIN = 1e-4
MIN_ALPHANUMERICS = 3
_PAIR_BYTES = 32 * 2**20
_SAME_ROWS = 65536

Progress = Callable[[int, int], None]


class KnownSynonyms(NamedTuple):
    """The synonyms of an earlier set of phrases, as find_synonyms found them under the same settings."""

    phrases: Sequence[str]
    vectors: Floats
    edges: Edges


def find_synonyms(
    phrases: Sequence[str],
    vectors: Floats,
    config: IndexConfig,
    *,
    known: KnownSynonyms | None = None,
    budget_bytes: int = 512 * 2**20,
    on_progress: Progress | None = None,
) -> Edges:
    """Directed edges phrase → its synonyms, sorted by (source, descending cosine, target).

    phrases : sorted and distinct · vectors : (E, w) float32 unit rows
    known   : spares the search of phrases that were there before with the same vector: they are compared with the new
              ones only, unless one of a full list of synonyms is gone. The result is the same, array for array
    A phrase of more than two alphanumeric characters looks for others with cosine ≥ synonym_threshold, itself and the
    empty phrase left out, at most synonym_cap of them; ties go to the lower number. Cosines are decided and returned
    from float64 products, so that the blocking changes nothing. HippoRAG 2, section 3.2.
    """
    searching = np.array([alphanumerics(p, config.text_rule) >= MIN_ALPHANUMERICS for p in phrases], bool)
    findable = np.array([bool(p) for p in phrases], bool)
    held = _held(known, phrases, vectors, config.synonym_cap)
    fresh_too = bool(np.any(~held.open))
    rows = np.flatnonzero(held.open & (searching | (held.fresh & fresh_too)))
    block = max(1, budget_bytes // (8 * max(len(phrases), 1)))
    found: list[_Pairs] = []
    gained: list[_Pairs] = []
    for start in range(0, len(rows), block):
        near = _near(rows[start : start + block], vectors, config.synonym_threshold)
        found.append(_nearest(near.where(searching[near.source] & findable[near.target]), config.synonym_cap))
        back = near.where(held.fresh[near.source] & ~held.open[near.target]).turned()
        gained.append(back.where(searching[back.source] & findable[back.target]))
        if on_progress:
            on_progress(min(start + block, len(rows)), len(rows))
    return _merged(held.edges, _joined(gained), _joined(found), vectors, config.synonym_cap)


class _Pairs(NamedTuple):
    """Pairs of phrases with their float64 cosine."""

    source: Longs
    target: Longs
    cosine: AnyFloats

    def where(self, which: Bools | Longs) -> _Pairs:
        return _Pairs(self.source[which], self.target[which], self.cosine[which])

    def turned(self) -> _Pairs:
        return _Pairs(self.target, self.source, self.cosine)


class _Held(NamedTuple):
    """What an earlier search leaves to be done.

    edges : its edges between phrases that are still there, by their present numbers, of the phrases that are not open
    open  : phrases whose synonyms are to be searched among all · fresh : those of them that no search has met yet
    """

    edges: Edges
    open: Bools
    fresh: Bools


def _held(known: KnownSynonyms | None, phrases: Sequence[str], vectors: Floats, cap: int) -> _Held:
    everything = np.ones(len(phrases), bool)
    if known is None or not len(known.phrases):
        return _Held(NO_EDGES, everything, everything)
    place = _places(known, phrases, vectors)
    fresh = everything.copy()
    fresh[place[place >= 0]] = False
    source, target = place[known.edges.source], place[known.edges.target]
    # A full list that lost one may have left out what comes next; one that was not full has left out nothing.
    full = np.bincount(known.edges.source, minlength=len(place)) >= cap
    short = source[(source >= 0) & (target < 0) & full[known.edges.source]]
    open_ = fresh.copy()
    open_[short] = True
    keep = (source >= 0) & (target >= 0)
    keep[keep] = ~open_[source[keep]]
    edges = Edges(source[keep].astype(np.int32), target[keep].astype(np.int32), known.edges.weight[keep])
    return _Held(edges, open_, fresh)


def _places(known: KnownSynonyms, phrases: Sequence[str], vectors: Floats) -> Longs:
    """The present number of each earlier phrase, −1 where it is gone or has another vector."""
    number = {phrase: i for i, phrase in enumerate(phrases)}
    place = np.fromiter((number.get(phrase, -1) for phrase in known.phrases), np.int64, len(known.phrases))
    for start in range(0, len(place), _SAME_ROWS):
        part = place[start : start + _SAME_ROWS]
        there = np.flatnonzero(part >= 0)
        same = np.all(vectors[part[there]] == known.vectors[start + there], axis=1)
        part[there[~same]] = -1
    return place


def _near(rows: Longs, vectors: Floats, threshold: float) -> _Pairs:
    """Pairs of some phrases with any other at or above the threshold: found by float32, decided in float64."""
    near = vectors[rows] @ vectors.T >= np.float32(threshold - MARGIN)
    near[np.arange(len(rows)), rows] = False
    which, target = np.nonzero(near)
    source = rows[which]
    cosine = _cosines(vectors, source, target)
    return _Pairs(source, target, cosine).where(cosine >= threshold)


def _nearest(pairs: _Pairs, cap: int) -> _Pairs:
    """At most cap pairs of each source, sorted by (source, descending cosine, target)."""
    order = np.lexsort((pairs.target, -pairs.cosine, pairs.source))
    ordered = pairs.where(order)
    return ordered.where(_rank_in_group(ordered.source) < cap)


def _merged(kept: Edges, gained: _Pairs, found: _Pairs, vectors: Floats, cap: int) -> Edges:
    """All edges, rows that gained some sorted and cut anew."""
    grown = np.zeros(len(vectors), bool)
    grown[gained.source] = True
    changed = grown[kept.source]
    source, target = kept.source[changed].astype(np.int64), kept.target[changed].astype(np.int64)
    again = _Pairs(source, target, _cosines(vectors, source, target))
    anew = _joined([_nearest(_joined([again, gained]), cap), found])
    edges = Edges(
        np.concatenate([kept.source[~changed], anew.source.astype(np.int32)]),
        np.concatenate([kept.target[~changed], anew.target.astype(np.int32)]),
        np.concatenate([kept.weight[~changed], anew.cosine.astype(np.float32)]),
    )
    order = np.argsort(edges.source, kind="stable")
    return Edges(edges.source[order], edges.target[order], edges.weight[order])


def _cosines(vectors: Floats, source: AnyInts, target: AnyInts) -> AnyFloats:
    """Float64 inner products of pairs of rows, as many pairs at a time as 32 MiB hold."""
    cosines = np.empty(len(source), np.float64)
    pairs = max(1, _PAIR_BYTES // (16 * vectors.shape[1]))
    for start in range(0, len(source), pairs):
        part = slice(start, start + pairs)
        left = vectors[source[part]].astype(np.float64)
        cosines[part] = np.einsum("ij,ij->i", left, vectors[target[part]].astype(np.float64))
    return cosines


def _rank_in_group(groups: AnyInts) -> AnyInts:
    """The place of each element within its run of equal values, counted from 0."""
    places = np.arange(len(groups))
    first = np.ones(len(groups), bool)
    first[1:] = groups[1:] != groups[:-1]
    return places - np.maximum.accumulate(np.where(first, places, 0))


def _joined(parts: Sequence[_Pairs]) -> _Pairs:
    if not parts:
        none = np.empty(0, np.int64)
        return _Pairs(none, none, np.empty(0, np.float64))
    return _Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))
