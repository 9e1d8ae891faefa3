"""From rankings to explanations: what each seed carried to a passage, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends.cpu_push import Left, left_for
from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.explaining.carried import Carried, Target, carried
from hippogpu.methods.explaining.hippo import start_hippo
from hippogpu.methods.explaining.lexical import shared_words
from hippogpu.methods.explaining.naming import named, named_path
from hippogpu.methods.explaining.paths import PATHS, strongest_paths
from hippogpu.methods.explaining.starting import Start, Started, start_hippo2, start_phrases, start_seeds_only
from hippogpu.methods.loaded import Loaded, Queries
from hippogpu.methods.seam import Needs
from hippogpu.types import Evidence, Explanation, Longs, MassPath, PathStep, Ranking, SeedShare

STARTS: Mapping[str, Start] = {
    "hippo": start_hippo,
    "hippo2": start_hippo2,
    "hippo1": start_phrases,
    "seeds-only": start_seeds_only,
}
"""By method, what the walk of a ranking started from; one that is not here has no walk to explain."""

ALONE = {
    "dense": "ranked by dense similarity alone",
    "bm25": "ranked by words in common alone",
}
# A served score may be short of the exact one by what its solver leaves; more means that other settings made it.
_APART, _APART_AT_LEAST = 0.05, 1e-5
# A question alone and in a batch has cosines that differ in their last places, and logarithms that stretch them.
_WEIGHED_APART = 0.01


class Wanted(NamedTuple):
    """A passage to explain: its row, and its score where the ranking has it."""

    row: int
    score: float | None = None


def wanted_of(
    rankings: Sequence[Ranking], k: int, passages: Sequence[str], *, rows: Mapping[str, int], generation: int
) -> list[list[Wanted]]:
    """The first k hits of each ranking, or the passages of these ids, with the scores that the ranking gives them.

    UsageError for an id without a row and for a ranking of another generation.
    """
    unknown = [id_ for id_ in passages if id_ not in rows]
    if unknown:
        raise UsageError(f"The index has no passage '{unknown[0]}'. Name passages by ids that it has.")
    other = [ranking for ranking in rankings if ranking.generation != generation]
    if other:
        raise UsageError(
            f"The ranking of '{other[0].query[:60]}' is of generation {other[0].generation} of the index, and this is "
            f"{generation}. Rank the question again, then explain it."
        )
    scores = [{rows[hit.passage.id]: hit.score for hit in ranking.hits} for ranking in rankings]
    named = list(dict.fromkeys(rows[id_] for id_ in passages))
    return [[Wanted(row, score.get(row)) for row in named or list(score)[:k]] for score in scores]


def needs_of(rankings: Sequence[Ranking]) -> Needs:
    """The vectors of questions by which the rankings are explained."""
    return Needs(passages=True, facts=any(ranking.method == "hippo" for ranking in rankings))


def explain_rankings(
    loaded: Loaded,
    rankings: Sequence[Ranking],
    wanted: Sequence[Sequence[Wanted]],
    encode: Callable[[Sequence[str]], Queries],
    *,
    config: SearchConfig,
) -> list[list[Explanation]]:
    """What carried mass to the wanted passages of each ranking, in their order. encode makes vectors of questions.

    What each method's walk started from is told by STARTS; a ranking of another method, or one that fell back, has
    its score explained alone. UsageError when the scores are not those of a walk under these settings.
    """
    walk = [ranking.method in STARTS and not ranking.fallback for ranking in rankings]
    questions = _one_by_one(encode([ranking.query for ranking, walks in zip(rankings, walk, strict=True) if walks]))
    return [
        explain_walk(loaded, ranking, STARTS[ranking.method](loaded, ranking, next(questions), config), ones)
        if walks
        else [_unwalked(loaded, ranking, one, config) for one in ones]
        for ranking, ones, walks in zip(rankings, wanted, walk, strict=True)
    ]


def _one_by_one(questions: Queries) -> Iterator[Queries]:
    for place in range(len(questions.to_passages)):
        yield Queries(questions.to_facts[place : place + 1], questions.to_passages[place : place + 1])


def _unwalked(loaded: Loaded, ranking: Ranking, wanted: Wanted, config: SearchConfig) -> Explanation:
    """Why there is no more than a score, or the words that make it."""
    passage, method = loaded.snapshot.passages.passage(wanted.row), ranking.method
    if method == "bm25" and not ranking.fallback:
        words = shared_words(loaded, ranking.query, wanted.row, config)
        return Explanation(passage, sum(word.score for word in words), words=words, note=ALONE[method])
    note = ranking.fallback or ALONE.get(method, f"'{method}' does not tell what its scores came from")
    return Explanation(passage, wanted.score, note=note)


def explain_walk(loaded: Loaded, ranking: Ranking, started: Started, wanted: Sequence[Wanted]) -> list[Explanation]:
    """What a walk carried to each of the wanted passages; UsageError when the ranking's scores are not its masses."""
    desks = [left_for(source.graph, source.graph.nodes) for source in started.sources]
    return [_explained(loaded, ranking, started, one, desks) for one in wanted]


