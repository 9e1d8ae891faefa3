"""HippoRAG 2: facts that match the question, a filter, seeds, and Personalised PageRank over the whole graph."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from hippogpu.config import LinearSolver, SearchConfig
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.diffused import rank_by_diffusion, solver_for
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked, min_max
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored, best_of
from hippogpu.methods.seeds import reset_vectors
from hippogpu.methods.starts import DENSE_ALONE, NO_FACT, Started, start, starting_needs, told
from hippogpu.methods.walks import (
    phrase_resets,
    phrase_walk_masses,
    scores_by_phrases,
    walk_graph,
    walked_masses,
)
from hippogpu.types import AnyFloats, Floats

__all__ = ["HIPPO2", "NO_FACT", "NO_MASS", "rank_hippo2", "score_hippo2"]

NO_MASS = f"the seeds weigh nothing: {DENSE_ALONE}"


def rank_hippo2(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
    """The k passages that hold most PageRank mass for each question. HippoRAG 2, section 3.

    The solver diffused gives the same passages, certified or not (Ranked.certified), with masses that are short by a
    little; the others work out the mass of every node. A question that keeps no fact, or whose seeds weigh nothing, is
    ranked by its min-max dense scores alone, and its Ranked says so. In an index of user edges alone, without any
    fact, every question walks from the passage seeds.
    """
    started, solver = start(loaded, asked, config, clock), solver_for(loaded, config)
    if solver == "diffused":
        ranked = _diffused(loaded, asked.queries, started, k, config, clock)
    else:
        ranked = best_of(loaded, _walked(loaded, asked.queries, started, config, solver, clock), k=k, clock=clock)
    return told(loaded, started, ranked)


def score_hippo2(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
    """The PageRank mass of every passage; the min-max dense scores in the rows that fall back.

    Diffused vectors rank without the masses of all passages, so where they would serve, the walk does.
    """
    solver, started = solver_for(loaded, config), start(loaded, asked, config, clock)
    linear: LinearSolver = "power" if solver == "diffused" else solver
    scored = _walked(loaded, asked.queries, started, config, linear, clock)
    return Scored(scored.scores, told(loaded, started, scored.why))


def _walked(
    loaded: Loaded, queries: Queries, started: Started, config: SearchConfig, solver: LinearSolver, clock: Clock
) -> Scored:
    """Masses by a walk; dense scores in the rows that fall back."""
    with clock("seeds"):
        dense = passage_scores(loaded, queries)
        resets = _resets(loaded, started, dense, config)
        has_mass = np.asarray(resets.sum(axis=1) > 0)
        fallback = [_fallback(loaded, started, i, bool(has), config) for i, has in enumerate(has_mass)]
    walks = np.array([reason is None for reason in fallback], bool)
    scores = np.array(dense)
    if walks.any():
        with clock("solve"):
            scores[walks] = _passage_masses(loaded, resets[walks], dense.shape[1], config, solver)
    why = [Ranked(NO_ROWS, NO_SCORES, solver=None if reason else solver, fallback=reason) for reason in fallback]
    return Scored(scores, why)


def _resets(loaded: Loaded, started: Started, dense: AnyFloats, config: SearchConfig) -> AnyFloats | csr_array:
    """Where each question restarts, rows that sum to 1 or are empty: over all nodes (B, n), or over phrases (B, E)."""
    if config.passage_nodes:
        return reset_vectors(started.seeds, dense, passage_weight=config.passage_weight, nodes=loaded.graph.nodes)
    return phrase_resets(started.seeds, len(loaded.snapshot.tables.phrases))


def _passage_masses(
    loaded: Loaded, resets: AnyFloats | csr_array, passages: int, config: SearchConfig, solver: LinearSolver
) -> AnyFloats:
    """Mass of every passage, (rows, P). Without passage nodes that of its phrases: HippoRAG 2's ablation."""
    if isinstance(resets, csr_array):
        return scores_by_phrases(loaded, phrase_walk_masses(loaded, resets, config))
    return walked_masses(loaded, walk_graph(loaded, config), resets, config, solver)[:, :passages]


def _diffused(
    loaded: Loaded, queries: Queries, started: Started, k: int, config: SearchConfig, clock: Clock
) -> list[Ranked]:
    """Rankings from diffused vectors and a push; by dense scores in the rows that fall back."""
    vectors = queries.to_passages
    with clock("seeds"):
        nearest = loaded.backend.topk(vectors, loaded.passages, 1)
        low, high = loaded.backend.get(nearest.low), loaded.backend.get(nearest.high)
    with clock("solve"):
        found, mass = rank_by_diffusion(loaded, vectors, started.seeds, low, high, k=k, config=config)
        scores = found.scores / np.maximum(mass.whole - config.damping * mass.isolated, np.finfo(float).tiny)[:, None]
    fallback = [_fallback(loaded, started, i, whole > 0, config) for i, whole in enumerate(mass.whole)]
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


def _fallback(loaded: Loaded, started: Started, question: int, has_mass: bool, config: SearchConfig) -> str | None:
    """Why a question is ranked by its dense scores, None when it walks."""
    snapshot = loaded.snapshot
    walks_without = config.passage_nodes and not len(snapshot.tables.facts) and snapshot.graph.nonzeros > 0
    missing = started.missing(question, config)
    if missing is not None and not walks_without:
        return missing
    return None if has_mass else NO_MASS


def _needs(loaded: Loaded, config: SearchConfig) -> Needs:
    walks = solver_for(loaded, config) != "diffused"
    return starting_needs(config).joined(Needs(passages=True, walks=walks))


HIPPO2 = Method("hippo2", rank_hippo2, score_hippo2, _needs)
