"""An answer and a whole run of them, as JSON values and as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hippogpu.cli.answer_file import Line
from hippogpu.cli.models import cost_text
from hippogpu.cli.output import people, printable, table
from hippogpu.corpus import Query
from hippogpu.evaluate import exact_match, token_f1
from hippogpu.reading import Answered, Cost, EntityReport, FilterReport, Retrieved
from hippogpu.reading.asking import NOTHING
from hippogpu.runs import ranking_value
from hippogpu.types import Passage

MOST_FAILURES = 1000
_COUNTS = (
    *("questions", "earlier", "answered", "uncited", "unanswerable", "said_unknown", "failed", "degraded"),
    *("cited", "strangers", "gold"),
)


def answer_value(answered: Answered, query: Query) -> dict[str, Any]:
    """The object of `answer --json` for one question; em and f1 where its answers are known."""
    answer, ranking = answered.answer, answered.ranking
    value: dict[str, Any] = {
        "query_id": query.id or None,
        "query": query.text,
        "answer": answer.text or None,
        "failure": answer.failure,
        "degraded": answered.degraded,
        "thought": answer.thought,
        "cited": [_named(passage) for passage in answer.cited],
        "strangers": answer.strangers,
        "said_unknown": answer.said_unknown,
        "shown": len(answer.shown),
        "shortened": answer.shortened,
        "cut": answer.cut,
    }
    value |= {name: item for name, item in ranking_value(ranking, query.id).items() if name not in value}
    value |= {"ircot": _ircot_value(answered.retrieved)} | cost_value(answered.cost)
    value["ms"] = {stage: round(ms, 3) for stage, ms in answered.ms.items()}
    if query.answers:
        golds = list(query.answers)
        value |= {"gold": golds, "em": exact_match(answer.text, golds), "f1": round(token_f1(answer.text, golds), 6)}
    return value


def cost_value(cost: Cost) -> dict[str, Any]:
    """Replies, those that were remembered, and the tokens of the others."""
    return {"requests": cost.requests, "remembered": cost.remembered, "tokens": cost.usage._asdict()}


def report_value(report: FilterReport | EntityReport) -> dict[str, Any]:
    """What a filter or a reader of entities did."""
    counts = {name: item for name, item in report._asdict().items() if name not in ("cost", "failures")}
    return counts | cost_value(report.cost) | {"failures": [list(pair) for pair in report.failures]}


@dataclass(slots=True)
class Tally:
    """Counts over the answers of a run.

    uncited : answers that name no passage · said_unknown : of the unanswerable, those that say so in words
    em and f1 sum over the questions whose answers are known; one that failed, or that the passages do not answer, is 0
    """

    questions: int = 0
    earlier: int = 0
    answered: int = 0
    uncited: int = 0
    unanswerable: int = 0
    said_unknown: int = 0
    failed: int = 0
    degraded: int = 0
    gold: int = 0
    em: float = 0.0
    f1: float = 0.0
    cited: int = 0
    strangers: int = 0
    cost: Cost = NOTHING
    ms: dict[str, float] = field(default_factory=dict)
    single_ms: float = 0.0
    searches: int = 0
    failures: list[dict[str, str | None]] = field(default_factory=list)

    def take_earlier(self, line: Line) -> None:
        """An answer of an earlier call."""
        self.questions += 1
        self.earlier += 1
        self._measure(line.em, line.f1)

    def take(self, answered: Answered, value: Mapping[str, Any]) -> None:
        """An answer of this call, with its object."""
        answer = answered.answer
        self.questions += 1
        self.failed += answer.failure is not None
        self.unanswerable += answer.unanswerable
        self.said_unknown += answer.said_unknown
        self.uncited += bool(answer.text) and not answer.cited
        self.answered += bool(answer.text)
        self.cited += len(answer.cited)
        self.strangers += answer.strangers
        self.cost = self.cost.plus(answered.cost)
        for stage, ms in answered.ms.items():
            self.ms[stage] = self.ms.get(stage, 0.0) + ms
        steps = answered.retrieved.steps if answered.retrieved else ()
        self.searches += len(steps) or 1
        self.single_ms += sum((steps[0].ranking if steps else answered.ranking).ms.values())
        self._measure(value.get("em"), value.get("f1"))
        why = answer.failure or answered.degraded
        self.degraded += answer.failure is None and why is not None
        if why is not None and len(self.failures) < MOST_FAILURES:
            self.failures.append({"id": value["query_id"], "query": answer.question, "reason": why})

    @property
    def now(self) -> int:
        """Questions of this call."""
        return self.questions - self.earlier

    def value(self) -> dict[str, Any]:
        """The counts, ready for JSON; em and f1 are means over the questions whose answers are known."""
        value: dict[str, Any] = {name: getattr(self, name) for name in _COUNTS}
        value |= {"em": self.em / self.gold, "f1": self.f1 / self.gold} if self.gold else {}
        value |= cost_value(self.cost)
        value["ms_a_question"] = {stage: round(ms / max(self.now, 1), 3) for stage, ms in self.ms.items()}
        value["single_search_ms"] = round(self.single_ms / max(self.now, 1), 3)
        value["searches_a_question"] = round(self.searches / max(self.now, 1), 3)
        return value | {"failures": self.failures}

    def _measure(self, em: float | None, f1: float | None) -> None:
        if em is not None and f1 is not None:
            self.gold += 1
            self.em += em
            self.f1 += f1


def show_answer(answered: Answered, *, with_ranking: bool) -> None:
    """An answer for people; the passages in their order where that is wanted."""
    out, answer = people(), answered.answer
    out.print(printable(answer.question), style="bold", markup=False)
    if answer.failure is not None:
        out.print(f"No answer: {printable(answer.failure)}", markup=False)
    else:
        out.print(f"Answer: {printable(answer.text) or 'the passages do not say.'}", markup=False)
    if answer.thought:
        out.print(f"Thought: {printable(answer.thought)}", markup=False)
    for passage in answer.cited:
        number = answer.shown.index(passage) + 1
        out.print(f"  [{number}] {printable(passage.title or passage.id)} ({printable(passage.id)})", markup=False)
    if answered.degraded:
        out.print(f"Note: {printable(answered.degraded)}.", markup=False)
    if with_ranking:
        _show_searches(answered)
    out.print(f"{_times(answered)}; {cost_text(answered.cost)}", markup=False)
    out.print()


def tally_rows(tally: Tally) -> list[list[str]]:
    """The counts as rows of a table: name and figure."""
    counted = ("questions", "earlier", "answered", "uncited", "unanswerable", "said_unknown", "failed", "degraded")
    seldom = ("earlier", "uncited", "said_unknown")
    rows = [
        [name.replace("_", " "), f"{getattr(tally, name):,}"]
        for name in counted
        if name not in seldom or getattr(tally, name)
    ]
    if tally.gold:
        rows.append(["exact match, percent", f"{100 * tally.em / tally.gold:.2f}"])
        rows.append(["F1, percent", f"{100 * tally.f1 / tally.gold:.2f}"])
        rows.append(["questions with known answers", f"{tally.gold:,}"])
    if tally.now:
        rows.append(["searches a question", f"{tally.searches / tally.now:.2f}"])
        rows.append(["tokens a question, in", f"{tally.cost.usage.prompt / tally.now:,.0f}"])
        rows.append(["tokens a question, out", f"{tally.cost.usage.completion / tally.now:,.0f}"])
        rows += [[f"ms a question, {stage}", f"{ms / tally.now:,.1f}"] for stage, ms in tally.ms.items()]
        rows.append(["ms a question, one search alone", f"{tally.single_ms / tally.now:,.1f}"])
    return rows


def _named(passage: Passage) -> dict[str, str]:
    return {"id": passage.id, "title": passage.title}


def _ircot_value(retrieved: Retrieved | None) -> dict[str, Any] | None:
    """The searches of one question, what each cost, and what the first alone did."""
    if retrieved is None:
        return None
    steps = [
        {
            "query": step.query,
            "passages": [hit.passage.id for hit in step.ranking.hits],
            "fallback": step.ranking.fallback,
            "ms": round(sum(step.ranking.ms.values()), 3),
            "thought": step.thought.text if step.thought else None,
            "answer": (step.thought.answer or None) if step.thought else None,
        }
        for step in retrieved.steps
    ]
    value: dict[str, Any] = {"steps": steps, "stop": retrieved.stop, "failure": retrieved.failure}
    return value | cost_value(retrieved.cost)


def _show_searches(answered: Answered) -> None:
    out, rows = people(), []
    for place, hit in enumerate(answered.ranking.hits, start=1):
        rows.append([str(place), f"{hit.score:.6f}", hit.passage.id, hit.passage.title])
    out.print(table("passages", ["rank", "score", "id", "title"], rows))
    if answered.ranking.fallback:
        out.print(f"Note: {printable(answered.ranking.fallback)}.", markup=False)
    if answered.retrieved is not None:
        searches = [
            [str(number), step.query, step.thought.text if step.thought else "", _top(step.ranking.hits)]
            for number, step in enumerate(answered.retrieved.steps, start=1)
        ]
        out.print(table(f"searches (stop: {answered.retrieved.stop})", ["", "query", "thought", "first"], searches))


def _top(hits: Sequence[Any]) -> str:
    return hits[0].passage.title or hits[0].passage.id if hits else ""


def _times(answered: Answered) -> str:
    return f"{answered.ranking.method}: " + ", ".join(f"{stage} {ms:.1f} ms" for stage, ms in answered.ms.items())
