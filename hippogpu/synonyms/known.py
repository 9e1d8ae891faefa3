"""What an earlier search spares: synonyms of phrases that are still there, encoded as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.precision import Vectors, float_rows
from hippogpu.types import NO_EDGES, Bools, Edges, Longs

_SAME_ROWS = 65536


class KnownSynonyms(NamedTuple):
    """The synonyms of an earlier set of phrases, as find_synonyms found them under the same settings."""

    phrases: Sequence[str]
    vectors: Vectors
    edges: Edges


class Held(NamedTuple):
    """What an earlier search leaves to be done.

    edges : its edges between phrases that are still there, by their present numbers, of the phrases that are not open
    open  : phrases whose synonyms are to be searched among all · fresh : those of them that no search has met yet
    """

    edges: Edges
    open: Bools
    fresh: Bools


def held(known: KnownSynonyms | None, phrases: Sequence[str], vectors: Vectors, cap: int) -> Held:
    everything = np.ones(len(phrases), bool)
    if known is None or not len(known.phrases):
        return Held(NO_EDGES, everything, everything)
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
    return Held(edges, open_, fresh)


def _places(known: KnownSynonyms, phrases: Sequence[str], vectors: Vectors) -> Longs:
    """The present number of each earlier phrase, −1 where it is gone or has another vector."""
    place = np.full(len(known.phrases), -1, np.int64)
    # Both are sorted, so one pass over both finds what they share, and neither is held.
    number, later = -1, iter(enumerate(phrases))
    phrase = ""
    for row, earlier in enumerate(known.phrases):
        while number < 0 or phrase < earlier:
            number, phrase = next(later, (len(phrases), earlier))
        if number < len(phrases) and phrase == earlier:
            place[row] = number
    for start in range(0, len(place), _SAME_ROWS):
        part = place[start : start + _SAME_ROWS]
        there = np.flatnonzero(part >= 0)
        same = np.all(float_rows(vectors, part[there]) == float_rows(known.vectors, start + there), axis=1)
        part[there[~same]] = -1
    return place
