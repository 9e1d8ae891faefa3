"""A run of the verb answer: what is held open for it, and its answers to the screen or to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from hippogpu.cli.answer_file import AnswerFile, opened_answers
from hippogpu.cli.answer_values import Tally, answer_value, report_value, show_answer, tally_rows
from hippogpu.cli.encoders import readers_encoder
from hippogpu.cli.models import Asked, model_for, open_entity_reader, open_fact_filter, opened_model
from hippogpu.cli.opening import Source
from hippogpu.cli.output import Show, note, note_list, people, print_json, progress, table
from hippogpu.config import Configs, LlmConfig, as_mapping, with_values
from hippogpu.corpus import Query
from hippogpu.corpus.questions import query_file
from hippogpu.errors import ExtractionError
from hippogpu.llm import Llm, cost, prices_of
from hippogpu.methods.entities import EntityReader
from hippogpu.methods.filter import FactFilter
from hippogpu.reading import Answered, LlmEntities, LlmFilter, answer_questions
from hippogpu.reading.prompts import VERSION
from hippogpu.runs import run_identity
from hippogpu.runs.identity import Identity
from hippogpu.searcher import Searcher

MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be answered, and how."""

    folder: Path
    configs: Configs
    source: Source
    queries: Sequence[Query]
    asked: Asked
    ircot: bool
    batch: int


@dataclass(frozen=True, slots=True)
class Held:
    """A job with all that is open for it."""

    job: Job
    searcher: Searcher
    llm: Llm
    settings: LlmConfig
    fact_filter: FactFilter | None
    entity_reader: EntityReader | None
    began: float

    def answers(self, queries: Sequence[Query], show: Show, before: int) -> Iterator[list[Answered]]:
        """The answers to the questions, a batch at a time. ExtractionError when a whole batch found no server."""
        for start in range(0, len(queries), self.job.batch):
            some = queries[start : start + self.job.batch]
            answered = answer_questions(
                self.searcher,
                self.llm,
                [query.text for query in some],
                config=self.job.configs.search,
                answer=self.job.configs.answer,
                ircot=self.job.ircot,
                temperature=self.settings.temperature,
                on_progress=_shown(show, before + start, before + len(queries)),
            )
            _require_server(answered, self.llm)
            yield answered


@contextmanager
def opened_job(job: Job, encoder: str | None, *, quiet: bool) -> Iterator[Held]:
    """The index and the models of a job; the language model first, so that a missing one is told at once."""
    search = with_values(job.configs.search, {"entities": job.source.name})
    job = replace(job, configs=replace(job.configs, search=search))
    configs, settings = job.configs, model_for(job.configs, "answer", job.asked)
    with ExitStack() as stack:
        llm = stack.enter_context(opened_model(settings, job.folder, purpose="The verb answer", quiet=quiet))
        judge = stack.enter_context(open_fact_filter(configs, job.folder, asked=job.asked, quiet=quiet))
        source, asked = job.source, job.asked
        reader = stack.enter_context(open_entity_reader(configs, job.folder, source.name, asked=asked, quiet=quiet))
        reader = source.given if source.name == "given" else reader
        searcher = Searcher.open(
            job.folder,
            embedder=readers_encoder(encoder),
            run=configs.run,
            fact_filter=judge,
            entity_reader=reader,
        )
        yield Held(job, searcher, llm, settings, judge, reader, time.perf_counter())


def told(held: Held, *, json: bool, quiet: bool) -> Tally:
    """Prints each answer as its batch is finished."""
    tally, queries = Tally(), held.job.queries
    with progress(quiet=quiet or len(queries) == 1) as show:
        left = iter(queries)
        for batch in held.answers(queries, show, 0):
            for query, answered in zip(islice(left, len(batch)), batch, strict=True):
                value = answer_value(answered, query)
                tally.take(answered, value)
                if json:
                    print_json(value)
                else:
                    show_answer(answered, with_ranking=len(queries) == 1)
    return tally


