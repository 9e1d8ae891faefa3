"""The verb: checks first, then times of what passed, a table for people and JSON for the record."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.checks import Check, all_passed
from bench.folders import work_folder
from bench.oracle.data import Oracle, OracleEmbedder, Source, read_oracle, read_source
from bench.oracle.graph import compare_graph, compare_ppr
from bench.oracle.questions import compare_max_rule, compare_questions
from bench.oracle.rawtext import DEPTHS, ORACLE_RECALL, build_index, compare_rankings, reindex, time_queries
from bench.oracle.tables import compare_tables
from bench.report import machine, print_checks, print_rows, shown, write_json
from hippogpu.config import PROFILES, IndexConfig, ProfileName
from hippogpu.embed import default_embedder
from hippogpu.index import Index
from hippogpu.openie import ReplayExtractor
from hippogpu.searcher import Searcher
from hippogpu.store import current_manifest, load_snapshot

# Measured by those who made the oracle, on two cores with other processes beside them and on the same two alone.
# They are no measurement of this run: ratios to them are orders of magnitude.
REFERENCE = {
    "busy": {"encode_s": 810, "synonyms_s": 47, "graph_s": 0.6, "facts_ms": 20, "graph_search_ms": 450},
    "quiet": {"synonyms_s": 24, "facts_ms": 4, "graph_search_ms": 36},
}
RUNS: tuple[ProfileName, ...] = ("oracle", "default")


def oracle(
    path: Annotated[Path, typer.Argument(help="The oracle's folder.")],
    data: Annotated[Path | None, typer.Option(help="The corpus; PATH/../data/musique_train when not given.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the result here.")] = None,
    work: Annotated[Path | None, typer.Option(help="Keep the indexes here, so that a rerun encodes nothing.")] = None,
    skip_encode: Annotated[
        bool, typer.Option(help="Leave out what needs the model: only the oracle's vectors.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of each timed batch.")] = 9,
) -> None:
    """Compare with what the authors' library returned. Exit 1 when a check fails; then nothing is timed."""
    console = Console() if sys.stdout.isatty() else Console(width=150)
    stored, source = read_oracle(path), read_source(data or path / ".." / "data" / "musique_train")
    result: dict[str, Any] = {"bench": "oracle", "machine": machine()}
    with work_folder(work) as folder:
        checks = _compare(stored, source, folder, result)
        if not skip_encode:
            checks += _raw_text(stored, source, folder, result)
        result["passed"] = all_passed(checks)
        if not skip_encode and result["passed"]:
            result["ms_a_question"] = {
                profile: time_queries(source, Searcher.open(folder / f"{profile}.hippo"), repeats=repeats)
                for profile in RUNS
            }
            result["reference"] = REFERENCE
    result["checks"] = [check._asdict() for check in checks]
    _print(result, checks, console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def _compare(stored: Oracle, source: Source, folder: Path, result: dict[str, Any]) -> list[Check]:
    """Everything that the oracle's own vectors decide."""
    checks, result["tables"] = compare_tables(stored, source)
    embedder = OracleEmbedder(stored, source)
    root = _stored_index(folder / "oracle-vectors.hippo", source, embedder, PROFILES["oracle"])
    greatest = replace(PROFILES["oracle"], edge_rule="max", synonym_cap=PROFILES["default"].synonym_cap)
    root_max = _stored_index(folder / "oracle-vectors-max.hippo", source, embedder, greatest)
    graph = load_snapshot(root, current_manifest(root)).graph.check()
    searcher = Searcher.open(root, embedder=embedder)
    for name, (found, figures) in {
        "graph": compare_graph(stored, graph),
        "ppr": compare_ppr(stored, graph),
        "questions": compare_questions(stored, source, searcher),
        "max_rule": compare_max_rule(source, Searcher.open(root_max, embedder=embedder)),
    }.items():
        checks, result[name] = checks + found, figures
    return checks


def _stored_index(root: Path, source: Source, embedder: OracleEmbedder, config: IndexConfig) -> Path:
    """An index of the oracle's vectors."""
    extractor = ReplayExtractor(source.openie)
    with Index.open(root, extractor=extractor, embedder=embedder, config=config) as index:
        index.add(source.passages)
        index.commit()
    return root


def _raw_text(stored: Oracle, source: Source, folder: Path, result: dict[str, Any]) -> list[Check]:
    """Everything that our own encoder decides."""
    checks: list[Check] = []
    embedder = default_embedder()
    for name in ("index", "reindex", "rankings"):
        result[name] = {}
    for profile in RUNS:
        root = folder / f"{profile}.hippo"
        built = build_index(root, source, embedder, profile)
        result["index"][profile] = built._asdict() if built else None
        found, result["reindex"][profile] = reindex(root, source, embedder, profile)
        agreed, result["rankings"][profile] = compare_rankings(
            stored, source, Searcher.open(root, embedder=embedder), profile
        )
        checks += found + agreed
    return checks


def _print(result: Mapping[str, Any], checks: list[Check], console: Console) -> None:
    print_checks(checks, console)
    if "rankings" not in result:
        return
    columns = ["", *(f"R@{k}" for k in DEPTHS), "top-20 sets equal"]
    rows: list[list[Any]] = [[f"oracle's {name}", *found, None] for name, found in ORACLE_RECALL.items()]
    for profile, methods in result["rankings"].items():
        for method, found in methods.items():
            rows.append([f"{profile} {method}", *found["recall"].values(), found["top20_sets_equal"]])
    print_rows("recall, percent", columns, rows, console)
    _print_times(result, console)


def _print_times(result: Mapping[str, Any], console: Console) -> None:
    rows = [
        [profile, *(shown(float(value)) for value in built["seconds"].values()), built["texts"]]
        for profile, built in result["index"].items()
        if built
    ]
    if rows:
        names = next(built["seconds"] for built in result["index"].values() if built)
        print_rows("index, seconds", ["profile", *names, "texts encoded"], rows, console)
    for profile, again in result["reindex"].items():
        console.print(f"re-index, {profile}: {shown(again['seconds'])} s, {again['texts_encoded']} texts encoded")
    if "ms_a_question" not in result:
        console.print("[red]A check failed: nothing was timed.[/red]")
        return
    for profile, methods in result["ms_a_question"].items():
        for method, kinds in methods.items():
            for kind, stages in kinds.items():
                title = f"ms a question: {profile}, {method}, {kind}; median (least–greatest)"
                print_rows(title, list(stages), [list(stages.values())], console)
    console.print(f"reference, as stated by its makers: {REFERENCE}")
