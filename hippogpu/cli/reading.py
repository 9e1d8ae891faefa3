"""The verb answer: questions to answers with cited passages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.answer_run import MOST_AT_ONCE, Job, opened_job, report, told, written
from hippogpu.cli.models import Asked
from hippogpu.cli.opening import entity_source
from hippogpu.cli.variants import settings_of
from hippogpu.config import Configs, read_configs, with_values
from hippogpu.corpus import Query, read_queries
from hippogpu.errors import UsageError


def answer(
    folder: options.Folder,
    question: Annotated[str | None, typer.Argument(metavar="QUESTION", help="What to answer.")] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="JSON lines of questions instead of one.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="How many passages are read (default 5).")] = None,
    method: options.Method = None,
    filter_: options.Filter = None,
    entities: options.Entities = None,
    set_: options.Settings = None,
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
    given = {"method": method, "filter": filter_}
    values = {**settings_of(set_ or [], "--set"), **{name: value for name, value in given.items() if value}}
    configs = _configs(config, values, backend, k=k, steps=steps)
    source = entity_source(entities, configs.search.entities)
    job = Job(folder, configs, source, asked, Asked(url, model), ircot=ircot, batch=batch)
    refused = [f"{item.where}: {item.reason}" for item in read.refusals] if read else []
    with opened_job(job, encoder, quiet=quiet) as held:
        if output is None:
            tally = told(held, json=json, quiet=quiet)
        else:
            tally = written(held, queries or Path(), output, force=force, quiet=quiet)
        report(held, tally, [*refused, *source.refused], output, json=json, quiet=quiet)
    if tally.failed or tally.degraded or refused or source.refused:
        raise typer.Exit(1)


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
