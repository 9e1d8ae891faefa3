"""Reciprocal-rank fusion: passages by their places in the rankings of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from hippogpu.config import MethodName, SearchConfig
from hippogpu.methods.loaded import Clock, Loaded, Ranked
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored, best_of
from hippogpu.types import AnyFloats


def fusion_of(methods: Mapping[MethodName, Method]) -> Method:
    """The method that fuses those of SearchConfig.fuse."""

    def score(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
        return _fused(methods, loaded, asked, config.fuse_depth, config, clock)

    def rank(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
        scored = _fused(methods, loaded, asked, max(k, config.fuse_depth), config, clock)
        return best_of(loaded, scored, k=k, clock=clock)

    def needs(loaded: Loaded, config: SearchConfig) -> Needs:
        return reduce(Needs.joined, (methods[name].needs(loaded, config) for name in config.fused))

    return Method("fusion", rank, score, needs)


def _fused(
    methods: Mapping[MethodName, Method],
    loaded: Loaded,
    asked: Asked,
    depth: int,
    config: SearchConfig,
    clock: Clock,
) -> Scored:
    """Σ 1 ÷ (fuse_constant + rank) over the rankings, ranks from 1, of `depth` passages each; (B, P) float64.

    Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    rankings = {name: methods[name].rank(loaded, asked, k=depth, config=config, clock=clock) for name in config.fused}
    with clock("fuse"):
        scores = np.zeros((len(asked.texts), len(loaded.snapshot.passages)))
        for ranked in rankings.values():
            _add_places(scores, ranked, config.fuse_constant)
    return Scored(scores, [_told(rankings, question) for question in range(len(asked.texts))])


def _add_places(scores: AnyFloats, ranked: Sequence[Ranked], constant: int) -> None:
    """Adds what each passage's place in one method's rankings is worth."""
    worth = 1.0 / (constant + 1 + np.arange(max((len(row.rows) for row in ranked), default=0)))
    for places, row in zip(scores, ranked, strict=True):
        places[row.rows] += worth[: len(row.rows)]


def _told(rankings: Mapping[MethodName, Sequence[Ranked]], question: int) -> Ranked:
    """What the methods say of one question: the first facts, seeds and entities, and every fallback with its method."""
    rows = {name: ranked[question] for name, ranked in rankings.items()}
    fallbacks = [f"{name}: {row.fallback}" for name, row in rows.items() if row.fallback]
    return Ranked(
        NO_ROWS,
        NO_SCORES,
        facts=next((row.facts for row in rows.values() if row.facts), ()),
        seeds=next((row.seeds for row in rows.values() if row.seeds), ()),
        solver=next((row.solver for row in rows.values() if row.solver), None),
        fallback="; ".join(fallbacks) or None,
        filter_failure=next((row.filter_failure for row in rows.values() if row.filter_failure), None),
        entities=next((row.entities for row in rows.values() if row.entities), ()),
    )
