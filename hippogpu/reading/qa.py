"""Answers from ranked passages, each with the passages it rests on. HippoRAG 2, section 4; HippoRAG, appendix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hippogpu.config import AnswerConfig
from hippogpu.errors import UsageError
from hippogpu.llm import Llm
from hippogpu.reading.asking import NOTHING, Ask, Cost, Told, ask_each
from hippogpu.reading.prompts import ANSWER, answer_schema, passage_line, with_passages
from hippogpu.reading.replies import ReadAnswer, read_answer
from hippogpu.types import Passage


@dataclass(frozen=True, slots=True)
class Answer:
    """What the reader says of one question.

    text          the answer; "" where the passages do not say it, and where failure says why there is none
    thought       how the reader came to it
    cited         the passages that it rests on, in the order it names them
    shown         the passages that the reader saw; the first is [1]
    strangers     citations of passages that were not shown: dropped
    shortened     shown passages whose end was left out
    failure       why there is no answer, None where the reader gave one or said that there is none
    outage        the failure is that no server could be reached
    said_unknown  the reader said in words, as "unknown", that there is no answer; a thing may bear that name
    cut           the reply never came to its end, and this is what was whole of it
    """

    question: str
    text: str = ""
    thought: str = ""
    cited: tuple[Passage, ...] = ()
    shown: tuple[Passage, ...] = ()
    strangers: int = 0
    shortened: int = 0
    failure: str | None = None
    outage: bool = False
    said_unknown: bool = False
    cut: bool = False
    cost: Cost = NOTHING

    @property
    def unanswerable(self) -> bool:
        """Whether the reader says that the passages do not hold the answer."""
        return not self.text and self.failure is None


def read_answers(
    llm: Llm,
    questions: Sequence[str],
    passages: Sequence[Sequence[Passage]],
    *,
    config: AnswerConfig = AnswerConfig(),  # noqa: B008  (frozen)
    temperature: float = 0.0,
    on_progress: Callable[[int], None] | None = None,
) -> list[Answer]:
    """The answer to each question from the first `config.passages` of its passages, best first.

    All questions are under way together. A question without passages is not asked: nothing says its answer.
    UsageError when questions and passages are not of one length. on_progress : called with how many are done
    """
    if len(questions) != len(passages):
        raise UsageError(f"{len(questions)} questions with {len(passages)} lists of passages. Pass one list each.")
    shown = [tuple(row[: config.passages]) for row in passages]
    asked = [place for place, row in enumerate(shown) if row]
    asks = [_ask(questions[place], shown[place], config) for place in asked]
    told = ask_each(llm, asks, config=config, temperature=temperature, on_told=on_progress)
    answers = [Answer(question) for question in questions]
    for place, one in zip(asked, told, strict=True):
        answers[place] = _answer(questions[place], shown[place], one, config)
    return answers


def _ask(question: str, shown: Sequence[Passage], config: AnswerConfig) -> Ask[ReadAnswer]:
    told = with_passages(question, shown, characters=config.passage_characters)
    return Ask(ANSWER.messages(told), read_answer, answer_schema(len(shown)))


def _answer(question: str, shown: tuple[Passage, ...], told: Told[ReadAnswer], config: AnswerConfig) -> Answer:
    shortened = sum(passage_line(passage, config.passage_characters).cut for passage in shown)
    if told.value is None:
        return Answer(
            question, shown=shown, shortened=shortened, failure=told.failure, outage=told.outage, cost=told.cost
        )
    numbers = told.value.numbers
    known = [number for number in numbers if 1 <= number <= len(shown)]
    return Answer(
        question,
        told.value.answer,
        told.value.thought,
        tuple(shown[number - 1] for number in known),
        shown,
        len(numbers) - len(known),
        shortened,
        said_unknown=told.value.said_unknown,
        cut=told.cut,
        cost=told.cost,
    )
