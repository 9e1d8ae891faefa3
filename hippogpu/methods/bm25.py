"""BM25: passages by the words they share with the question."""

from __future__ import annotations

from hippogpu.config import SearchConfig
from hippogpu.methods.lexical import lexical_scores
from hippogpu.methods.loaded import Clock, Loaded, Ranked
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored, best_of

NO_WORD = "no word of the question that tells passages apart is in any of them"


def rank_bm25(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
    """The k passages with the greatest BM25 score; one that shares no word with the question is no hit.

    A question of which no passage has a word gets no passages, and says so.
    """
    ranked = best_of(loaded, score_bm25(loaded, asked, config=config, clock=clock), k=k, clock=clock)
    return [_without_zeros(row) for row in ranked]


def score_bm25(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
    """BM25 scores of all passages."""
    with clock("lexical"):
        scores = lexical_scores(loaded, asked.texts, config=config)
    fallback = [None if row.any() else NO_WORD for row in scores]
    return Scored(scores, [Ranked(NO_ROWS, NO_SCORES, fallback=reason) for reason in fallback])


def _without_zeros(ranked: Ranked) -> Ranked:
    shared = ranked.scores > 0
    return ranked._replace(rows=ranked.rows[shared], scores=ranked.scores[shared])


BM25 = Method("bm25", rank_bm25, score_bm25, lambda loaded, config: Needs())
