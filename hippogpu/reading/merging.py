"""Rankings of several searches for one question as one ranking. IRCoT, section 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hippogpu.types import Hit

MergeRule = Literal["rank", "min-max"]


def merge(searches: Sequence[Sequence[Hit]], *, rule: MergeRule = "rank") -> tuple[Hit, ...]:
    """Every passage once, by the best score it had in any search; ties by the earlier search, then the better place.

    The scores of two searches cannot be compared as they are: one may hold PageRank mass, the next, which fell back,
    cosines. So each search is put on one scale first:
    rank     1 ÷ place. Whatever the method, the first of each search counts 1, the second a half, …
    min-max  the search's scores from 0 (its last) to 1 (its first); all 1 where they are equal
    """
    best: dict[str, tuple[float, int, int]] = {}
    hits: dict[str, Hit] = {}
    for number, search in enumerate(searches):
        for place, (hit, score) in enumerate(zip(search, _scaled(search, rule), strict=True)):
            key = (-score, number, place)
            if hit.passage.id not in best or key < best[hit.passage.id]:
                best[hit.passage.id] = key
                hits[hit.passage.id] = Hit(hit.passage, score)
    return tuple(hits[id_] for id_ in sorted(best, key=lambda id_: best[id_]))


def _scaled(search: Sequence[Hit], rule: MergeRule) -> list[float]:
    if rule == "rank":
        return [1 / (place + 1) for place in range(len(search))]
    scores = [hit.score for hit in search]
    low, span = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    return [(score - low) / span if span > 0 else 1.0 for score in scores]
