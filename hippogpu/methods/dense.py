"""Dense retrieval: passages by inner product with the question."""

from __future__ import annotations

from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, min_max
from hippogpu.types import AnyFloats


def rank_dense(loaded: Loaded, queries: Queries, *, k: int, clock: Clock) -> list[Ranked]:
    """The k passages nearest to each question; the score is the cosine."""
    with clock("passages"):
        best = loaded.backend.topk(queries.to_passages, loaded.passages, k)
    return [Ranked(rows, scores) for rows, scores in zip(best.ids, best.scores, strict=True)]


def passage_scores(loaded: Loaded, queries: Queries) -> AnyFloats:
    """Min-max score of every passage for each question, (B, P) float64 in [0, 1]. HippoRAG 2, section 3.5."""
    backend = loaded.backend
    scores = backend.get(backend.scores(queries.to_passages, loaded.passages))
    return min_max(scores, scores.min(axis=1), scores.max(axis=1))
