"""Phrases that mean nearly the same: for each phrase, its nearest ones above a cosine threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hippogpu.config import IndexConfig
from hippogpu.text import alphanumerics
from hippogpu.types import AnyFloats, AnyInts, Bools, Edges, Floats

# A float32 product of two unit rows of a few thousand columns errs by less; pairs this close are decided in float64.
MARGIN = 1e-4
MIN_ALPHANUMERICS = 3
_PAIR_BYTES = 32 * 2**20

Progress = Callable[[int, int], None]


def find_synonyms(
    phrases: Sequence[str],
    vectors: Floats,
    config: IndexConfig,
    *,
    budget_bytes: int = 512 * 2**20,
    on_progress: Progress | None = None,
) -> Edges:
    """Directed edges phrase → its synonyms, sorted by (source, descending cosine, target).

    vectors : (E, w) float32 unit rows
    A phrase of more than two alphanumeric characters looks for others with cosine ≥ synonym_threshold, itself and the
    empty phrase left out, at most synonym_cap of them; ties go to the lower number. Cosines are decided and returned
    from float64 products, so that the blocking changes nothing. HippoRAG 2, section 3.2.
    """
    searching = np.array([alphanumerics(p, config.text_rule) >= MIN_ALPHANUMERICS for p in phrases], bool)
    findable = np.array([bool(p) for p in phrases], bool)
    queries = np.flatnonzero(searching)
    block = max(1, budget_bytes // (8 * max(len(phrases), 1)))
    parts: list[Edges] = []
    for start in range(0, len(queries), block):
        rows = queries[start : start + block]
        parts.append(_nearest(rows, vectors, findable, config.synonym_threshold, config.synonym_cap))
        if on_progress:
            on_progress(min(start + block, len(queries)), len(queries))
    return _joined(parts)


def _nearest(rows: AnyInts, vectors: Floats, findable: Bools, threshold: float, cap: int) -> Edges:
    """The synonyms of some phrases: candidates from a float32 product, decided in float64."""
    near = vectors[rows] @ vectors.T >= np.float32(threshold - MARGIN)
    near[:, ~findable] = False
    near[np.arange(len(rows)), rows] = False
    which, target = np.nonzero(near)
    source = rows[which]
    cosine = _cosines(vectors, source, target)
    keep = cosine >= threshold
    source, target, cosine = source[keep], target[keep], cosine[keep]
    order = np.lexsort((target, -cosine, source))
    source, target, cosine = source[order], target[order], cosine[order]
    kept = _rank_in_group(source) < cap
    return Edges(source[kept].astype(np.int32), target[kept].astype(np.int32), cosine[kept].astype(np.float32))


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


def _joined(parts: Sequence[Edges]) -> Edges:
    if not parts:
        none = np.empty(0, np.int32)
        return Edges(none, none, np.empty(0, np.float32))
    return Edges(*(np.concatenate(column) for column in zip(*parts, strict=True)))
