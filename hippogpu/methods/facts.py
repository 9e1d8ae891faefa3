"""The facts near to a question, and those of them that a filter keeps. HippoRAG 2, sections 3.3 and 3.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.filter import FactFilter, Verdict
from hippogpu.methods.loaded import Clock, Loaded, min_max
from hippogpu.nearest import ExactRows, Nearest
from hippogpu.types import Floats, KeptFact


class Candidate(NamedTuple):
    """A fact near to a question: its number and its min-max score over all facts."""

    number: int
    score: float


class Recognised(NamedTuple):
    """The facts of one question that passed the filter, best first; failure says why it could not judge them.

    search: what found the candidates (nearest.Nearest.name); None where there is no fact
    """

    facts: tuple[Candidate, ...]
    failure: str | None = None
    search: str | None = None


def kept_facts(
    loaded: Loaded,
    questions: Sequence[str],
    vectors: Floats,
    *,
    config: SearchConfig,
    fact_filter: FactFilter,
    clock: Clock,
) -> list[Recognised]:
    """What passes the filter of the top_facts facts nearest to each question, (B, w) vectors; none without facts.

    A question that the filter could not judge keeps all or none, as filter_fails says.
    """
    with clock("facts"):
        candidates = near_facts(loaded, vectors, top=config.top_facts, config=config)
    if not any(candidates):
        return [Recognised(()) for _ in candidates]
    with clock("filter"):
        shown = [[shown_fact(loaded, candidate) for candidate in row] for row in candidates]
        verdicts = fact_filter(questions, shown)
        if len(verdicts) != len(questions):
            raise UsageError(
                f"The filter '{fact_filter.name}' gave {len(verdicts)} verdicts for {len(questions)} questions. "
                "Return one a question, in order."
            )
    return [
        _recognised(row, verdict, fact_filter.name, config)._replace(search=facts_by(loaded, config).name)
        for row, verdict in zip(candidates, verdicts, strict=True)
    ]


def facts_by(loaded: Loaded, config: SearchConfig) -> Nearest:
    """What finds facts that are near to questions, by the settings."""
    if config.exact_facts and not loaded.near.exact:
        return ExactRows(loaded.backend, loaded.facts)
    return loaded.near.looking(probes=config.fact_probes, shortlist=config.fact_shortlist)


def near_facts(
    loaded: Loaded,
    vectors: Floats,
    *,
    top: int,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
) -> list[list[Candidate]]:
    """The facts nearest to each question, best first, ties by lower number, scored min-max over all facts.

    Where facts are found by cells, some of the nearest may be missing, and the least score of all is that of a fact
    that was looked at (docs/vectors.md).
    """
    if not len(loaded.snapshot.tables.facts):
        return [[] for _ in vectors]
    best = facts_by(loaded, config).topk(vectors, top)
    scores = min_max(best.scores, best.low, best.high)
    return [
        [Candidate(int(number), float(score)) for number, score in zip(numbers, row, strict=True)]
        for numbers, row in zip(best.ids, scores, strict=True)
    ]


def shown_fact(loaded: Loaded, candidate: Candidate) -> KeptFact:
    """A candidate as its texts."""
    tables = loaded.snapshot.tables
    subject, object_ = tables.facts.subject[candidate.number], tables.facts.object[candidate.number]
    predicate = tables.facts.predicate[candidate.number]
    return KeptFact(tables.phrases[subject], predicate, tables.phrases[object_], candidate.score)


def _recognised(row: Sequence[Candidate], verdict: Verdict, name: str, config: SearchConfig) -> Recognised:
    if verdict.failure is not None:
        return Recognised(tuple(row) if config.filter_fails == "keep" else (), verdict.failure)
    strange = [number for number in verdict.kept if not 0 <= number < len(row)]
    if strange:
        raise UsageError(f"The filter '{name}' kept candidate {strange[0]} of {len(row)}. Count candidates from 0.")
    return Recognised(tuple(row[number] for number in sorted(set(verdict.kept))))
