"""What edges of names change: their counts, a sample to judge, and the ranking of an index with and without them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hippogpu.backends import load_backend
from hippogpu.config import RunConfig, SearchConfig
from hippogpu.corpus import Query, read_queries
from hippogpu.embed.stored import stored_embedder
from hippogpu.evaluate import evaluate
from hippogpu.evaluate.asking import EncodedOnce, ask
from hippogpu.evaluate.intervals import paired_differences
from hippogpu.graph import assemble
from hippogpu.methods.asking import Tools
from hippogpu.resolve import KINDS, NameEdges, find_names, with_names
from hippogpu.searcher import Searcher
from hippogpu.store import Snapshot
from hippogpu.store.opening import Opened, open_current
from hippogpu.tables import fact_pairs
from hippogpu.types import Csr

MEASURES = ("recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5")
BUDGET_BYTES, SEED = 512 * 2**20, 11


def resolve(
    index: Path,
    queries: Annotated[Path | None, typer.Option(help="Rank these questions with and without names.")] = None,
    method: Annotated[list[str], typer.Option(help="By which methods.")] = ["hippo2"],  # noqa: B006
    scale: Annotated[list[float], typer.Option(help="Multiply the weights of names.")] = [1.0],  # noqa: B006
    sample: Annotated[int, typer.Option(help="Show so many edges of each kind.")] = 0,
) -> None:
    """One JSON object a line: counts and seconds, then one for each kind sampled, each method and scale."""
    opened = open_current(index)
    snapshot = opened.snapshot
    if snapshot.manifest.config.resolve != "none":
        raise typer.BadParameter("the index is built with names already; give one that is not")
    names, seconds = timed_names(snapshot)
    print(json.dumps(counted(snapshot, names, seconds)))
    for kind, edges in sampled(snapshot, names, sample).items():
        print(json.dumps({"kind": kind, "edges": edges}, ensure_ascii=False))
    if queries is not None:
        for line in compared(index, opened, names, read_queries(queries).queries, method, scale):
            print(json.dumps(line), flush=True)


def timed_names(snapshot: Snapshot) -> tuple[NameEdges, float]:
    """The edges, and the seconds of one core that finding them took."""
    tables = replace(snapshot.tables, phrases=tuple(snapshot.tables.phrases))
    started = time.process_time()
    names = find_names(tables, list(snapshot.passages.wholes), snapshot.manifest.config)
    return names, time.process_time() - started


def counted(snapshot: Snapshot, names: NameEdges, seconds: float) -> dict[str, Any]:
    """Edges by kind, how many of them no fact and no synonym joins, and what was left alone."""
    low, high, _ = fact_pairs(snapshot.tables)
    joined = set(zip(low.tolist(), high.tolist(), strict=True))
    ends = zip(snapshot.synonyms.source.tolist(), snapshot.synonyms.target.tolist(), strict=True)
    joined.update((min(pair), max(pair)) for pair in ends)
    pairs = list(zip(names.edges.source.tolist(), names.edges.target.tolist(), strict=True))
    fresh = np.array([pair not in joined for pair in pairs], bool)
    new = {kind: int(fresh[names.kinds >> place & 1 == 1].sum()) for place, kind in enumerate(KINDS)}
    return {
        "phrases": len(snapshot.tables.phrases),
        "facts": len(snapshot.tables.facts),
        "seconds": round(seconds, 2),
        "names": len(pairs),
        "new_names": int(fresh.sum()),
        "by_kind": dict(names.counts),
        "new": new,
        "refused": dict(names.refused),
    }


def sampled(snapshot: Snapshot, names: NameEdges, count: int) -> dict[str, list[str]]:
    """Up to count edges of each kind drawn at random, as text."""
    if not count:
        return {}
    chance, phrases = random.Random(SEED), snapshot.tables.phrases
    found = {}
    for place, kind in enumerate(KINDS):
        rows = np.flatnonzero(names.kinds >> place & 1).tolist()
        drawn = sorted(chance.sample(rows, min(count, len(rows))))
        found[kind] = [
            f"{phrases[names.edges.source[row]]} ~ {phrases[names.edges.target[row]]} ({names.edges.weight[row]:.2f})"
            for row in drawn
        ]
    return found


def compared(
    index: Path,
    opened: Opened,
    names: NameEdges,
    queries: Sequence[Query],
    methods: Sequence[str],
    scales: Sequence[float],
) -> list[dict[str, Any]]:
    """For each method the measures without names, and with names of each scale the differences, all in percent."""
    built, lines = opened.snapshot.manifest.encoder, []
    embedder = EncodedOnce(stored_embedder(built.spec, built.name, index))
    backend = load_backend("cpu", budget_bytes=BUDGET_BYTES)
    for method in methods:
        config = SearchConfig(method=method, solver="power")  # type: ignore[arg-type]
        runs = {}
        for scale in (0.0, *scales):
            walked = replace(opened.snapshot, graph=graph_of(opened.snapshot, names, scale), diffused=None)
            run = RunConfig(budget_bytes=BUDGET_BYTES)
            searcher = Searcher(index, Opened(walked, opened.pointer), Tools(embedder), backend, run=run)
            rankings = ask(searcher, queries, k=20, config=config, passages=len(walked.passages))
            runs[scale] = {
                query.id: [hit.passage.id for hit in ranking.hits]
                for query, ranking in zip(queries, rankings, strict=True)
            }
        lines += [_line(method, scale, runs, queries) for scale in runs]
    return lines


def graph_of(snapshot: Snapshot, names: NameEdges, scale: float) -> Csr:
    """The graph with the weights of names multiplied, or without names at 0."""
    edges = names.edges._replace(weight=names.edges.weight * np.float32(scale))
    linked = with_names(snapshot.synonyms, names._replace(edges=edges) if scale else None)
    return assemble(snapshot.tables, linked, snapshot.manifest.config.edge_rule)


def _line(
    method: str, scale: float, runs: Mapping[float, Mapping[str, Sequence[str]]], queries: Sequence[Query]
) -> dict[str, Any]:
    gold = {query.id: dict.fromkeys(query.supporting, 1) for query in queries}
    found, without = evaluate(runs[scale], gold), evaluate(runs[0.0], gold)
    line: dict[str, Any] = {"method": method, "scale": scale, "queries": found.queries}
    line |= {name: round(100 * found.values[name], 2) for name in MEASURES}
    if scale:
        differences = paired_differences(found, without)
        line["difference"] = {name: [round(100 * value, 2) for value in differences[name][:3]] for name in MEASURES}
        line["lists_changed"] = sum(runs[scale][query] != runs[0.0][query] for query in runs[scale])
    return line
