"""HippoRAG 2: facts that match the question, a filter, seeds, and Personalised PageRank over the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends import steps_for
from hippogpu.config import LinearSolver, SearchConfig
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.diffused import rank_by_diffusion, solver_for
from hippogpu.methods.facts import Recognised, kept_facts, shown_fact
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, min_max
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored, best_of
from hippogpu.methods.seeds import phrase_seeds, reset_vectors
from hippogpu.types import AnyFloats, Floats, Seed

NO_FACT = "no fact was kept: ranked by dense similarity alone"
NO_MASS = "the seeds weigh nothing: ranked by dense similarity alone"


class Started(NamedTuple):
    """What each question of a batch starts from: its vectors, the facts it kept, its phrase seeds."""

    queries: Queries
    kept: Sequence[Recognised]
    seeds: Sequence[Mapping[int, float]]


def rank_hippo2(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
    """The k passages that hold most PageRank mass for each question. HippoRAG 2, section 3.

    The solver diffused gives the same passages, certified or not (Ranked.certified), with masses that are short by a
    little; the others work out the mass of every node. A question that keeps no fact, or whose seeds weigh nothing, is
    ranked by its min-max dense scores alone, and its Ranked says so. In an index of user edges alone, without any
    fact, every question walks from the passage seeds.
    """
    started, solver = _started(loaded, asked, config, clock), solver_for(loaded, config)
    if solver == "diffused":
        ranked = _diffused(loaded, started, k, config, clock)
    else:
        ranked = best_of(loaded, _walked(loaded, started, config, solver, clock), k=k, clock=clock)
    return _told(loaded, started, ranked)


def score_hippo2(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
    """The PageRank mass of every passage; the min-max dense scores in the rows that fall back.

    Diffused vectors rank without the masses of all passages, so where they would serve, the walk does.
    """
    solver = solver_for(loaded, config)
    started = _started(loaded, asked, config, clock)
    scored = _walked(loaded, started, config, "power" if solver == "diffused" else solver, clock)
    return Scored(scored.scores, _told(loaded, started, scored.why))


def _started(loaded: Loaded, asked: Asked, config: SearchConfig, clock: Clock) -> Started:
    vectors = asked.queries.to_facts
    kept = kept_facts(loaded, asked.texts, vectors, config=config, fact_filter=asked.fact_filter, clock=clock)
    with clock("seeds"):
        facts, counts = loaded.snapshot.tables.facts, loaded.mention_counts
        seeds = [phrase_seeds(row.facts, facts, counts, top_phrases=config.top_phrases) for row in kept]
    return Started(asked.queries, kept, seeds)


def _told(loaded: Loaded, started: Started, ranked: Sequence[Ranked]) -> list[Ranked]:
    """The rankings with the facts and seeds that they come of."""
    phrases = loaded.snapshot.tables.phrases
    return [
        row._replace(
            facts=tuple(shown_fact(loaded, fact) for fact in kept.facts),
            seeds=tuple(Seed(phrases[phrase], weight) for phrase, weight in seeds.items()),
            filter_failure=kept.failure,
        )
        for row, kept, seeds in zip(ranked, started.kept, started.seeds, strict=True)
    ]


def _walked(loaded: Loaded, started: Started, config: SearchConfig, solver: LinearSolver, clock: Clock) -> Scored:
    """Masses by a walk over the whole graph; dense scores in the rows that fall back."""
    with clock("seeds"):
        dense = passage_scores(loaded, started.queries)
        resets = reset_vectors(started.seeds, dense, passage_weight=config.passage_weight, nodes=loaded.graph.nodes)
        fallback = [_fallback(loaded, row, reset.any()) for row, reset in zip(started.kept, resets, strict=True)]
    with clock("solve"):
        scores = _masses(loaded, resets, dense, fallback, config, solver)
    why = [Ranked(NO_ROWS, NO_SCORES, solver=None if reason else solver, fallback=reason) for reason in fallback]
    return Scored(scores, why)


def _masses(
    loaded: Loaded,
    resets: AnyFloats,
    dense: AnyFloats,
    fallback: Sequence[str | None],
    config: SearchConfig,
    solver: LinearSolver,
) -> AnyFloats:
    """PageRank mass of every passage, (B, P); the dense scores in the rows that fall back."""
    walks = np.array([reason is None for reason in fallback], bool)
    scores = np.array(dense)
    if walks.any():
        backend = loaded.backend
        steps = steps_for(solver, config.damping, config.tolerance)
        mass = backend.solve(
            loaded.graph, backend.put(resets[walks]), damping=config.damping, steps=steps, solver=solver
        )
        scores[walks] = backend.get(mass)[:, : dense.shape[1]]
    return scores


def _diffused(loaded: Loaded, started: Started, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
    """Rankings from diffused vectors and a push; by dense scores in the rows that fall back."""
    vectors = started.queries.to_passages
    with clock("seeds"):
        nearest = loaded.backend.topk(vectors, loaded.passages, 1)
        low, high = loaded.backend.get(nearest.low), loaded.backend.get(nearest.high)
    with clock("solve"):
        found, mass = rank_by_diffusion(loaded, vectors, started.seeds, low, high, k=k, config=config)
        scores = found.scores / np.maximum(mass.whole - config.damping * mass.isolated, np.finfo(float).tiny)[:, None]
    fallback = [_fallback(loaded, row, whole > 0) for row, whole in zip(started.kept, mass.whole, strict=True)]
    ranked = [
        Ranked(rows, values, solver="diffused", certified=bool(certain))
        for rows, values, certain in zip(found.ids, scores, found.certified, strict=True)
    ]
    with clock("select"):
        for i, reason in enumerate(fallback):
            if reason is not None:
                ranked[i] = _dense(loaded, vectors[i : i + 1], k, reason)
    return ranked


def _dense(loaded: Loaded, question: Floats, k: int, reason: str) -> Ranked:
    """The ranking by min-max dense scores alone."""
    best = loaded.backend.topk(question, loaded.passages, k)
    return Ranked(best.ids[0], min_max(best.scores, best.low, best.high)[0], fallback=reason)


def _fallback(loaded: Loaded, kept: Recognised, has_mass: bool) -> str | None:
    """Why a question is ranked by its dense scores, None when it walks."""
    snapshot = loaded.snapshot
    walks_without = not len(snapshot.tables.facts) and snapshot.graph.nonzeros > 0
    if not kept.facts and not walks_without:
        return NO_FACT
    return None if has_mass else NO_MASS


def _needs(loaded: Loaded, config: SearchConfig) -> Needs:
    return Needs(passages=True, facts=True, walks=solver_for(loaded, config) != "diffused")


HIPPO2 = Method("hippo2", rank_hippo2, score_hippo2, _needs)
