"""The seam between the methods and whoever asks: what a question brings, what a method needs of it, what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from hippogpu.config import MethodName, SearchConfig
from hippogpu.methods.entities import QuestionEntities
from hippogpu.methods.filter import FactFilter, KeepAll
from hippogpu.methods.loaded import Clock, Loaded, Queries, Ranked
from hippogpu.types import AnyFloats, Floats, Ints

NO_ROWS: Ints = np.empty(0, np.int32)
NO_SCORES: Floats = np.empty(0, np.float32)


class Needs(NamedTuple):
    """What a method takes of each question, and what it holds for it meanwhile.

    passages : its vector to compare with passages · facts : that for facts and phrases · filter : a filter of facts
    entities : its entities · walks : a row of all nodes · passage_bytes : so many bytes a passage
    """

    passages: bool = False
    facts: bool = False
    filter: bool = False
    entities: bool = False
    walks: bool = False
    passage_bytes: int = 32

    def joined(self, other: Needs) -> Needs:
        return Needs(
            passages=self.passages or other.passages,
            facts=self.facts or other.facts,
            filter=self.filter or other.filter,
            entities=self.entities or other.entities,
            walks=self.walks or other.walks,
            passage_bytes=max(self.passage_bytes, other.passage_bytes),
        )


class EntityVectors(NamedTuple):
    """The entities of a batch: those of each question, and the vectors (their number, w) of all names in a row."""

    read: Sequence[QuestionEntities]
    vectors: Floats


class Asked(NamedTuple):
    """A batch of B questions with what the method needs of them; what it does not need has no columns, or is None."""

    texts: Sequence[str]
    queries: Queries
    fact_filter: FactFilter = KeepAll()
    entities: EntityVectors | None = None


class Scored(NamedTuple):
    """Scores of all passages, (B, P), the greatest best; and one Ranked a question that says why, without its rows."""

    scores: AnyFloats
    why: Sequence[Ranked]


class Rank(Protocol):
    """The k best passages of each question."""

    def __call__(self, loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]: ...


class Score(Protocol):
    """The scores of all passages, for methods that combine those of others."""

    def __call__(self, loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored: ...


class Method(NamedTuple):
    """A way to rank passages. needs tells what of the questions must be there before rank or score is called."""

    name: MethodName
    rank: Rank
    score: Score
    needs: Callable[[Loaded, SearchConfig], Needs]


def best_of(loaded: Loaded, scored: Scored, *, k: int, clock: Clock) -> list[Ranked]:
    """The k best passages by their scores, ties by lower row."""
    with clock("select"):
        rows = loaded.backend.select(scored.scores, k)
        best = np.take_along_axis(scored.scores, rows, axis=1)
    return [why._replace(rows=rows[i], scores=best[i]) for i, why in enumerate(scored.why)]
