"""Synonyms by cells against all pairs: which are missed, what it takes, and whether the ranking shows it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from bench.report import machine
from bench.synonyms_faiss import faiss_graph, faiss_ranks
from hippogpu.backends import load_backend
from hippogpu.config import IndexConfig, RunConfig, SearchConfig
from hippogpu.corpus import read_queries
from hippogpu.embed.stored import stored_embedder
from hippogpu.evaluate import evaluate
from hippogpu.evaluate.asking import EncodedOnce, ask
from hippogpu.evaluate.intervals import paired_differences
from hippogpu.graph import assemble
from hippogpu.methods.asking import Tools
from hippogpu.precision import Vectors, float_rows, rounded
from hippogpu.searcher import Searcher
from hippogpu.store.opening import Opened, open_current
from hippogpu.synonyms import find_synonyms
from hippogpu.synonyms.cells import Cells, sort_into_cells
from hippogpu.synonyms.centres import Reach
from hippogpu.synonyms.pairs import Pairs, Wanted, joined, nearest
from hippogpu.synonyms.tiles import ROWS, Rows, near_pairs
from hippogpu.types import Edges, Ints, Longs

REACHES = [Reach(size, 32, groups) for size, groups in ((64, 16), (128, 16), (64, 8))]
LOOKED_AT = (1, 2, 4, 8, 16, 32)
BANDS = ((0.8, 0.85), (0.85, 0.9), (0.9, 1.01))
MEASURES = ("recall@1", "recall@2", "recall@5", "recall@10")
THRESHOLD, CAP, SEED, BUDGET_BYTES = 0.8, 100, 7, 512 * 2**20


class Phrases(NamedTuple):
    """Phrases in their order, and their vectors."""

    texts: Sequence[str]
    vectors: Vectors


class Truth(NamedTuple):
    """Some phrases, and their synonyms among all."""

    sample: Longs
    pairs: Pairs


class Clock:
    """Seconds gone by, and seconds of one core that were worked: the latter bear a loaded machine."""

    def __init__(self) -> None:
        self._wall, self._work = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        wall, work = time.perf_counter() - self._wall, time.process_time() - self._work
        return {"wall_s": round(wall, 2), "core_s": round(work, 2)}


def synonyms(
    source: Annotated[list[Path], typer.Argument(help="Folders of indexes, or NAME.npy of rows beside NAME.txt.")],
    sample: Annotated[int, typer.Option(help="Compare so many phrases with all, to know what is missed.")] = 4000,
    exact: Annotated[bool, typer.Option(help="Time the exact search too.")] = False,
    faiss: Annotated[bool, typer.Option(help="Cells and graphs of FAISS too.")] = False,
    stored: Annotated[list[str], typer.Option(help="Time with vectors stored as that.")] = ["float32"],  # noqa: B006
    queries: Annotated[
        Path | None, typer.Option(help="Rank these questions over exact edges and those of cells.")
    ] = None,
    method: Annotated[list[str], typer.Option(help="By which methods.")] = ["hippo2", "hippo"],  # noqa: B006
    output: Annotated[Path | None, typer.Option(help="Where the results go as JSON, with the command.")] = None,
) -> None:
    """One JSON object a line: the searches timed, recall by cells looked at, FAISS, rankings."""
    lines = []
    for place in source:
        for line in measured(place, sample, exact=exact, faiss=faiss, stored=stored):
            lines.append({"set": place.stem, **line})
            print(json.dumps(lines[-1]), flush=True)
        if queries is not None:
            for line in ranked(place, queries, method):
                lines.append({"set": place.stem, **line})
                print(json.dumps(lines[-1]), flush=True)
    if output is not None:
        write(output, lines)


def write(output: Path, lines: Sequence[dict[str, Any]]) -> None:
    """The rows of these sets, with command and machine, beside those of other sets that are there."""
    there = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {"runs": {}}
    words = ["python -m bench synonyms", *(Path(word).name if "/" in word else word for word in sys.argv[2:])]
    for name in dict.fromkeys(line["set"] for line in lines):
        rows = [{key: value for key, value in line.items() if key != "set"} for line in lines if line["set"] == name]
        there["runs"][name] = {"command": " ".join(words), "machine": machine(), "rows": rows}
    output.write_text(json.dumps(there, indent=1) + "\n", encoding="utf-8")


def measured(place: Path, sample: int, *, exact: bool, faiss: bool, stored: Sequence[str]) -> Iterator[dict[str, Any]]:
    phrases = read(place)
    truth = true_pairs(phrases, sample)
    width = phrases.vectors.shape[1]
    base = {
        "phrases": len(phrases.texts),
        "width": width,
        "pairs_a_phrase": len(truth.pairs.source) / len(truth.sample),
    }
    yield {"what": "set", **base, "sample": len(truth.sample)}
    for kind in stored:
        vectors = rounded(float_rows(phrases.vectors, slice(None)), kind)  # type: ignore[arg-type]
        for search in ("exact", "cells") if exact else ("cells",):
            clock = Clock()
            edges = find_synonyms(phrases.texts, vectors, IndexConfig(synonym_search=search), budget_bytes=BUDGET_BYTES)  # type: ignore[arg-type]
            line = {"what": "search", "search": search, "stored": kind, **clock.read(), "edges": len(edges.source)}
            if search == "exact":
                line["gflops_a_core"] = round(len(phrases.texts) ** 2 * width / line["core_s"] / 1e9, 1)
            yield line | {"recall": round(recall(edges, truth), 4)} if kind == "float32" else line
    for reach in REACHES:
        clock = Clock()
        cells = sort_into_cells(phrases.vectors, reach=reach)
        spent = clock.read()
        yield {"what": "cells", "phrases_a_cell": reach.phrases, "groups": reach.groups, **spent} | by_looks(
            cells, truth
        )
    if faiss:
        rows = float_rows(phrases.vectors, slice(None))
        ranks = faiss_ranks(rows, 64, max(LOOKED_AT))
        cells = Cells(ranks.near, np.ascontiguousarray(ranks.near[:, 0]), *counts(ranks.near))
        yield {"what": "faiss ivf", **ranks.spent} | by_looks(cells, truth)
        yield from faiss_graph(rows, truth.sample, truth.pairs, THRESHOLD)


def read(place: Path) -> Phrases:
    """The phrases of an index, or rows beside their texts."""
    if place.suffix == ".npy":
        texts = place.with_suffix(".txt").read_text(encoding="utf-8").split("\n")
        return Phrases(texts, np.load(place))
    snapshot = open_current(place).snapshot
    return Phrases(snapshot.tables.phrases, snapshot.phrase_vectors)


def true_pairs(phrases: Phrases, count: int) -> Truth:
    """Synonyms of phrases drawn at random, found by comparing them with all."""
    total = len(phrases.texts)
    sample = np.sort(np.random.default_rng(SEED).choice(total, min(count, total), replace=False))
    anyone = np.ones(total, bool)
    searching = np.array([sum(c.isalnum() for c in text) >= 3 for text in phrases.texts])
    wanted = Wanted(searching, anyone, anyone, anyone)
    drawn = np.zeros(total, bool)
    drawn[sample] = True
    parts = []
    for first in range(0, len(sample), ROWS):
        numbers = sample[first : first + ROWS].astype(np.int32)
        left, found = Rows(numbers, float_rows(phrases.vectors, numbers)), []
        for start in range(0, total, ROWS):
            right = np.arange(start, min(start + ROWS, total), dtype=np.int32)
            rows = Rows(right, float_rows(phrases.vectors, slice(start, start + ROWS)))
            differs = lambda i, j, a=numbers, b=right: a[i] != b[j]  # noqa: E731
            near = near_pairs(left, rows, keep=differs, wanted=wanted, threshold=THRESHOLD, cap=CAP)
            found.append(near.where(np.isin(near.source, numbers)))
        pairs = nearest(joined(found), CAP)
        # A pair of two phrases of one block is met from both ends.
        again = (pairs.source[1:] == pairs.source[:-1]) & (pairs.target[1:] == pairs.target[:-1])
        parts.append(pairs.where(np.append(True, ~again)) if len(pairs.source) else pairs)
    return Truth(sample, joined(parts))


def recall(edges: Edges, truth: Truth) -> float:
    """The share of the true pairs that are edges."""
    keys = edges.source.astype(np.int64) << 32 | edges.target
    return float(np.isin(truth.pairs.source.astype(np.int64) << 32 | truth.pairs.target, keys).mean())


def by_looks(cells: Cells, truth: Truth) -> dict[str, Any]:
    """Recall, and phrases that one is compared with, by how many cells it looks at."""
    near, own, pairs = cells.near, cells.own, truth.pairs
    there = rank(near[pairs.source], own[pairs.target])
    back = rank(near[pairs.target], own[pairs.source])
    first = np.minimum(there, back)
    sizes = np.append(cells.members, 0)
    looks = [looked for looked in LOOKED_AT if looked <= near.shape[1]]
    bands = {
        f"{low}-{min(high, 1)}": round(float((first[(pairs.cosine >= low) & (pairs.cosine < high)] < 16).mean()), 4)
        for low, high in BANDS
    }
    return {
        "cells": len(cells.members),
        "greatest_cell": int(cells.members.max()),
        "recall": {looked: round(float((first < looked).mean()), 4) for looked in looks},
        "compared": {looked: round(float(sizes[near[truth.sample, :looked]].sum(axis=1).mean())) for looked in looks},
        "recall_at_16_by_cosine": bands,
    }


def rank(near: Ints, own: Ints) -> Longs:
    """The place of a cell among the nearest ones of each row, far behind where it is not there."""
    there = near == own[:, None]
    return np.where(there.any(axis=1), there.argmax(axis=1), 10**6)


def counts(near: Ints) -> tuple[Longs, Longs]:
    """Phrases that look at each cell, and phrases whose own it is."""
    visits = np.bincount(near.ravel() + 1)[1:]
    return visits, np.bincount(near[:, 0], minlength=len(visits))


def ranked(place: Path, questions: Path, methods: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Measures in percent over exact synonyms, over those of cells, and over none of those that cells miss."""
    opened, queries = open_current(place), read_queries(questions).queries
    snapshot = opened.snapshot
    exact, cells = (
        find_synonyms(snapshot.tables.phrases, snapshot.phrase_vectors, IndexConfig(synonym_search=search))
        for search in ("exact", "cells")
    )
    embedder = EncodedOnce(stored_embedder(snapshot.manifest.encoder.spec, snapshot.manifest.encoder.name, place))
    backend, run = load_backend("cpu", budget_bytes=BUDGET_BYTES), RunConfig(budget_bytes=BUDGET_BYTES)
    gold = {query.id: dict.fromkeys(query.supporting, 1) for query in queries}
    for method in methods:
        runs = []
        for edges in (exact, cells):
            graph = assemble(snapshot.tables, edges, snapshot.manifest.config.edge_rule)
            walked = replace(snapshot, graph=graph, synonyms=edges, diffused=None)
            searcher = Searcher(place, Opened(walked, opened.pointer), Tools(embedder), backend, run=run)
            config = SearchConfig(method=method, solver="power")  # type: ignore[arg-type]
            rankings = ask(searcher, queries, k=20, config=config, passages=len(snapshot.passages))
            runs.append({q.id: [hit.passage.id for hit in r.hits] for q, r in zip(queries, rankings, strict=True)})
        found = [evaluate(made, gold) for made in runs]
        differences = paired_differences(found[1], found[0])
        yield {
            "what": "ranking",
            "method": method,
            "queries": found[0].queries,
            "edges": [len(exact.source), len(cells.source)],
            "exact": {name: round(100 * found[0].values[name], 2) for name in MEASURES},
            "cells": {name: round(100 * found[1].values[name], 2) for name in MEASURES},
            "difference": {name: [round(100 * v, 2) for v in differences[name][:3]] for name in MEASURES},
            "lists_changed": sum(runs[0][q] != runs[1][q] for q in runs[0]),
        }
