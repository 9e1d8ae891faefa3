"""From questions to answers: passages by one search or by IRCoT, then the reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hippogpu.config import AnswerConfig, SearchConfig
from hippogpu.llm import Llm
from hippogpu.methods.starts import UNREAD_ENTITIES
from hippogpu.reading.asking import Cost
from hippogpu.reading.ircot import Ranks, Retrieved, retrieve
from hippogpu.reading.qa import Answer, read_answers
from hippogpu.types import Ranking


class Answered(NamedTuple):
    """One question: its ranking, how IRCoT came to it (None after a single search), the answer, and what it took.

    ms : milliseconds by stage, those of the ranking and "read"; a batch's time divided by its questions
    """

    ranking: Ranking
    retrieved: Retrieved | None
    answer: Answer
    ms: dict[str, float]

    @property
    def cost(self) -> Cost:
        """Of thoughts and answer together; a filter by a language model has an account of its own."""
        return self.answer.cost if self.retrieved is None else self.retrieved.cost.plus(self.answer.cost)

    @property
    def degraded(self) -> str | None:
        """Why the passages may not be those that were meant, though there is an answer; None where they are."""
        if self.retrieved is not None and self.retrieved.failure is not None:
            return f"no further thought: {self.retrieved.failure}"
        failure = self.ranking.filter_failure
        if failure is not None:
            return f"facts not judged: {failure}"
        # After several searches a reason stands behind the number of its search.
        fallback = self.ranking.fallback
        return fallback if fallback is not None and UNREAD_ENTITIES in fallback else None


def answer_questions(
    searcher: Ranks,
    llm: Llm,
    questions: Sequence[str],
    *,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    answer: AnswerConfig = AnswerConfig(),  # noqa: B008  (frozen)
    ircot: bool = False,
    temperature: float = 0.0,
    on_progress: Callable[[str, int], None] | None = None,
) -> list[Answered]:
    """Each question's passages and answer, in order; all questions take each stage together.

    ircot       : search again by the thoughts of a language model, `answer.steps` searches at most (ircot.retrieve)
    on_progress : called with a stage ("search" or "read") and how many questions have finished it
    """

    def tell(stage: str, done: int) -> None:
        if on_progress is not None:
            on_progress(stage, done)

    if ircot:
        found: list[Retrieved | None] = list(
            retrieve(
                searcher,
                llm,
                questions,
                k=answer.step_passages,
                steps=answer.steps,
                config=config,
                answer=answer,
                temperature=temperature,
                on_progress=lambda done, whole: tell("search", done),
            )
        )
        rankings = [one.ranking for one in found if one is not None]
    else:
        rankings = searcher.rank(questions, k=answer.passages, config=config)
        found = [None] * len(questions)
        tell("search", len(questions))
    began = time.perf_counter()
    answers = read_answers(
        llm,
        questions,
        [[hit.passage for hit in ranking.hits] for ranking in rankings],
        config=answer,
        temperature=temperature,
        on_progress=lambda done: tell("read", done),
    )
    share = 1000 * (time.perf_counter() - began) / max(len(questions), 1)
    return [
        Answered(ranking, retrieved, one, {**ranking.ms, "read": share})
        for ranking, retrieved, one in zip(rankings, found, answers, strict=True)
    ]
