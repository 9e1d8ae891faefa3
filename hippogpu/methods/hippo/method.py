"""The method: walks from facts, names and passages, a pool of what they and the texts put first, learned weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.facts import facts_by
from hippogpu.methods.hippo.evidence import Pooled, Texts, first_of, gather, lexical_shares
from hippogpu.methods.hippo.masses import Masses, Starts, solver_of, walk_from
from hippogpu.methods.hippo.names import named_phrases
from hippogpu.methods.hippo.weights import weights_for
from hippogpu.methods.lexical import lexical_scores
from hippogpu.methods.linking import seed_divisors
from hippogpu.methods.loaded import Clock, Loaded, Ranked
from hippogpu.methods.seam import NO_ROWS, NO_SCORES, Asked, Method, Needs, Scored, best_of
from hippogpu.methods.starts import UNREAD_ENTITIES, Started, named_seeds, start, starting_needs, told
from hippogpu.types import AnyFloats, Floats

NO_START = "no fact was kept and no phrase is named: ranked by texts, and the walk from them, alone"
UNREAD = f"{UNREAD_ENTITIES} ({{}}): ranked by names and texts, and the walk from them, alone"

# Measured at 3,141 passages and 64 questions: what is alive at once for each question and passage, and what focus adds.
_BYTES, _FOCUSED_BYTES = 40, 52


class Worked(NamedTuple):
    """What the method works out of a batch: where each question starts, what the walks bring, and its pool.

    order : what the graph says of every passage, (B, P) float64
    """

    started: Started
    starts: Starts
    named: Sequence[Mapping[int, float]]
    texts: Texts
    masses: Masses
    order: AnyFloats
    pools: Sequence[Pooled]


def rank_hippo(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
    """The k best passages of each question: its pool by weighed evidence, then the others in the graph's order."""
    return best_of(loaded, score_hippo(loaded, asked, config=config, clock=clock), k=k, clock=clock)


