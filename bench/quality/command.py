"""The verbs: measure the rows of recipes, and write the page of the stored results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.checks import Check, all_passed
from bench.folders import work_folder
from bench.quality.cases import cases_of
from bench.quality.errors import CLASSES, failures_of
from bench.quality.indexes import embedder_for, place_of, ready_index
from bench.quality.measuring import (
    Bench,
    batch_check,
    expected_checks,
    gold_checks,
    open_bench,
    queries_per_s,
    rank_rows,
    result_of,
    with_compared,
)
from bench.quality.page import write_page
from bench.quality.recipe import PUBLISHED, RECIPES, Recipe, Row, read_recipe, read_yaml
from bench.quality.results import RESULTS, merged, read_results, write_results
from bench.report import machine, print_checks, print_rows
from hippogpu.config import read_configs
from hippogpu.errors import ConfigError, HippoError, MissingExtraError, UsageError
from hippogpu.evaluate.places import check_file, check_folder

_SHOWN = ("recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5", "mrr", "ndcg@10")


def quality(
    recipe: Annotated[list[Path], typer.Option(help="A recipe: a YAML file, or a name of bench/recipes; repeatable.")],
    data: Annotated[Path, typer.Option(help="The folder that holds the data folders of the recipes.")] = Path("data"),
    only: Annotated[
        list[str] | None, typer.Option(help="Rows by name, or by a pattern with * and ?; repeatable.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Keep the indexes here, so that a rerun encodes no passage.")
    ] = None,
    index: Annotated[
        list[str] | None, typer.Option(metavar="NAME=DIR", help="Use this index, only reading it; repeatable.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Put the results into this file, beside other sets.")] = None,
    errors: Annotated[
        bool,
        typer.Option("--errors", help="Sort what the rows fail into the papers' classes (without --only: hippo2)."),
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="TOML with [llm]: also run the rows that ask a language model.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=0, help="Timed batches of each row; 0 times nothing.")] = 5,
) -> None:
    """Measure methods and ablations on sets of questions. Exit 1 when a check fails; that set is not timed then."""
    console = Console() if sys.stdout.isatty() else Console(width=170)
    passed = True
    try:
        if json is not None:
            check_folder(json.parent)
            if json.parent.is_dir():
                check_file(json)
        given, published = _given(index or []), read_yaml(RECIPES / PUBLISHED)
        with work_folder(work) as folder:
            for name in recipe:
                read = read_recipe(name)
                found, checks = measure_recipe(
                    read, data, folder, given, only=only or [], errors=errors, config=config, repeats=repeats
                )
                passed &= all_passed(checks)
                print_checks(checks, console)
                print_set(read.name, found, console)
                if json is not None:
                    write_results(json, merged(read_results(json), read.name, found, published))
    except (ConfigError, UsageError, MissingExtraError) as error:
        raise typer.BadParameter(str(error)) from error
    except HippoError as error:
        console.print(f"error: {error}")
        raise typer.Exit(1) from error
    if not passed:
        raise typer.Exit(1)


def quality_report(
    json: Annotated[Path, typer.Option(help="The stored results.")] = RESULTS,
    html: Annotated[Path | None, typer.Option(help="Write the page here as HTML too, with its plots inside.")] = None,
) -> None:
    """Write docs/quality.md and its plot over, from the stored results alone."""
    if not read_results(json)["sets"]:
        raise typer.BadParameter(
            f"'{json}' holds no measured set. Name the file of: python -m bench quality --json FILE"
        )
    write_page(read_results(json), html=html)


def measure_recipe(
    recipe: Recipe,
    data: Path,
    work: Path,
    given: dict[str, Path],
    *,
    only: Sequence[str] = (),
    errors: bool = False,
    config: Path | None = None,
    repeats: int = 0,
) -> tuple[dict[str, Any], list[Check]]:
    """What is stored of a set, and the checks: nothing is timed unless all of them passed."""
    chosen = recipe.chosen(only or (["hippo2"] if errors else []))
    place = place_of(recipe, data, work, given)
    embedder = embedder_for(recipe, place, data)
    checks, index = ready_index(recipe, place, embedder)
    configs = read_configs(config) if config else None
    bench = open_bench(recipe, place.root, place.data, embedder, configs)
    found = {one.row.name: one for one in rank_rows(bench, with_compared(recipe, chosen))}
    ours = [found[row.name] for row in chosen if row.name in found]
    checks += gold_checks(recipe, next(iter(found.values()))) + expected_checks(recipe, found)
    timed = [one for one in ours if not one.row.needs_model]
    checks += [batch_check(bench, one) for one in timed if repeats]
    value = {**_described(recipe, bench, index), "checks": [check._asdict() for check in checks]}
    value["rows"] = {one.row.name: {**result_of(one, found), "command": _command(recipe, one.row)} for one in ours}
    value["not_run"] = [row.name for row in chosen if row.name not in found]
    if errors:
        value["errors"] = {one.row.name: failures_of(bench, one) for one in ours}
    if recipe.cases:
        value["cases"] = cases_of(bench, {one.row.name: one for one in ours})
    if all_passed(checks) and repeats:
        for one in timed:
            value["rows"][one.row.name]["queries_per_s"] = queries_per_s(bench, one.row, repeats=repeats)
    return value, checks


def print_set(name: str, found: Mapping[str, Any], console: Console) -> None:
    """A set's rows in percent, and its errors by class where they were looked for."""
    rows = []
    for row, value in found["rows"].items():
        speed = value.get("queries_per_s")
        rows.append(
            [row, *(100 * value["values"][m] for m in _SHOWN if m in value["values"]), speed and speed["median"]]
        )
    columns = ["", *(measure.replace("recall", "R") for measure in _SHOWN), "queries/s"]
    title = f"{name}: {found['questions']} questions ({found['use']}), {found['level']} level; percent"
    print_rows(title, columns, rows, console)
    if found["not_run"]:
        console.print(f"Not run, as they ask a model and there is no --config: {', '.join(found['not_run'])}")
    for row, failures in found.get("errors", {}).items():
        counted = [[kind, failures["classes"][kind], CLASSES[kind]] for kind in CLASSES]
        print_rows(
            f"{row}: {failures['failed']} of {failures['questions']} questions fail at {failures['depth']}",
            ["class", "questions", "what it is"],
            counted,
            console,
        )


def _described(recipe: Recipe, bench: Bench, index: Mapping[str, Any]) -> dict[str, Any]:
    gold = bench.questions.gold
    return {
        "title": recipe.title,
        "use": recipe.use,
        "level": recipe.level,
        "family": recipe.family,
        "note": recipe.note,
        "cases_set": recipe.cases,
        "questions": len(bench.questions.queries),
        "gold_pairs": sum(len(row) for row in gold.values()),
        "passages": bench.questions.passages,
        "k": recipe.k,
        "records": {"by": recipe.records_by, "llm": recipe.llm_records},
        "index": dict(index),
        "order": [row.name for row in recipe.rows],
        "machine": machine(),
    }


def _command(recipe: Recipe, row: Row) -> str:
    """The one line that measures the row; DATA and WORK stand for the reader's folders."""
    line = f"python -m bench quality --recipe {recipe.name} --only {shlex.quote(row.name)} --data DATA --work WORK"
    return line + (" --config FILE" if row.needs_model else "")


def _given(pairs: Sequence[str]) -> dict[str, Path]:
    found = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        if not (name and equals and folder):
            raise UsageError(f"--index takes NAME=DIR. Got '{pair}'.")
        found[name] = Path(folder)
    return found
