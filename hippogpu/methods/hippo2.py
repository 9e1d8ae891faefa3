"""HippoRAG 2: facts that match the question, a filter, seeds, and Personalised PageRank over the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends import steps_for
from hippogpu.config import LinearSolver, SearchConfig
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.diffused import rank_by_diffusion, solver_for
from hippogpu.methods.filter import FactFilter, keep_all
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, min_max
from hippogpu.methods.seeds import phrase_seeds, reset_vectors
from hippogpu.types import AnyFloats, Floats, KeptFact, Seed

NO_FACT = "no fact was kept: ranked by dense similarity alone"
NO_MASS = "the seeds weigh nothing: ranked by dense similarity alone"


class Kept(NamedTuple):
    """A fact that passed the filter: its number and its min-max score."""

    number: int
    score: float


class Started(NamedTuple):
    """What each question of a batch starts from: its vectors, the facts it kept, its phrase seeds."""

    queries: Queries
    kept: Sequence[Sequence[Kept]]
    seeds: Sequence[Mapping[int, float]]


def rank_hippo2(
    loaded: Loaded,
    questions: Sequence[str],
    queries: Queries,
    *,
    k: int,
    config: SearchConfig,
    clock: Clock,
    fact_filter: FactFilter = keep_all,
) -> list[Ranked]:
    """The k passages that hold most PageRank mass for each question. HippoRAG 2, section 3.

    The solver diffused gives the same passages, certified or not (Ranked.certified), with masses that are short by a
    little; the others work out the mass of every node. A question that keeps no fact, or whose seeds weigh nothing, is
    ranked by its min-max dense scores alone, and its Ranked says so. In an index of user edges alone, without any
    fact, every question walks from the passage seeds.
    """
    with clock("facts"):
        kept = kept_facts(loaded, questions, queries.to_facts, config=config, fact_filter=fact_filter)
    solver = solver_for(loaded, config)
    with clock("seeds"):
        facts, counts = loaded.snapshot.tables.facts, loaded.mention_counts
        seeds = [phrase_seeds(row, facts, counts, top_phrases=config.top_phrases) for row in kept]
    started = Started(queries, kept, seeds)
    if solver == "diffused":
        outcomes = _diffused(loaded, started, k, config, clock)
    else:
        outcomes = _walked(loaded, started, k, config, solver, clock)
    return [
        outcome._replace(
            facts=tuple(_fact(loaded, fact) for fact in kept[i]),
            seeds=tuple(Seed(loaded.snapshot.tables.phrases[phrase], weight) for phrase, weight in seeds[i].items()),
        )
        for i, outcome in enumerate(outcomes)
    ]


def kept_facts(
    loaded: Loaded, questions: Sequence[str], vectors: Floats, *, config: SearchConfig, fact_filter: FactFilter
) -> list[list[Kept]]:
    """The facts that pass the filter among the top_facts nearest to each question, scored min-max over all facts."""
    if not len(loaded.snapshot.tables.facts):
        return [[] for _ in questions]
    best = loaded.backend.topk(vectors, loaded.facts, config.top_facts)
    scores = min_max(best.scores, best.low, best.high)
    kept = []
    for question, numbers, values in zip(questions, best.ids, scores, strict=True):
        candidates = [Kept(int(number), float(value)) for number, value in zip(numbers, values, strict=True)]
        chosen = fact_filter(question, [_fact(loaded, candidate) for candidate in candidates])
        kept.append([candidates[place] for place in chosen])
    return kept


def _walked(
    loaded: Loaded, started: Started, k: int, config: SearchConfig, solver: LinearSolver, clock: Clock
) -> list[Ranked]:
    """Rankings by a walk over the whole graph; by dense scores in the rows that fall back."""
    with clock("seeds"):
        dense = passage_scores(loaded, started.queries)
        resets = reset_vectors(started.seeds, dense, passage_weight=config.passage_weight, nodes=loaded.graph.nodes)
        fallback = [_fallback(loaded, row, reset.any()) for row, reset in zip(started.kept, resets, strict=True)]
    with clock("solve"):
        scores = _masses(loaded, resets, dense, fallback, config, solver)
    with clock("select"):
        rows = loaded.backend.select(scores, k)
        best = np.take_along_axis(scores, rows, axis=1)
    return [
        Ranked(rows[i], best[i], solver=None if reason else solver, fallback=reason)
        for i, reason in enumerate(fallback)
    ]


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


def _fallback(loaded: Loaded, kept: Sequence[Kept], has_mass: bool) -> str | None:
    """Why a question is ranked by its dense scores, None when it walks."""
    snapshot = loaded.snapshot
    walks_without = not len(snapshot.tables.facts) and snapshot.graph.nonzeros > 0
    if not kept and not walks_without:
        return NO_FACT
    return None if has_mass else NO_MASS


def _fact(loaded: Loaded, kept: Kept) -> KeptFact:
    tables = loaded.snapshot.tables
    subject, object_ = tables.facts.subject[kept.number], tables.facts.object[kept.number]
    predicate = tables.facts.predicate[kept.number]
    return KeptFact(tables.phrases[subject], predicate, tables.phrases[object_], kept.score)
