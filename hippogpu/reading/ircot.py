"""Retrieval in turns with thinking: what a language model concludes from the passages is the next query.

IRCoT (arXiv 2212.10509); HippoRAG, section 4, and HippoRAG 2, appendix, for ten passages a search, and two searches for
2WikiMultiHopQA and HotpotQA, four for MuSiQue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol, TypeVar

from hippogpu.config import AnswerConfig, SearchConfig
from hippogpu.llm import Llm
from hippogpu.reading.asking import NOTHING, Ask, Cost, Told, ask_each
from hippogpu.reading.merging import MergeRule, merge
from hippogpu.reading.prompts import THOUGHT, thought_schema, with_passages
from hippogpu.reading.replies import Thought, read_thought
from hippogpu.text import normalise
from hippogpu.types import Passage, Ranking

T = TypeVar("T")
Stop = Literal["answer", "steps", "repeat", "failure"]


class Ranks(Protocol):
    """A Searcher, or whatever ranks as one does."""

    def rank(self, questions: Sequence[str], *, k: int = 10, config: SearchConfig = ...) -> list[Ranking]: ...


class Step(NamedTuple):
    """One search: its query, its ranking, and the thought that was written after it, None where none was."""

    query: str
    ranking: Ranking
    thought: Thought | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What came of one question.

    ranking  the passages of all searches, merged; its ms are those of the searches together, "think" that of thinking
    steps    the searches in order
    stop     "answer" a thought answered the question · "steps" the limit was met · "repeat" a thought was a query that
             had been asked · "failure" a thought could not be had: what was found before is kept
    failure  why, where stop is "failure"
    cost     of its thoughts
    """

    ranking: Ranking
    steps: tuple[Step, ...]
    stop: Stop
    failure: str | None = None
    cost: Cost = NOTHING

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        """The thoughts in order."""
        return tuple(step.thought for step in self.steps if step.thought is not None)


def retrieve(
    searcher: Ranks,
    llm: Llm,
    questions: Sequence[str],
    *,
    k: int = AnswerConfig().step_passages,
    steps: int = AnswerConfig().steps,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    answer: AnswerConfig = AnswerConfig(),  # noqa: B008  (frozen)
    temperature: float = 0.0,
    rule: MergeRule = "rank",
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Retrieved]:
    """The passages of each question, found in `steps` searches at most, each by the last one's thought.

    Every step ranks all questions that are not done in one call, by the method of `config`, and asks for all their
    thoughts in one stream. A thought is written from the k best passages so far and the thoughts before; after the
    last search none is asked for, so one step is a single search. merge says how the searches become one ranking.
    on_progress : called with questions that are done and all, after each step
    """
    courses = [_Course(question) for question in questions]
    for left in range(steps, 0, -1):
        live = [course for course in courses if course.stop is None]
        if not live:
            break
        for course, ranking in zip(live, searcher.rank([one.query for one in live], k=k, config=config), strict=True):
            course.take_ranking(ranking)
        if left == 1:
            for course in live:
                course.stop = "steps"
        else:
            _think(live, llm, k, answer, temperature, rule)
        if on_progress is not None:
            on_progress(sum(course.stop is not None for course in courses), len(courses))
    return [course.retrieved(rule) for course in courses]


def _think(
    live: Sequence[_Course], llm: Llm, k: int, answer: AnswerConfig, temperature: float, rule: MergeRule
) -> None:
    """Asks for the next thought of each."""
    began = time.perf_counter()
    asks = [
        Ask(
            THOUGHT.messages(
                with_passages(
                    course.question,
                    course.passages(rule)[:k],
                    characters=answer.passage_characters,
                    thoughts=[thought.text for thought in course.thoughts()],
                )
            ),
            read_thought,
            thought_schema(),
        )
        for course in live
    ]
    told = ask_each(llm, asks, config=answer, temperature=temperature)
    share = 1000 * (time.perf_counter() - began) / len(live)
    for course, one in zip(live, told, strict=True):
        course.take_thought(one, share)


@dataclass(slots=True)
class _Course:
    """One question on its way."""

    question: str
    steps: list[Step] = field(default_factory=list)
    stop: Stop | None = None
    failure: str | None = None
    cost: Cost = NOTHING
    think_ms: float = 0.0

    @property
    def query(self) -> str:
        """What is searched for next."""
        last = self.steps[-1].thought if self.steps else None
        return self.question if last is None else last.text

    def thoughts(self) -> list[Thought]:
        return [step.thought for step in self.steps if step.thought is not None]

    def passages(self, rule: MergeRule) -> list[Passage]:
        """The passages so far, best first."""
        return [hit.passage for hit in merge([step.ranking.hits for step in self.steps], rule=rule)]

    def take_ranking(self, ranking: Ranking) -> None:
        self.steps.append(Step(self.query, ranking))

    def take_thought(self, told: Told[Thought], share_ms: float) -> None:
        self.cost = self.cost.plus(told.cost)
        self.think_ms += share_ms
        if told.value is None:
            self.stop, self.failure = "failure", told.failure
            return
        self.steps[-1] = self.steps[-1]._replace(thought=told.value)
        if told.value.answer:
            self.stop = "answer"
        elif normalise(told.value.text) in {normalise(step.query) for step in self.steps}:
            self.stop = "repeat"

    def retrieved(self, rule: MergeRule) -> Retrieved:
        rankings = [step.ranking for step in self.steps]
        ranking = _merged(self.question, rankings, self.think_ms, rule)
        return Retrieved(ranking, tuple(self.steps), self.stop or "steps", self.failure, self.cost)


def _merged(question: str, rankings: Sequence[Ranking], think_ms: float, rule: MergeRule) -> Ranking:
    """The searches of one question as one ranking; a single one keeps its scores and its certificate."""
    first, told = rankings[0], [(number, one.fallback) for number, one in enumerate(rankings, start=1) if one.fallback]
    stages = {stage for ranking in rankings for stage in ranking.ms}
    ms = {stage: sum(ranking.ms.get(stage, 0.0) for ranking in rankings) for stage in sorted(stages)}
    one = replace(
        first,
        query=question,
        method=f"ircot-{first.method}",
        ms=ms | ({"think": think_ms} if think_ms else {}),
    )
    if len(rankings) == 1:
        return one
    return replace(
        one,
        hits=merge([ranking.hits for ranking in rankings], rule=rule),
        facts=_firsts((fact for ranking in rankings for fact in ranking.facts), lambda fact: fact[:3]),
        seeds=_firsts((seed for ranking in rankings for seed in ranking.seeds), lambda seed: seed.phrase),
        entities=_firsts((entity for ranking in rankings for entity in ranking.entities), lambda entity: entity[:2]),
        certified=None,
        fallback="; ".join(f"search {number}: {reason}" for number, reason in told) or None,
        generation=rankings[-1].generation,
        filter_failure=next((one.filter_failure for one in rankings if one.filter_failure is not None), None),
    )


def _firsts(items: Iterable[T], key: Callable[[T], object]) -> tuple[T, ...]:
    """The first item of each key, in order."""
    found: dict[object, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return tuple(found.values())
