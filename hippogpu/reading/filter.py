"""Recognition memory by a language model: which of the facts near to a question help to answer it.

The reply names candidates by number, not by their text as in the papers' library: a number is one of the candidates or
it is not, so that nothing has to be matched by likeness; an engine that is guided by the schema can write no other; it
takes a tenth of the tokens; and a model too small to copy three fields without a slip can still count to five.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from hippogpu.config import AnswerConfig
from hippogpu.errors import UsageError
from hippogpu.llm import Llm
from hippogpu.methods.filter import Verdict
from hippogpu.reading.asking import NOTHING, Ask, Cost, Told, ask_each, asker_name, with_failure
from hippogpu.reading.prompts import FILTER, VERSION, filter_schema, with_facts
from hippogpu.reading.replies import KeptNumbers, fact_text, kept_reader
from hippogpu.types import KeptFact


class FilterReport(NamedTuple):
    """What a filter did so far.

    asked         questions that were judged or failed; those without candidates are not asked
    kept, dropped candidates of the questions that were judged
    failed        questions that could not be judged
    unknown       numbers or facts that replies named and that were no candidate: dropped
    cost          of all questions together; ms is the time that questions waited, added up
    failures      question and reason, the first 1,000
    """

    asked: int = 0
    kept: int = 0
    dropped: int = 0
    failed: int = 0
    unknown: int = 0
    cost: Cost = NOTHING
    failures: tuple[tuple[str, str], ...] = ()


class LlmFilter:
    """Keeps the candidates that a language model chooses. HippoRAG 2, section 3.4.

    All questions of a call are under way together. Candidates with the same text are shown once and share the verdict.
    What a reply names beyond the candidates is dropped and counted. A question whose reply cannot be had or read has a
    Verdict with the reason; the report counts those. Safe to use from several threads, one call at a time.
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
        self._lock, self._report = Lock(), FilterReport()

    @property
    def report(self) -> FilterReport:
        """What was judged so far."""
        return self._report

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        """One verdict a question, in order; UsageError when the two are not of one length."""
        if len(questions) != len(candidates):
            raise UsageError(f"{len(questions)} questions with {len(candidates)} lists of facts. Pass one list each.")
        groups = [_distinct(row) for row in candidates]
        asked = [place for place, group in enumerate(groups) if group]
        with self._lock:
            told = ask_each(
                self.llm,
                [_ask(questions[place], [candidates[place][same[0]] for same in groups[place]]) for place in asked],
                config=self._config,
                temperature=self._temperature,
            )
            verdicts = [Verdict(()) for _ in questions]
            for place, one in zip(asked, told, strict=True):
                verdicts[place] = _verdict(one, groups[place])
                self._count(questions[place], len(candidates[place]), one, verdicts[place])
        return verdicts

    def close(self) -> None:
        """Lets the model, or the connections to it, go."""
        self.llm.close()

    def _count(self, question: str, facts: int, told: Told[KeptNumbers], verdict: Verdict) -> None:
        before, failed = self._report, verdict.failure is not None
        self._report = FilterReport(
            before.asked + 1,
            before.kept + len(verdict.kept),
            before.dropped + (0 if failed else facts - len(verdict.kept)),
            before.failed + failed,
            before.unknown + (told.value.unknown if told.value else 0),
            before.cost.plus(told.cost),
            with_failure(before.failures, question, verdict.failure),
        )


def _distinct(facts: Sequence[KeptFact]) -> list[list[int]]:
    """The numbers of the facts of each text, in the order of the first."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, fact in enumerate(facts):
        groups.setdefault(fact_text(*fact[:3]), []).append(number)
    return list(groups.values())


def _ask(question: str, facts: Sequence[KeptFact]) -> Ask[KeptNumbers]:
    return Ask(FILTER.messages(with_facts(question, facts)), kept_reader(facts), filter_schema(len(facts)))


def _verdict(told: Told[KeptNumbers], groups: Sequence[Sequence[int]]) -> Verdict:
    if told.value is None:
        return Verdict((), told.failure)
    return Verdict(tuple(sorted(number for group in told.value.kept for number in groups[group])))
