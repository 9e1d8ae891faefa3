"""Dense retrieval: passages by inner product with the question."""

from __future__ import annotations

from hippogpu.config import SearchConfig
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, min_max
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored
from hippogpu.types import AnyFloats


def rank_dense(
    loaded: Loaded,
    asked: Asked,
    *,
    k: int,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    clock: Clock,
) -> list[Ranked]:
    """The k passages nearest to each question; the score is the cosine."""
    with clock("passages"):
        best = loaded.backend.topk(asked.queries.to_passages, loaded.passages, k)
    return [Ranked(rows, scores) for rows, scores in zip(best.ids, best.scores, strict=True)]


def score_dense(
    loaded: Loaded,
    asked: Asked,
    *,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    clock: Clock,
) -> Scored:
    """Min-max scores of all passages."""
    with clock("passages"):
        scores = passage_scores(loaded, asked.queries)
    return Scored(scores, [Ranked(NO_ROWS, NO_SCORES)] * len(scores))


def passage_scores(loaded: Loaded, queries: Queries) -> AnyFloats:
    """Min-max score of every passage for each question, (B, P) float64 in [0, 1]. HippoRAG 2, section 3.5."""
    backend = loaded.backend
    scores = backend.get(backend.scores(queries.to_passages, loaded.passages))
    return min_max(scores, scores.min(axis=1), scores.max(axis=1))


DENSE = Method("dense", rank_dense, score_dense, lambda loaded, config: Needs(passages=True))
