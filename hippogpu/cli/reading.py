"""The verb answer: questions to answers with cited passages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.answer_file import AnswerFile, opened_answers
from hippogpu.cli.answer_values import Tally, answer_value, report_value, show_answer, tally_rows
from hippogpu.cli.encoders import readers_encoder
from hippogpu.cli.models import Asked, model_for, open_entity_reader, open_fact_filter, opened_model
from hippogpu.cli.output import Show, note, note_list, people, print_json, progress, table
from hippogpu.config import Configs, EntitySource, FilterName, LlmConfig, as_mapping, read_configs, with_values
from hippogpu.corpus import Query, read_queries
from hippogpu.corpus.questions import query_file
from hippogpu.errors import ExtractionError, UsageError
from hippogpu.llm import Llm, cost, prices_of
from hippogpu.methods.entities import EntityReader
from hippogpu.methods.filter import FactFilter
from hippogpu.reading import Answered, LlmEntities, LlmFilter, answer_questions
from hippogpu.reading.prompts import VERSION
from hippogpu.runs import run_identity
from hippogpu.runs.identity import Identity
from hippogpu.searcher import Searcher

MOST_AT_ONCE = 64


def answer(
    folder: options.Folder,
    question: Annotated[str | None, typer.Argument(metavar="QUESTION", help="What to answer.")] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="JSON lines of questions instead of one.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many passages are read (default 5).")] = None,
    method: options.Method = None,
    filter_: Annotated[
        FilterName | None, typer.Option("--filter", help="Which facts near to the question are kept (default none).")
    ] = None,
    entities: Annotated[
        EntitySource | None, typer.Option("--entities", help="Who names the entities of the question (default spacy).")
    ] = None,
    ircot: Annotated[
        bool, typer.Option("--ircot", help="Search again by what the model concludes from the passages.")
    ] = False,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Most searches a question of --ircot (default 2).")
    ] = None,
    url: options.Url = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Language model that answers.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write the answers here as JSON lines; resumes.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Questions that are under way together.")] = MOST_AT_ONCE,
    force: Annotated[bool, typer.Option("--force", help="Start --output again, whatever is there.")] = False,
    encoder: options.ReadersEncoder = None,
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Answer a question, or each question of a file, from the passages that are found for it, and cite them.

    A language model reads the passages (--url and --model, or [llm] of --config). Where they do not say the answer, it
    says so. With answers in the file exact match and F1 are measured. With --output the same command again goes on
    where it was cut, and asks what failed again.

    \b
    hippogpu answer wiki.hippo "Where was Oliver Badman born?" --url http://localhost:8000/v1 --model llama
    hippogpu answer wiki.hippo --queries questions.jsonl --ircot --steps 4 --output answers.jsonl
    """
    if (question is None) == (queries is None):
        raise UsageError("Give either a QUESTION or --queries FILE.")
    if output is not None and queries is None:
        raise UsageError("--output takes the answers to --queries FILE. Name one, or leave it out.")
    if force and output is None:
        raise UsageError("--force is of --output FILE. Name one, or leave it out.")
    if steps is not None and not ircot:
        raise UsageError("--steps is of --ircot. Add it, or leave it out.")
    read = read_queries(queries) if queries is not None else None
    asked = read.queries if read else (Query("", question or ""),)
    given = {"method": method, "filter": filter_, "entities": entities}
    job = Job(
        folder,
        _configs(config, {name: value for name, value in given.items() if value}, backend, k=k, steps=steps),
        asked,
        Asked(url, model),
        ircot=ircot,
        batch=batch,
    )
    refused = [f"{item.where}: {item.reason}" for item in read.refusals] if read else []
    with _opened(job, encoder, quiet=quiet) as open_:
        if output is None:
            tally = _told(open_, json=json, quiet=quiet)
        else:
            tally = _written(open_, queries or Path(), output, force=force, quiet=quiet)
        _report(open_, tally, refused, output, json=json, quiet=quiet)
    if tally.failed or tally.degraded or refused:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be answered, and how."""

    folder: Path
    configs: Configs
    queries: Sequence[Query]
    asked: Asked
    ircot: bool
    batch: int


@dataclass(frozen=True, slots=True)
class Open:
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


def _configs(
    path: Path | None, search: dict[str, Any], backend: str | None, *, k: int | None, steps: int | None
) -> Configs:
    """The settings of the file with those of the command line in their place."""
    configs = read_configs(path)
    given = {name: value for name, value in (("passages", k), ("steps", steps)) if value is not None}
    return replace(
        configs,
        search=with_values(configs.search, search),
        run=with_values(configs.run, {"backend": backend} if backend else {}),
        answer=with_values(configs.answer, given),
    )


@contextmanager
def _opened(job: Job, encoder: str | None, *, quiet: bool) -> Iterator[Open]:
    """The index and the models of a job; the language model first, so that a missing one is told at once."""
    configs, settings = job.configs, model_for(job.configs, "answer", job.asked)
    with ExitStack() as held:
        llm = held.enter_context(opened_model(settings, job.folder, purpose="The verb answer", quiet=quiet))
        judge = held.enter_context(open_fact_filter(configs, job.folder, asked=job.asked, quiet=quiet))
        source = configs.search.entities
        reader = held.enter_context(open_entity_reader(configs, job.folder, source, asked=job.asked, quiet=quiet))
        searcher = Searcher.open(
            job.folder,
            embedder=readers_encoder(encoder),
            run=configs.run,
            fact_filter=judge,
            entity_reader=reader,
        )
        yield Open(job, searcher, llm, settings, judge, reader, time.perf_counter())


def _told(open_: Open, *, json: bool, quiet: bool) -> Tally:
    """Prints each answer as its batch is finished."""
    tally, queries = Tally(), open_.job.queries
    with progress(quiet=quiet or len(queries) == 1) as show:
        left = iter(queries)
        for batch in open_.answers(queries, show, 0):
            for query, answered in zip(islice(left, len(batch)), batch, strict=True):
                value = answer_value(answered, query)
                tally.take(answered, value)
                if json:
                    print_json(value)
                else:
                    show_answer(answered, with_ranking=len(queries) == 1)
    return tally


def _written(open_: Open, path: Path, output: Path, *, force: bool, quiet: bool) -> Tally:
    """Adds the answers to the file, those that failed left out: the next call asks them again."""
    tally = Tally()
    with opened_answers(output, _identity(open_, path), force=force) as file:
        asked = {query.id for query in open_.job.queries}
        for line in file.done.values():
            if line.query_id in asked:
                tally.take_earlier(line)
        left = [query for query in open_.job.queries if query.id not in file.done]
        rest = iter(left)
        with progress(quiet=quiet) as show:
            for batch in open_.answers(left, show, tally.earlier):
                _add(file, list(islice(rest, len(batch))), batch, tally)
    return tally


def _add(file: AnswerFile, queries: Sequence[Query], batch: Sequence[Answered], tally: Tally) -> None:
    """One batch, durable before it is counted."""
    values = [answer_value(answered, query) for answered, query in zip(batch, queries, strict=True)]
    file.add([value for value in values if value["failure"] is None])
    for answered, value in zip(batch, values, strict=True):
        tally.take(answered, value)


def _identity(open_: Open, path: Path) -> Identity:
    """What decides the answers: what decides the rankings, the model and its settings, the words of the prompts."""
    job, settings = open_.job, open_.settings
    answer = {f"answer.{name}": value for name, value in as_mapping(job.configs.answer).items()}
    judges = {"filter": open_.fact_filter, "entities": open_.entity_reader}
    named = {f"{kind} by": judge.name for kind, judge in judges.items() if judge is not None}
    searched = run_identity(
        open_.searcher.manifest,
        query_file(path),
        job.configs.search,
        k=job.configs.answer.passages,
        backend=open_.searcher.backend,
    )
    model = {"model": settings.model, "endpoint": open_.llm.endpoint, "temperature": settings.temperature}
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


def _report(open_: Open, tally: Tally, refused: list[str], output: Path | None, *, json: bool, quiet: bool) -> None:
    """The counts at the end; of a single question only what went wrong."""
    seconds = time.perf_counter() - open_.began
    if json:
        print_json({"summary": _summary(open_, tally, refused, output, seconds)})
    elif len(open_.job.queries) > 1 or output is not None:
        people().print(table(str(output or "answers"), ["", ""], tally_rows(tally)))
    failures = [f"{one['id'] or one['query']}: {one['reason']}" for one in tally.failures]
    note_list("Questions that failed, or whose passages are not all that was meant", failures)
    note_list("Refused", refused)
    if output is not None and not tally.now:
        note(f"'{output}' holds an answer to every question. Nothing was done.", quiet=quiet or json)


def _summary(open_: Open, tally: Tally, refused: list[str], output: Path | None, seconds: float) -> dict[str, Any]:
    prices, usage = prices_of(open_.settings), tally.cost.usage
    uncounted = open_.llm.spent.uncounted
    value = {"output": str(output) if output else None, "method": open_.job.configs.search.method} | tally.value()
    value |= {"model": open_.settings.model, "endpoint": open_.llm.endpoint, "uncounted": uncounted}
    value["cost"] = round(cost(usage, prices), 6) if prices and not uncounted else None
    for name, judge in (("filter", open_.fact_filter), ("entities", open_.entity_reader)):
        value[name] = report_value(judge.report) if isinstance(judge, LlmFilter | LlmEntities) else None
    rate = tally.now / seconds if seconds else 0.0
    return value | {"refused": refused, "seconds": round(seconds, 3), "questions_a_second": round(rate, 3)}