def _explained(
    loaded: Loaded, ranking: Ranking, started: Started, wanted: Wanted, desks: Sequence[Left]
) -> Explanation:
    target, own = started.target(loaded.snapshot.tables, wanted.row), started.own(wanted.row)
    told = wanted.score if started.masses is None else float(started.masses[wanted.row])
    nodes = np.array([own, *started.phrases.values()])
    nodes = nodes[nodes >= 0]
    found = _carried(started, target, desks, None if told is None else nodes)
    known = sum(float(part.masses.sum()) for part in found) / started.unit
    mass, short = known if told is None else told, _missing(started, found)
    _check_same_walk(ranking, mass, known, short + started.left(wanted.row))
    evidence = started.evidence(wanted.row)
    _check_same_weights(ranking, wanted.score, evidence)
    own_mass = _mass_of(found, own) / started.unit
    seeds = _seed_shares(ranking, started, found)
    others = mass - own_mass - sum(seed.mass for seed in seeds)
    return Explanation(
        loaded.snapshot.passages.passage(wanted.row),
        mass if started.masses is None else wanted.score,
        mass,
        own_mass,
        seeds,
        max(others, 0.0),
        # A served mass is short of the exact one by what its solver left; then the shares sum to more.
        (short if told is None else _missing(started, found, nodes)) + max(-others, 0.0),
        _paths(loaded, started, target, wanted.row),
        evidence,
    )


def _carried(started: Started, target: Target, desks: Sequence[Left], named: Longs | None) -> list[Carried]:
    """What all seeds carried, by source. named: the seeds whose shares are told, all where the score is their sum."""
    return [
        carried(
            source,
            target,
            damping=started.damping,
            named=None if named is None else float(source.seeds[named].sum()),
            desk=desk,
        )
        for source, desk in zip(started.sources, desks, strict=True)
    ]


def _seed_shares(ranking: Ranking, started: Started, found: Sequence[Carried]) -> tuple[SeedShare, ...]:
    """What each phrase seed carried, with what made it a seed; a phrase that is one twice is told of once."""
    shares = []
    for phrase, node in started.phrases.items():
        weight = sum(seed.weight for seed in ranking.seeds if seed.phrase == phrase)
        facts = tuple(fact for fact in ranking.facts if phrase in (fact.subject, fact.object))
        entities = tuple(entity.name for entity in ranking.entities if entity.phrase == phrase)
        shares.append(SeedShare(phrase, _mass_of(found, node) / started.unit, weight, facts, entities))
    return tuple(shares)


def _mass_of(found: Sequence[Carried], node: int) -> float:
    """What the seeds of a node carried, over all sources."""
    return float(sum(part.masses[part.nodes == node].sum() for part in found))


def _missing(started: Started, found: Sequence[Carried], nodes: Longs | None = None) -> float:
    """How much more the seeds of these nodes, or all, may have carried, in the unit of the score."""
    weights = [float(source.seeds[... if nodes is None else nodes].sum()) for source in started.sources]
    return sum(part.missing * weight for part, weight in zip(found, weights, strict=True)) / started.unit


def _paths(loaded: Loaded, started: Started, target: Target, row: int) -> tuple[MassPath, ...]:
    """The strongest of all sources; where passages are no nodes, each ends with the step into the passage."""
    snapshot, own = loaded.snapshot, started.own(row)
    into = dict(zip(target.nodes.tolist(), target.weights.tolist(), strict=True))
    found = [
        (path, named_path(snapshot, source.graph, path, shift=started.shift, unit=started.unit))
        for source in started.sources
        for path in strongest_paths(source, target, damping=started.damping, own=own)
    ]
    strongest = sorted(found, key=lambda one: -one[1].mass)[:PATHS]
    if own >= 0:
        return tuple(path for _, path in strongest)
    passage = named(snapshot, row)
    return tuple(
        path._replace(nodes=(*path.nodes, passage), steps=(*path.steps, PathStep("mention", into[walked.nodes[-1]])))
        for walked, path in strongest
    )


def _check_same_walk(ranking: Ranking, mass: float, known: float, bound: float) -> None:
    slack = bound + max(_APART * mass, _APART_AT_LEAST)
    if abs(mass - known) > slack:
        raise UsageError(
            f"The ranking of '{ranking.query[:60]}' gives a passage {mass:.6g}, the walk under these settings "
            f"{known:.6g}. Explain it with the SearchConfig it was ranked with."
        )


def _check_same_weights(ranking: Ranking, score: float | None, evidence: Sequence[Evidence]) -> None:
    """UsageError when the evidence under these settings does not sum to the score that the ranking has."""
    weighed = sum(one.value * one.weight for one in evidence)
    if evidence and score is not None and abs(weighed - score) > _WEIGHED_APART:
        raise UsageError(
            f"The ranking of '{ranking.query[:60]}' gives a passage {score:.6g}, the evidence under these settings "
            f"{weighed:.6g}. Explain it with the SearchConfig it was ranked with."
        )
