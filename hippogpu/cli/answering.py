"""The verbs that answer: search, demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.encoders import readers_encoder
from hippogpu.cli.opening import Opened, entity_source, open_searcher
from hippogpu.cli.output import note, note_list, people, print_json, printable, progress, table
from hippogpu.cli.runs import Job, write_file
from hippogpu.cli.variants import settings_of
from hippogpu.cli.why import Why, show_explanations, with_explanations
from hippogpu.config import Configs, read_configs, with_values
from hippogpu.corpus import read_queries
from hippogpu.errors import UsageError
from hippogpu.runs import ranking_value
from hippogpu.types import Ranking


def search(
    folder: options.Folder,
    question: Annotated[str | None, typer.Argument(metavar="QUESTION", help="What to look for.")] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="JSON lines of questions instead of one.")
    ] = None,
    k: options.Hits = 5,
    method: options.Method = None,
    encoder: options.ReadersEncoder = None,
    solver: options.Solver = None,
    filter_: options.Filter = None,
    entities: options.Entities = None,
    link: options.Link = None,
    set_: options.Settings = None,
    url: options.Url = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Language model of --filter llm and --entities llm.")
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Show the facts kept, the seeds, and the paths to the first 5 hits.")
    ] = False,
    why_of: Annotated[
        list[str] | None, typer.Option("--why-of", metavar="ID", help="As --why, of this passage, be it a hit or not.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write a run here: .jsonl, .trec or .parquet; resumes."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Questions of --output made durable together (at most 512).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start --output again, whatever is there.")] = False,
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Rank passages for a question, or for each question of a file.

    With --output the rankings of a file of any length go to another file. The same command again goes on where it was
    cut, and does nothing when the file is whole.

    \b
    hippogpu search wiki.hippo "Which county borders the one where Johnnycake lies?" --why
    hippogpu search wiki.hippo --queries questions.jsonl -k 20 --json > run.jsonl
    hippogpu search wiki.hippo --queries questions.jsonl -k 100 --output run.trec
    """
    if (question is None) == (queries is None):
        raise UsageError("Give either a QUESTION or --queries FILE.")
    explained = Why(why or bool(why_of), tuple(why_of or ()))
    if output is not None and (queries is None or explained.wanted):
        raise UsageError("--output writes a run of --queries FILE, without --why.")
    if output is None and (batch is not None or force):
        raise UsageError("--batch and --force are of --output FILE. Name one, or leave them out.")
    given = {"method": method, "solver": solver, "filter": filter_, "link": link}
    configs = _configs(config, {**settings_of(set_ or [], "--set"), **{k: v for k, v in given.items() if v}}, backend)
    source, embedder = entity_source(entities, configs.search.entities), readers_encoder(encoder)
    with open_searcher(folder, configs, source, embedder=embedder, asked=(url, model), quiet=quiet) as opened:
        note_list("Refused entities", source.refused)
        if output is not None and queries is not None:
            job = Job(queries, output, k, opened.settings, batch=batch, force=force, models=opened.models)
            write_file(opened.searcher, job, json=json, quiet=quiet)
            refused: list[str] = []
        else:
            asked, refused = _asked(question, queries)
            _answer(opened, asked, k, explained, json=json, quiet=quiet)
            note_list("Refused", refused)
    if refused or source.refused:
        raise typer.Exit(1)


