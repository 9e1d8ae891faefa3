"""The verb eval: methods against known supporting passages, beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.encoders import readers_encoder
from hippogpu.cli.output import note_list, people, print_json, table
from hippogpu.config import RunConfig, SearchConfig, read_configs, with_values
from hippogpu.searcher import Searcher


def evaluate(
    folder: options.Folder,
    queries: Annotated[Path, typer.Option("--queries", metavar="FILE", help="Questions, or a BEIR folder.")],
    qrels: Annotated[
        Path | None, typer.Option("--qrels", metavar="FILE", help="Gold passages (default: the questions' own).")
    ] = None,
    method: options.Methods = None,
    encoder: options.ReadersEncoder = None,
    k: options.Hits = 20,
    config: options.ConfigFile = None,
    backend: options.Backend = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure recall against known supporting passages.

    \b
    hippogpu eval wiki.hippo --queries queries.jsonl --method hippo2 --method dense
    """
    from hippogpu.cli.measuring import measure

    refused: list[str] = []
    values: list[dict[str, Any]] = []
    embedder = readers_encoder(encoder)
    for name in method or ["hippo2", "dense"]:
        settings, run = _settings(config, name, backend)
        value, refused = measure(
            Searcher.open(folder, embedder=embedder, run=run), queries, qrels, settings, k=k, quiet=quiet
        )
        values.append(value)
        if json:
            print_json(value)
    if not json:
        shown = [key for key in values[0] if key not in ("method", "queries", "level")]
        rows = [[_short(key), *(f"{100 * value[key]:.2f}" for value in values)] for key in shown]
        methods = [str(value["method"]) for value in values]
        people().print(table(f"{values[0]['queries']} questions, percent", ["measure", *methods], rows))
    note_list("Refused", refused)
    if refused:
        raise typer.Exit(1)


def _short(measure: str) -> str:
    return measure.replace("all_recall@", "all@").replace("recall@", "R@")


def _settings(config: Path | None, method: str | None, backend: str | None) -> tuple[SearchConfig, RunConfig]:
    configs = read_configs(config)
    settings = with_values(configs.search, {"method": method} if method else {})
    return settings, with_values(configs.run, {"backend": backend} if backend else {})
