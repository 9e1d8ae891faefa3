"""HippoRAG 1's uncertainty ensemble: where an entity was linked to a phrase unlike it, dense scores help."""

from __future__ import annotations

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.hippo1 import HIPPO1
from hippogpu.methods.loaded import Clock, Loaded, Ranked
from hippogpu.methods.seam import Asked, Method, Scored, best_of
from hippogpu.types import AnyFloats


def rank_ensemble(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
    """The k best passages by the scores of score_ensemble."""
    return best_of(loaded, score_ensemble(loaded, asked, config=config, clock=clock), k=k, clock=clock)


def score_ensemble(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
    """hippo1's scores, min-max over all passages; their mean with the dense ones where a link is uncertain.

    A question is uncertain when the least cosine between an entity and its phrase is at most `certain`. One that
    hippo1 ranks by dense similarity alone stays so, and says so. HippoRAG 1, appendix on the ensemble.
    """
    scored = HIPPO1.score(loaded, asked, config=config, clock=clock)
    with clock("passages"):
        dense = passage_scores(loaded, asked.queries)
    alone = np.array([certain(why, config) for why in scored.why], bool)[:, None]
    own = spread(scored.scores)
    return Scored(np.where(alone, own, (own + dense) / 2), scored.why)


def certain(why: Ranked, config: SearchConfig) -> bool:
    """Whether every entity was linked to a phrase more alike than the threshold."""
    return why.fallback is None and min(entity.similarity for entity in why.entities) > config.certain


def spread(scores: AnyFloats) -> AnyFloats:
    """Each row min-max, in [0, 1]; ones where all its scores are equal."""
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    scaled: AnyFloats = np.divide(scores - low, high - low, out=np.ones(scores.shape), where=high > low)
    return scaled


ENSEMBLE = Method("ensemble", rank_ensemble, score_ensemble, HIPPO1.needs)
