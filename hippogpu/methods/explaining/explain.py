"""From rankings to explanations: what each seed carried to a passage, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends.cpu_push import Left, left_for
from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.explaining.carried import Carried, Target, carried
from hippogpu.methods.explaining.naming import named_path
from hippogpu.methods.explaining.paths import PATHS, strongest_paths
from hippogpu.methods.explaining.starting import Started, started_hippo2
from hippogpu.methods.loaded import Loaded, Queries
from hippogpu.types import AnyFloats, Explanation, KeptFact, Longs, MassPath, Ranking, SeedShare

ALONE = {
    "dense": "ranked by dense similarity alone",
    "bm25": "ranked by words in common alone",
}
# A served score may be short of the exact one by what its solver leaves; more means that other settings made it.
_APART, _APART_AT_LEAST = 0.05, 1e-5
# Each holds a row of all passages.
_QUESTIONS_AT_ONCE = 32


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
    scores = [{hit.passage.id: hit.score for hit in ranking.hits} for ranking in rankings]
    ids = [passages or [hit.passage.id for hit in ranking.hits[:k]] for ranking in rankings]
    return [[Wanted(rows[id_], score.get(id_)) for id_ in row] for row, score in zip(ids, scores, strict=True)]


def explain_rankings(
    loaded: Loaded,
    rankings: Sequence[Ranking],
    wanted: Sequence[Sequence[Wanted]],
    encode: Callable[[Sequence[str]], Queries],
    *,
    config: SearchConfig,
) -> list[list[Explanation]]:
    """What carried mass to the wanted passages of each ranking, in their order. encode makes vectors of questions.

    UsageError when the scores are not those of a walk under these settings.
    """
    notes = [_note(ranking) for ranking in rankings]
    walked = [ranking.query for ranking, note in zip(rankings, notes, strict=True) if note is None]
    dense = _dense_rows(loaded, walked, encode)
    return [
        _explain(loaded, ranking, ones, next(dense), config)
        if note is None
        else [Explanation(loaded.snapshot.passages.passage(one.row), one.score, note=note) for one in ones]
        for ranking, ones, note in zip(rankings, wanted, notes, strict=True)
    ]


def _dense_rows(
    loaded: Loaded, questions: Sequence[str], encode: Callable[[Sequence[str]], Queries]
) -> Iterator[AnyFloats]:
    """Min-max scores of all passages, a row (P,) a question, worked out for few questions at a time."""
    for start in range(0, len(questions), _QUESTIONS_AT_ONCE):
        yield from passage_scores(loaded, encode(questions[start : start + _QUESTIONS_AT_ONCE]))


def _note(ranking: Ranking) -> str | None:
    """Why a ranking's scores are no masses that were carried somewhere, None where they are."""
    if ranking.fallback:
        return ranking.fallback
    method = ranking.method
    return None if method == "hippo2" else ALONE.get(method, f"'{method}' does not tell what its scores came from")


def _explain(
    loaded: Loaded, ranking: Ranking, wanted: Sequence[Wanted], dense: AnyFloats, config: SearchConfig
) -> list[Explanation]:
    """The explanations of one ranking. dense (P,): its question's min-max scores of all passages."""
    started = started_hippo2(loaded, ranking.seeds, dense, config)
    desk = left_for(started.sources[0].graph, loaded.graph.nodes)
    return [_explained(loaded, ranking, started, one, config.damping, desk) for one in wanted]


def _explained(
    loaded: Loaded, ranking: Ranking, started: Started, wanted: Wanted, damping: float, desk: Left
) -> Explanation:
    target = Target(np.array([wanted.row], np.int32), np.ones(1))
    found = [carried(source, target, damping=damping, desk=desk) for source in started.sources]
    known = sum(float(part.masses.sum()) for part in found) / started.unit
    short = _missing(started, found)
    score = known if wanted.score is None else wanted.score
    _check_same_walk(ranking, score, known, short)
    own = _mass_of(found, wanted.row) / started.unit
    seeds = tuple(
        SeedShare(
            seed.phrase,
            _mass_of(found, started.phrases[seed.phrase]) / started.unit,
            seed.weight,
            _naming(seed.phrase, ranking),
        )
        for seed in ranking.seeds
    )
    named = np.array([wanted.row, *started.phrases.values()])
    return Explanation(
        loaded.snapshot.passages.passage(wanted.row),
        score,
        own,
        seeds,
        score - own - sum(seed.mass for seed in seeds),
        short if wanted.score is None else _missing(started, found, named),
        _paths(loaded, started, target, wanted.row, damping),
    )


def _mass_of(found: Sequence[Carried], node: int) -> float:
    """What the seeds of a node carried, over all sources."""
    return float(sum(part.masses[part.nodes == node].sum() for part in found))


def _missing(started: Started, found: Sequence[Carried], nodes: Longs | None = None) -> float:
    """How much more the seeds of these nodes, or all, may have carried, in the unit of the score."""
    weights = [float(source.seeds[... if nodes is None else nodes].sum()) for source in started.sources]
    return sum(part.missing * weight for part, weight in zip(found, weights, strict=True)) / started.unit


def _paths(loaded: Loaded, started: Started, target: Target, own: int, damping: float) -> tuple[MassPath, ...]:
    """The strongest of all sources."""
    paths = [
        named_path(loaded.snapshot, source.graph, path, unit=started.unit)
        for source in started.sources
        for path in strongest_paths(source, target, damping=damping, own=own)
    ]
    return tuple(sorted(paths, key=lambda path: -path.mass)[:PATHS])


def _naming(phrase: str, ranking: Ranking) -> tuple[KeptFact, ...]:
    """The kept facts that made a phrase a seed."""
    return tuple(fact for fact in ranking.facts if phrase in (fact.subject, fact.object))


def _check_same_walk(ranking: Ranking, score: float, known: float, bound: float) -> None:
    slack = bound + max(_APART * score, _APART_AT_LEAST)
    if abs(score - known) > slack:
        raise UsageError(
            f"The ranking of '{ranking.query[:60]}' gives a passage {score:.6g}, the walk under these settings "
            f"{known:.6g}. Explain it with the SearchConfig it was ranked with."
        )
