"""The verb eval: methods, and runs of others, against known supporting passages, beside each other."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hippogpu.cli import options
from hippogpu.cli.encoders import readers_encoder
from hippogpu.cli.evaluation_report import check_report, print_measured, print_measured_json, write_report
from hippogpu.cli.measuring import (
    Asked,
    Library,
    Measured,
    Rules,
    library_of,
    measure,
    measure_run,
    read_asked,
    tell_gold,
)
from hippogpu.cli.opening import Source, entity_source, open_searcher
from hippogpu.cli.output import note, note_list
from hippogpu.cli.variants import Column, columns_of
from hippogpu.config import Configs, read_configs, with_values
from hippogpu.embed import Embedder
from hippogpu.embed.stored import stored_embedder
from hippogpu.errors import UsageError
from hippogpu.evaluate import EncodedOnce, Level, write_qrels, write_trec
from hippogpu.evaluate.places import check_folder
from hippogpu.searcher import Searcher
from hippogpu.store import current_manifest


def evaluate(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The folder of the index; not needed for --run alone.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Questions, or a BEIR folder (needed).")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", metavar="FILE", help="Gold passages (default: the questions' own).")
    ] = None,
    method: options.Methods = None,
    variant: Annotated[
        list[str] | None,
        typer.Option("--variant", metavar="TEXT", help="A column 'NAME: KEY=VALUE, KEY=VALUE'; repeatable."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of [search] for every column; repeatable."),
    ] = None,
    run: Annotated[
        list[Path] | None, typer.Option("--run", metavar="FILE", help="A TREC run to measure beside; repeatable.")
    ] = None,
    level: Annotated[Level, typer.Option("--level", help="Count passages, or titles once each.")] = "passage",
    ci: Annotated[bool, typer.Option("--ci/--no-ci", help="95 % intervals by bootstrap (default on).")] = True,
    diff: Annotated[
        bool, typer.Option("--diff", help="Of two columns: which questions the second gains and loses.")
    ] = False,
    measure_name: Annotated[
        str, typer.Option("--measure", metavar="NAME", help="What --diff compares questions by.")
    ] = "recall@5",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write a report here: .md or .html.")
    ] = None,
    save_run: Annotated[
        Path | None,
        typer.Option("--save-run", metavar="FOLDER", help="Write a TREC run a column, and the qrels, here."),
    ] = None,
    encoder: options.ReadersEncoder = None,
    entities: options.Entities = None,
    url: options.Url = None,
    model: options.Model = None,
    k: options.Hits = 20,
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure methods against known supporting passages, with intervals.

    Questions are encoded once. With several columns each is also compared with the first, question by question.

    \b
    hippogpu eval wiki.hippo --queries queries.jsonl --method hippo2 --method dense
    hippogpu eval wiki.hippo --queries queries.jsonl --method hippo2 --variant "farther: damping=0.7" --diff
    hippogpu eval --queries queries.jsonl --run theirs.trec
    """
    if queries is None:
        raise UsageError("Name the questions: --queries FILE.")
    if folder is None and (not run or method or variant or level == "title"):
        raise UsageError("Name the index: hippogpu eval DIR --queries FILE. Only --run alone needs none, by passage.")
    if output is not None:
        check_report(output, plots=ci or diff)
    if save_run is not None:
        check_folder(save_run)
    configs = read_configs(config)
    default = [] if run else list(dict.fromkeys([configs.search.method, "dense"]))
    source = entity_source(entities, configs.search.entities)
    start = with_values(configs.search, {"entities": source.name})
    columns = columns_of(start, methods=method or [], variants=variant or [], values=set_ or [], default=default)
    rules, asked = Rules(k, level, ci or diff), read_asked(queries, qrels)
    configs = replace(configs, run=with_values(configs.run, {"backend": backend} if backend else {}))
    library, measured = None, []
    if folder is not None:
        embedder = EncodedOnce(readers_encoder(encoder) or _stored(folder))
        with ExitStack() as held:
            plain = Searcher.open(folder, embedder=embedder, run=configs.run)
            library = library_of(plain)
            asked = asked.known_by(library)
            for column in columns:
                searcher = _searcher(held, folder, column, configs, embedder, source, (url, model), quiet) or plain
                measured.append(measure(searcher, library, asked, column, rules))
    refused = [*source.refused, *asked.refused, *_measure_runs(run or [], library, asked, rules, measured)]
    tell_gold(measured[0], library, quiet=quiet)
    for column_measured in measured:
        _tell_fallbacks(column_measured, quiet=quiet)
    shown = print_measured_json if json else print_measured
    shown(measured, asked.queries, measure=measure_name if diff else None)
    if save_run is not None:
        _save(save_run, measured, asked)
    if output is not None:
        write_report(output, measured, asked.queries, measure=measure_name if diff else None)
    note_list("Refused", refused)
    if refused:
        raise typer.Exit(1)


def _stored(folder: Path) -> Embedder:
    built = current_manifest(folder).encoder
    return stored_embedder(built.spec, built.name, folder)


def _searcher(
    held: ExitStack,
    folder: Path,
    column: Column,
    configs: Configs,
    embedder: Embedder,
    source: Source,
    asked: tuple[str | None, str | None],
    quiet: bool,
) -> Searcher | None:
    """A searcher with the models that the column names, kept open until the end; None where it names none."""
    settings = column.settings
    if settings.filter not in ("llm", "cross-encoder") and settings.entities == "spacy":
        return None
    own = replace(configs, search=settings)
    opened = open_searcher(
        folder, own, source._replace(name=settings.entities), embedder=embedder, asked=asked, quiet=quiet
    )
    return held.enter_context(opened).searcher


def _measure_runs(
    files: list[Path], library: Library | None, asked: Asked, rules: Rules, measured: list[Measured]
) -> list[str]:
    """Adds a column for each run; what was refused of them."""
    refused: list[str] = []
    for file in files:
        column, lines = measure_run(file, library, asked, rules)
        measured.append(column)
        refused += lines
    return refused


def _tell_fallbacks(measured: Measured, *, quiet: bool) -> None:
    for reason, count in measured.fallbacks.items():
        note(f"{measured.name}: {count} questions fell back: {reason}.", quiet=quiet)
    for key, what in (("unanswered", "questions are not in the run"), ("unknown_passages", "ids are not in the index")):
        if measured.source.get(key):
            note(f"{measured.name}: {measured.source[key]} {what}.", quiet=quiet)


def _save(folder: Path, measured: list[Measured], asked: Asked) -> None:
    """One run a column, called by its name, and qrels.txt; ids as ranked, passages at either level."""
    folder.mkdir(parents=True, exist_ok=True)
    write_qrels(folder / "qrels.txt", asked.gold)
    taken: set[str] = set()
    for number, column in enumerate(measured, start=1):
        name = "".join(c if c.isalnum() or c in "-._@=+" else "-" for c in column.name)
        name = f"{name}-{number}" if name in taken else name
        taken.add(name)
        write_trec(folder / f"{name}.trec", column.ids, tag=name)
