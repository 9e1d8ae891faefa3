"""Where two methods differ, question by question: what each gained and lost, and where each gold passage stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from hippogpu.errors import UsageError
from hippogpu.evaluate.measures import Evaluation, Gold

Change = Literal["gained", "lost", "moved", "same"]


class GoldPlace(NamedTuple):
    """A gold passage and its rank, from 1, under both methods; None where it is not in the ranking."""

    id: str
    first: int | None
    second: int | None


class QuestionChange(NamedTuple):
    """One question under two methods.

    change : what the second method did to the measure: "gained" or "lost"; "moved" when the measure is equal but a
             gold passage stands elsewhere, "same" when none does
    """

    query: str
    change: Change
    first: float
    second: float
    gold: tuple[GoldPlace, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of `eval --diff --json`."""
        places = [{"id": place.id, "ranks": [place.first, place.second]} for place in self.gold]
        return {"query_id": self.query, "change": self.change, "values": [self.first, self.second], "gold": places}


class Ranked(NamedTuple):
    """A method's rankings by question, and what they measure."""

    ranked: Mapping[str, Sequence[str]]
    evaluation: Evaluation


def question_changes(first: Ranked, second: Ranked, gold: Gold, *, measure: str = "recall@5") -> list[QuestionChange]:
    """What the second method changes, for each question that both were measured on, in the first one's order.

    UsageError for a measure that one of them lacks, or when no question is common.
    """
    for side in (first, second):
        if measure not in side.evaluation.values:
            known = ", ".join(side.evaluation.values)
            raise UsageError(f"The rankings do not tell '{measure}'. Take one of {known}, or rank deeper with -k.")
    common = [query for query in first.evaluation.by_query if query in second.evaluation.by_query]
    if not common:
        raise UsageError("The two methods have no question in common. Rank the same questions by both.")
    return [_change(query, first, second, gold, measure) for query in common]


def gold_places(ranked: Sequence[str], wanted: Sequence[str]) -> dict[str, int | None]:
    """The rank of each wanted name, from 1; None where it is not in the ranking."""
    ranks = {id_: rank for rank, id_ in enumerate(ranked, start=1)}
    return {id_: ranks.get(id_) for id_ in wanted}


def _change(query: str, first: Ranked, second: Ranked, gold: Gold, measure: str) -> QuestionChange:
    wanted = [id_ for id_, grade in gold[query].items() if grade > 0]
    before, after = (gold_places(side.ranked[query], wanted) for side in (first, second))
    values = (first.evaluation.by_query[query][measure], second.evaluation.by_query[query][measure])
    places = tuple(GoldPlace(id_, before[id_], after[id_]) for id_ in wanted)
    return QuestionChange(query, _kind(values, before == after), *values, places)


def _kind(values: tuple[float, float], unmoved: bool) -> Change:
    if values[0] != values[1]:
        return "gained" if values[1] > values[0] else "lost"
    return "same" if unmoved else "moved"