def _answer(opened: Opened, asked: list[tuple[str | None, str]], k: int, why: Why, *, json: bool, quiet: bool) -> None:
    """Prints the ranking of each question, (id, text), as the batches finish."""
    searcher, settings = opened.searcher, opened.settings
    unread = searcher.manifest.counts.get("without_record", 0)
    if unread and searcher.manifest.counts["facts"]:
        note(
            f"{unread:,} of {searcher.manifest.counts['passages']:,} passages have no facts, as nothing could read "
            "them: they are found by their words and vectors alone. What was wrong, 'index' says when it is run again.",
            quiet=quiet,
        )
    batches = searcher.rank_batches([text for _, text in asked], k=k, config=settings)
    answers = with_explanations(searcher, batches, settings, why)
    for (id_, _), (ranking, explanations) in zip(asked, answers, strict=True):
        if json:
            print_json(ranking_value(ranking, id_, explanations))
        else:
            show_ranking(ranking, why=why.wanted)
            show_explanations(ranking, explanations)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where the demo's index goes.")] = Path("demo.hippo"),
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Index a shipped corpus of real passages and answer three questions that need two passages each.

    \b
    hippogpu demo
    """
    from hippogpu.demo import run_demo

    with progress(quiet=quiet) as show:
        report = run_demo(folder, on_progress=show)
    for answer in report.answers:
        if json:
            ranks = {hit.passage.id: rank for hit, rank in zip(answer.ranking.hits, answer.dense_ranks, strict=True)}
            print_json({**ranking_value(answer.ranking, None), "gold": list(answer.gold), "dense_rank": ranks})
            continue
        show_ranking(answer.ranking, why=True, gold=answer.gold, dense_ranks=answer.dense_ranks)
    note(f"The index is in '{folder}'. Ask your own: hippogpu search {folder} \"...\" --why", quiet=quiet)


def show_ranking(ranking: Ranking, *, why: bool, gold: tuple[str, ...] = (), dense_ranks: tuple[int, ...] = ()) -> None:
    """A ranking as tables."""
    out = people()
    columns = ["rank", "score", "id", "title"] + (["dense rank"] if dense_ranks else []) + (["gold"] if gold else [])
    rows = []
    for place, hit in enumerate(ranking.hits):
        row = [str(place + 1), f"{hit.score:.6f}", hit.passage.id, hit.passage.title]
        row += [str(dense_ranks[place])] if dense_ranks else []
        row += ["yes" if hit.passage.id in gold else ""] if gold else []
        rows.append(row)
    out.print(table(ranking.query, columns, rows))
    if ranking.fallback:
        out.print(f"Note: {printable(ranking.fallback)}.", markup=False)
    if ranking.filter_failure:
        out.print(f"Note: the filter could not judge the facts: {printable(ranking.filter_failure)}.", markup=False)
    if why and ranking.entities:
        linked = [[entity.name, entity.phrase, f"{entity.similarity:.3f}"] for entity in ranking.entities]
        out.print(table("entities of the question", ["entity", "phrase", "similarity"], linked))
    if why and ranking.facts:
        facts = [[f"{fact.score:.3f}", fact.subject, fact.predicate, fact.object] for fact in ranking.facts]
        out.print(table("facts kept", ["score", "subject", "predicate", "object"], facts))
    if why and ranking.seeds:
        out.print(table("phrase seeds", ["weight", "phrase"], [[f"{s.weight:.3f}", s.phrase] for s in ranking.seeds]))
    out.print(f"{how_solved(ranking)}: " + ", ".join(f"{stage} {spent:.1f} ms" for stage, spent in ranking.ms.items()))
    out.print()


def how_solved(ranking: Ranking) -> str:
    """The method, and the solver with its certificate where it has one."""
    certificate = {True: ", certified", False: ", not certified", None: ""}[ranking.certified]
    return f"{ranking.method} ({ranking.solver}{certificate})" if ranking.solver else ranking.method


def _configs(config: Path | None, values: dict[str, Any], backend: str | None) -> Configs:
    """The configurations of a file, with what the command line says of searching and of the backend."""
    configs = read_configs(config)
    run = with_values(configs.run, {"backend": backend} if backend else {})
    return replace(configs, search=with_values(configs.search, values), run=run)


def _asked(question: str | None, queries: Path | None) -> tuple[list[tuple[str | None, str]], list[str]]:
    if queries is None:
        return [(None, question or "")], []
    read = read_queries(queries)
    refused = [f"{item.where}: {item.reason}" for item in read.refusals]
    return [(query.id, query.text) for query in read.queries], refused