def written(held: Held, path: Path, output: Path, *, force: bool, quiet: bool) -> Tally:
    """Adds the answers to the file, those that failed left out: the next call asks them again."""
    tally = Tally()
    with opened_answers(output, _identity(held, path), force=force) as file:
        asked = {query.id for query in held.job.queries}
        for line in file.done.values():
            if line.query_id in asked:
                tally.take_earlier(line)
        left = [query for query in held.job.queries if query.id not in file.done]
        rest = iter(left)
        with progress(quiet=quiet) as show:
            for batch in held.answers(left, show, tally.earlier):
                _add(file, list(islice(rest, len(batch))), batch, tally)
    return tally


def _add(file: AnswerFile, queries: Sequence[Query], batch: Sequence[Answered], tally: Tally) -> None:
    """One batch, durable before it is counted."""
    values = [answer_value(answered, query) for answered, query in zip(batch, queries, strict=True)]
    file.add([value for value in values if value["failure"] is None])
    for answered, value in zip(batch, values, strict=True):
        tally.take(answered, value)


def _identity(held: Held, path: Path) -> Identity:
    """What decides the answers: what decides the rankings, the model and its settings, the words of the prompts."""
    job, settings = held.job, held.settings
    answer = {f"answer.{name}": value for name, value in as_mapping(job.configs.answer).items()}
    judges = {"filter": held.fact_filter, "entities": held.entity_reader}
    named = {f"{kind} by": judge.name for kind, judge in judges.items() if judge is not None}
    searched = run_identity(
        held.searcher.manifest,
        query_file(path),
        job.configs.search,
        k=job.configs.answer.passages,
        backend=held.searcher.backend,
    )
    # Not where it runs: a server that is started again may have another port.
    model = {"model": settings.model, "temperature": settings.temperature}
    return {**searched, **answer, **named, **model, "ircot": job.ircot, "prompts": VERSION}


def _shown(show: Show, before: int, whole: int) -> Callable[[str, int], None]:
    """Progress of a batch as that of all questions, a bar a stage."""
    began = time.perf_counter()

    def tell(stage: str, done: int) -> None:
        spent = time.perf_counter() - began
        show(stage, before + done, whole, f"{done / spent:.1f}/s" if spent and done else "")

    return tell


def _require_server(answered: Sequence[Answered], llm: Llm) -> None:
    if answered and all(one.answer.outage for one in answered):
        count = f"None of {len(answered)} questions had a" if len(answered) > 1 else "The question had no"
        raise ExtractionError(
            f"{count} reply from {llm.endpoint}; the last failure: {answered[-1].answer.failure}. Check the server, "
            "its address and the model, then run again: answers that were written are kept."
        )


def report(held: Held, tally: Tally, refused: list[str], output: Path | None, *, json: bool, quiet: bool) -> None:
    """The counts at the end; of a single question only what went wrong."""
    seconds = time.perf_counter() - held.began
    if json:
        print_json({"summary": _summary(held, tally, refused, output, seconds)})
    elif len(held.job.queries) > 1 or output is not None:
        people().print(table(str(output or "answers"), ["", ""], tally_rows(tally)))
    failures = [f"{one['id'] or one['query']}: {one['reason']}" for one in tally.failures]
    note_list("Questions that failed, or whose passages are not all that was meant", failures)
    note_list("Refused", refused)
    if output is not None and not tally.now:
        note(f"'{output}' holds an answer to every question. Nothing was done.", quiet=quiet or json)


def _summary(held: Held, tally: Tally, refused: list[str], output: Path | None, seconds: float) -> dict[str, Any]:
    prices, usage = prices_of(held.settings), tally.cost.usage
    uncounted = held.llm.spent.uncounted
    value = {"output": str(output) if output else None, "method": held.job.configs.search.method} | tally.value()
    value |= {"model": held.settings.model, "endpoint": held.llm.endpoint, "uncounted": uncounted}
    value["cost"] = round(cost(usage, prices), 6) if prices and not uncounted else None
    for name, judge in (("filter", held.fact_filter), ("entities", held.entity_reader)):
        value[name] = report_value(judge.report) if isinstance(judge, LlmFilter | LlmEntities) else None
    rate = tally.now / seconds if seconds else 0.0
    return value | {"refused": refused, "seconds": round(seconds, 3), "questions_a_second": round(rate, 3)}
