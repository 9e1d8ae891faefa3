"""What a language model does at question time, on real questions: python -m bench reading.

Facts are filtered, entities named, questions answered after one search and after IRCoT. Checked first: every question
has an outcome, what is kept is a candidate, what is cited was shown, and the same again from the remembered replies
costs no token and changes nothing. With gold hops (MuSiQue) IRCoT is also run with ideal thoughts, each hop with its
answer filled in: what the searches gain when the thoughts are right, and which rule of merging gains more.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from bench.checks import Check, all_passed, equal
from bench.ideal_thoughts import CUTOFFS, ideal_thoughts, recall
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.config import AnswerConfig, LlmConfig, SearchConfig
from hippogpu.corpus import Query, read_queries
from hippogpu.evaluate import exact_match, token_f1
from hippogpu.llm import Llm, open_llm
from hippogpu.methods.filter import Verdict
from hippogpu.reading import Answered, Cost, LlmEntities, LlmFilter, answer_questions
from hippogpu.searcher import Searcher
from hippogpu.types import KeptFact, Ranking


class Task(NamedTuple):
    """What one task did: a row of figures, its outcomes in a form that can be compared, and its checks."""

    row: dict[str, Any]
    outcome: list[Any]
    checks: list[Check]


def reading(
    index: Annotated[Path, typer.Argument(help="An index of the questions' corpus.")],
    queries: Annotated[Path, typer.Option("--queries", metavar="FILE", help="Questions, as search takes them.")],
    url: Annotated[
        str, typer.Option("--url", help="Address of an OpenAI-compatible server; without one, ideal thoughts alone.")
    ] = "",
    model: Annotated[str, typer.Option("--model", help="Name of the model there.")] = "",
    told: Annotated[str, typer.Option("--told", help="What the model is, for the record.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Questions that the model is asked.")] = 10,
    in_flight: Annotated[int, typer.Option("--in-flight", min=1)] = 2,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1)] = 160,
    json_: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result here.")] = None,
) -> None:
    """Measure filter, entities, reader and IRCoT with a model; and IRCoT with ideal thoughts."""
    console, asked = Console(), read_queries(queries).queries
    searcher = Searcher.open(index)
    result: dict[str, Any] = {"machine": machine(), "index": dict(searcher.manifest.counts), "checks": []}
    result["ideal_thoughts"] = ideal_thoughts(searcher, queries, asked)
    checks: list[Check] = []
    if url:
        settings = LlmConfig(url=url, model=model, in_flight=in_flight, timeout_s=600.0)
        answer = AnswerConfig(max_tokens=max_tokens, largest_tokens=2 * max_tokens)
        tasks, checks = with_model(settings, searcher, asked[:limit], answer, console)
        result |= {"model": told or model, "questions": len(asked[:limit]), "max_tokens": max_tokens, "tasks": tasks}
    result["checks"] = [check._asdict() for check in checks]
    print_checks(checks, console)
    for found in result["ideal_thoughts"]:
        figures = [[name, *found["recall"][name]] for name in found["recall"]]
        title = f"{found['method']}, {found['steps']} searches at most, ideal thoughts: recall, percent"
        print_rows(title, ["", *(f"@{k}" for k in CUTOFFS)], figures, console)
    if not all_passed(checks):
        raise typer.Exit(1)
    if json_ is not None:
        write_json(json_, result)


def with_model(
    settings: LlmConfig, searcher: Searcher, queries: Sequence[Query], answer: AnswerConfig, console: Console
) -> tuple[dict[str, Any], list[Check]]:
    """The figures of each task, and the checks of all."""
    tasks: dict[str, Callable[[Llm], Task]] = {
        "filter": lambda llm: filtered(llm, searcher, queries, answer),
        "entities": lambda llm: named(llm, queries, answer),
        "one search": lambda llm: answered(llm, searcher, queries, answer, ircot=False),
        "ircot": lambda llm: answered(llm, searcher, queries, answer, ircot=True),
    }
    rows: dict[str, Any] = {}
    checks: list[Check] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, run in tasks.items():
            replies = Path(folder) / f"{name}.sqlite"  # one a task: a task must not live on the replies of another
            with open_llm(settings, replies=replies) as llm:
                began = time.perf_counter()
                first = run(llm)
                seconds = time.perf_counter() - began
            with open_llm(settings, replies=replies) as llm:
                again = run(llm)
            whole = first.row["failed"] == 0
            checks += [check._replace(name=f"{name}: {check.name}") for check in first.checks]
            if whole:
                others = sum(one != two for one, two in zip(again.outcome, first.outcome, strict=True))
                checks.append(equal(f"{name}: outcomes that differ when replies are remembered", others, 0))
                checks.append(equal(f"{name}: tokens of that", again.row["tokens_out"], 0))
            rows[name] = first.row | {"seconds": round(seconds, 1)}
            rows[name]["seconds_a_question"] = round(seconds / len(queries), 2)
            print_rows(name, ["", ""], [[key, value] for key, value in rows[name].items()], console)
    return rows, checks


def filtered(llm: Llm, searcher: Searcher, queries: Sequence[Query], answer: AnswerConfig) -> Task:
    """The filter by the model, on the facts that the search finds."""
    texts = [query.text for query in queries]
    facts = [list(ranking.facts) for ranking in searcher.rank(texts, k=1, config=SearchConfig(method="hippo2"))]
    judge = LlmFilter(llm, answer)
    verdicts = judge(texts, facts)
    report = judge.report
    row = _costs(report.cost) | {
        "asked": report.asked,
        "failed": report.failed,
        "kept_share": round(report.kept / max(report.kept + report.dropped, 1), 3),
        "unknown": report.unknown,
        "failures": [reason for _, reason in report.failures],
    }
    checks = [
        equal("verdicts", len(verdicts), len(queries)),
        equal("kept facts that are no candidates", _strange(verdicts, facts), 0),
        equal("candidates told of", report.kept + report.dropped, sum(map(_judged, verdicts, facts))),
    ]
    return Task(row, [verdict.kept for verdict in verdicts], checks)


def named(llm: Llm, queries: Sequence[Query], answer: AnswerConfig) -> Task:
    """The entities by the model."""
    reader = LlmEntities(llm, answer)
    read = reader([query.text for query in queries])
    report = reader.report
    pairs = [(name, query) for query, one in zip(queries, read, strict=True) for name in one.names]
    row = _costs(report.cost) | {
        "asked": report.asked,
        "failed": report.failed,
        "without": report.without,
        "names": report.names,
        "names_in_the_question": sum(name.casefold() in query.text.casefold() for name, query in pairs),
        "failures": [reason for _, reason in report.failures],
    }
    return Task(row, [one.names for one in read], [equal("questions told of", len(read), len(queries))])


def answered(llm: Llm, searcher: Searcher, queries: Sequence[Query], answer: AnswerConfig, *, ircot: bool) -> Task:
    """Answers after one search, or after IRCoT."""
    texts = [query.text for query in queries]
    searcher.rank(texts, k=1)  # what is compiled or loaded at the first use is no part of a question's time
    found = answer_questions(searcher, llm, texts, config=SearchConfig(method="hippo2"), answer=answer, ircot=ircot)
    total = Cost()
    for one in found:
        total = total.plus(one.cost)
    stages = {stage for one in found for stage in one.ms}
    row = _costs(total) | {
        "asked": len(found),
        "failed": sum(one.answer.failure is not None for one in found),
        "unanswerable": sum(one.answer.unanswerable for one in found),
        "cut": sum(one.answer.cut for one in found),
        "degraded": sum(one.degraded is not None for one in found),
        "cited": sum(len(one.answer.cited) for one in found),
        "strangers": sum(one.answer.strangers for one in found),
        "em": _mean(exact_match(one.answer.text, query.answers) for one, query in zip(found, queries, strict=True)),
        "f1": _mean(token_f1(one.answer.text, query.answers) for one, query in zip(found, queries, strict=True)),
        "stops": _stops(found),
        "ms_a_question": {stage: _mean(one.ms.get(stage, 0.0) for one in found) for stage in sorted(stages)},
        "recall@5": round(recall([one.ranking for one in found], queries, 5), 3),
        "failures": [why for one in found for why in (one.answer.failure, one.degraded) if why],
    }
    checks = [
        equal("answers", len(found), len(queries)),
        equal("citations of what was not shown", sum(_strangers(one) for one in found), 0),
        equal("passages twice in a ranking", sum(_repeats(one.ranking) for one in found), 0),
    ]
    return Task(row, [(one.answer.text, [hit.passage.id for hit in one.ranking.hits]) for one in found], checks)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return round(sum(found) / max(len(found), 1), 3)


def _costs(cost: Cost) -> dict[str, Any]:
    usage = cost.usage
    return {
        "replies": cost.requests,
        "tokens_in": usage.prompt,
        "tokens_cached": usage.cached,
        "tokens_out": usage.completion,
    }


def _strange(verdicts: Sequence[Verdict], facts: Sequence[Sequence[KeptFact]]) -> int:
    pairs = [(number, row) for verdict, row in zip(verdicts, facts, strict=True) for number in verdict.kept]
    return sum(not 0 <= number < len(row) for number, row in pairs)


def _judged(verdict: Verdict, facts: Sequence[KeptFact]) -> int:
    return 0 if verdict.failure is not None else len(facts)


def _strangers(one: Answered) -> int:
    shown = {passage.id for passage in one.answer.shown}
    return sum(passage.id not in shown for passage in one.answer.cited)


def _stops(found: Sequence[Answered]) -> Mapping[str, int]:
    stops = [one.retrieved.stop for one in found if one.retrieved is not None]
    return {stop: stops.count(stop) for stop in sorted(set(stops))}


def _repeats(ranking: Ranking) -> bool:
    ids = [hit.passage.id for hit in ranking.hits]
    return len(set(ids)) < len(ids)
