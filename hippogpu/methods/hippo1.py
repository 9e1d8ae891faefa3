"""HippoRAG 1: the entities of a question, and Personalised PageRank over the graph of phrases; and its ablations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from hippogpu.config import MethodName, SearchConfig
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.linking import link_entities, seed_divisors
from hippogpu.methods.loaded import Clock, Loaded, Ranked
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored, best_of
from hippogpu.methods.seeds import linked_seeds
from hippogpu.methods.starts import DENSE_ALONE, named_seeds, unlinked
from hippogpu.methods.walks import (
    phrase_edges,
    phrase_resets,
    phrase_walk_masses,
    phrase_walk_solver,
    scores_by_phrases,
)
from hippogpu.types import AnyFloats, Csr

NO_STATEMENT = f"no passage states a fact of a phrase that was reached: {DENSE_ALONE}"

Spread = Callable[[Loaded, csr_array, SearchConfig], AnyFloats | csr_array]
"""From resets (B, E) that sum to 1 to what every phrase holds, (B, E)."""


def _method(name: MethodName, spread: Spread, *, walks: bool) -> Method:
    """The method that scores passages by what `spread` makes of the seeds."""

    def score(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
        return _scored(loaded, asked, config, clock, spread, walks=walks)

    def rank(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
        return best_of(loaded, score(loaded, asked, config=config, clock=clock), k=k, clock=clock)

    return Method(name, rank, score, lambda loaded, config: Needs(passages=True, entities=True, walks=walks))


def _scored(loaded: Loaded, asked: Asked, config: SearchConfig, clock: Clock, spread: Spread, *, walks: bool) -> Scored:
    """Scores of all passages; the min-max dense scores in the rows that fall back."""
    assert asked.entities is not None
    with clock("seeds"):
        linked, divisors = link_entities(loaded, asked.entities), seed_divisors(loaded, config)
        seeds = [linked_seeds(row.phrases, divisors) for row in linked]
        resets = phrase_resets(seeds, len(loaded.snapshot.tables.phrases))
    with clock("solve"):
        scores = scores_by_phrases(loaded, spread(loaded, resets, config))
    fallback = [
        unlinked(row) or (None if found.any() else NO_STATEMENT) for row, found in zip(linked, scores, strict=True)
    ]
    lost = np.array([reason is not None for reason in fallback], bool)
    if lost.any():
        with clock("passages"):
            scores[lost] = passage_scores(loaded, asked.queries.rows(lost))
    solver = phrase_walk_solver(config) if walks else None
    why = [
        Ranked(
            NO_ROWS,
            NO_SCORES,
            seeds=named_seeds(loaded, weights),
            solver=None if reason else solver,
            fallback=reason,
            entities=row.entities,
        )
        for row, weights, reason in zip(linked, seeds, fallback, strict=True)
    ]
    return Scored(scores, why)


def stay(loaded: Loaded, resets: csr_array, config: SearchConfig) -> csr_array:
    """The seeds themselves: the ablation of HippoRAG 1 that searches no graph."""
    return resets


def reach_neighbours(loaded: Loaded, resets: csr_array, config: SearchConfig) -> csr_array:
    """The seeds, and half of the lightest seed's weight on every phrase for each seed that it is joined with.

    The ablation of HippoRAG 1 that takes seeds and their neighbours; the share is that of the authors' library.
    Rows sum to 1.
    """
    adjacency = loaded.derived.once(("neighbours", config.synonyms), lambda: _adjacency(phrase_edges(loaded, config)))
    counts = np.diff(resets.indptr)
    lightest = np.zeros(resets.shape[0])
    held = counts > 0
    lightest[held] = np.minimum.reduceat(resets.data, resets.indptr[:-1][held]) if held.any() else 0.0
    joined = resets.copy()
    joined.data = np.repeat(0.5 * lightest, counts)
    reached = csr_array(resets + joined @ adjacency)
    sums = reached.sum(axis=1)
    reached.data /= np.repeat(np.where(sums > 0, sums, 1.0), np.diff(reached.indptr))
    return reached


def _adjacency(edges: Csr) -> csr_array:
    """Ones where two phrases are joined."""
    return csr_array((np.ones(edges.nonzeros), edges.indices, edges.indptr), shape=(edges.nodes, edges.nodes))


HIPPO1 = _method("hippo1", phrase_walk_masses, walks=True)
SEEDS_ONLY = _method("seeds-only", stay, walks=False)
NEIGHBOURS = _method("neighbours", reach_neighbours, walks=False)