def score_hippo(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
    """Scores of all passages: in the pool, sums of weight · evidence; all others lie below the least of them.

    With the reranking lead or none, masses in units of the seeds, of which a leader has twice the greatest.
    """
    worked = work_out(loaded, asked, config=config, clock=clock)
    with clock("weigh"):
        scores = _scores(worked, config)
    solver = solver_of(loaded, config)
    rows = [
        Ranked(NO_ROWS, NO_SCORES, solver=solver, fallback=_fallback(loaded, worked, i)) for i in range(len(scores))
    ]
    ranked = told(loaded, worked.started, rows)
    return Scored(
        scores,
        [
            row._replace(seeds=(*row.seeds, *named_seeds(loaded, named)))
            for row, named in zip(ranked, worked.named, strict=True)
        ],
    )


def _fallback(loaded: Loaded, worked: Worked, question: int) -> str | None:
    """Why a question starts from less than was meant, None when it does not."""
    failure = worked.started.linked[question].failure
    if failure is not None:
        return UNREAD.format(failure)
    # In an index of user edges alone every question walks from its passages, as in hippo2.
    without = len(loaded.snapshot.tables.facts) or not loaded.snapshot.graph.nonzeros
    return NO_START if without and not (worked.started.seeds[question] or worked.named[question]) else None


def work_out(
    loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock, started: Started | None = None
) -> Worked:
    """Walks and evidence of a batch. started: what it starts from, where that is known already."""
    _check(config)
    started = started or _from_facts(loaded, asked, config, clock)
    with clock("lexical"):
        lexical = lexical_scores(loaded, asked.texts, config=config)
    with clock("seeds"):
        products = loaded.backend.get(loaded.backend.scores(asked.queries.to_passages, loaded.passages))
        low, high = products.min(axis=1), products.max(axis=1)
        named = _named(loaded, asked.texts, config)
        starts = Starts(started.seeds, named, _lexical_seeds(loaded, lexical, config), low, high)
    with clock("solve"):
        masses = walk_from(loaded, asked.queries, starts, config)
    with clock("evidence"):
        texts, order = Texts(products, lexical, low, high, config.lexical_weight), masses.total(config)
        pools = gather(loaded, asked.texts, texts, masses, order, config=config)
    return Worked(started, starts, named, texts, masses, order, pools)


def _from_facts(loaded: Loaded, asked: Asked, config: SearchConfig, clock: Clock) -> Started:
    """Seeds of few facts; none, and no fact kept, where the nearest is in doubt. doubt is about facts alone."""
    started = start(loaded, asked, replace(config, top_facts=config.lead_facts), clock)
    if config.link != "fact" or config.doubt <= -1.0 or not len(loaded.snapshot.tables.facts):
        return started
    with clock("facts"):
        nearest = facts_by(loaded, config).topk(asked.queries.to_facts, 1).scores[:, 0]
    doubted = (nearest < config.doubt).tolist()
    seeds = [{} if doubts else row for doubts, row in zip(doubted, started.seeds, strict=True)]
    kept = [row._replace(facts=()) if doubts else row for doubts, row in zip(doubted, started.kept, strict=True)]
    return started._replace(seeds=seeds, kept=kept)


def _named(loaded: Loaded, questions: Sequence[str], config: SearchConfig) -> list[Mapping[int, float]]:
    """1 ÷ (passages that mention it) for each phrase that a question names."""
    if not config.names:
        return [{} for _ in questions]
    divisors = seed_divisors(loaded, config)
    return [{phrase: 1.0 / int(divisors[phrase]) for phrase in row} for row in named_phrases(loaded, questions)]


def _lexical_seeds(loaded: Loaded, lexical: Floats, config: SearchConfig) -> list[Mapping[int, float]]:
    """Seeds of the passages that come first by words; the weight of both kinds of passage seed is passage_weight."""
    count, weight = config.lexical_passages, config.lexical_weight
    if not count or not weight:
        return [{} for _ in lexical]
    share = config.passage_weight * weight / (1 + weight)
    rows = first_of(loaded, lexical, count)
    shares = lexical_shares(np.take_along_axis(lexical, rows, axis=1), lexical.max(axis=1))
    return [
        {passage: share * value for passage, value in zip(best, values, strict=True) if value > 0}
        for best, values in zip(rows.tolist(), shares.tolist(), strict=True)
    ]


def _scores(worked: Worked, config: SearchConfig) -> AnyFloats:
    """(B, P) float64, in the place of worked.order."""
    order = worked.order
    if config.rerank == "none":
        return order
    if config.rerank == "lead":
        leaders = [int(np.argmax(worked.texts.some(slice(i, i + 1)).nearest)) for i in range(len(order))]
        # Above the others also where nothing has any mass.
        order[np.arange(len(order)), leaders] = np.maximum(order.max(axis=1) * 2, np.finfo(np.float32).tiny)
        return order
    weights = weights_for(config)
    most = np.maximum(order.max(axis=1, keepdims=True), np.finfo(float).tiny)
    scores: AnyFloats = np.divide(order, most, out=order)
    for row, pool in zip(scores, worked.pools, strict=True):
        weighed = pool.evidence @ weights
        row += weighed.min() - 2.0
        row[pool.rows] = weighed
    return scores


def _check(config: SearchConfig) -> None:
    if not config.passage_nodes:
        raise UsageError("The method 'hippo' walks over passages. Leave passage_nodes on, or choose another method.")
    if config.hubs > 0 and config.solver == "diffused":
        raise UsageError("The diffused vectors are of the graph as it is: with hubs, leave the solver to 'auto'.")


def _needs(loaded: Loaded, config: SearchConfig) -> Needs:
    focused = config.focus > 0
    return starting_needs(config).joined(
        Needs(
            passages=True,
            facts=focused,
            walks=solver_of(loaded, config) != "diffused",
            passage_bytes=_BYTES + focused * _FOCUSED_BYTES,
        )
    )


HIPPO = Method("hippo", rank_hippo, score_hippo, _needs)
