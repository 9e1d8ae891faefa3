"""The entities of a question by a language model. HippoRAG 1, section 2.3."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from hippogpu.config import AnswerConfig
from hippogpu.llm import Llm
from hippogpu.methods.entities import QuestionEntities
from hippogpu.reading.asking import NOTHING, Ask, Cost, Told, ask_each, asker_name, with_failure
from hippogpu.reading.prompts import QUESTION_ENTITIES, VERSION, asked_as, entities_schema
from hippogpu.reading.replies import read_entities


class EntityReport(NamedTuple):
    """What was read so far: questions asked, those that name nothing, those that failed, the names of all, the cost.

    failures : question and reason, the first 1,000
    """

    asked: int = 0
    without: int = 0
    failed: int = 0
    names: int = 0
    cost: Cost = NOTHING
    failures: tuple[tuple[str, str], ...] = ()


class LlmEntities:
    """Names the entities of questions; a question whose reply cannot be had or read says why.

    All questions of a call are under way together. Safe to use from several threads, one call at a time.
    """

    def __init__(
        self,
        llm: Llm,
        config: AnswerConfig = AnswerConfig(),  # noqa: B008  (frozen)
        *,
        temperature: float = 0.0,
    ) -> None:
        self.llm, self._config, self._temperature = llm, config, temperature
        self.name = asker_name(llm, VERSION, config, temperature)
        self._lock, self._report = Lock(), EntityReport()

    @property
    def report(self) -> EntityReport:
        """What was read so far."""
        return self._report

    def __call__(self, questions: Sequence[str]) -> list[QuestionEntities]:
        """The entities of each question, in order, each name once."""
        asks = [Ask(QUESTION_ENTITIES.messages(asked_as(one)), read_entities, entities_schema()) for one in questions]
        with self._lock:
            told = ask_each(self.llm, asks, config=self._config, temperature=self._temperature)
            for question, one in zip(questions, told, strict=True):
                self._count(question, one)
        return [QuestionEntities(one.value or (), one.failure) for one in told]

    def close(self) -> None:
        """Lets the model, or the connections to it, go."""
        self.llm.close()

    def _count(self, question: str, told: Told[tuple[str, ...]]) -> None:
        before = self._report
        self._report = EntityReport(
            before.asked + 1,
            before.without + (told.value == ()),
            before.failed + (told.value is None),
            before.names + len(told.value or ()),
            before.cost.plus(told.cost),
            with_failure(before.failures, question, told.failure),
        )
