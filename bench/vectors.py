"""python -m bench vectors: what each store of facts finds, what that does to rankings, and what it costs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console

from bench.measure import spread
from bench.report import machine, write_json
from bench.vectors_page import write_page
from hippogpu.backends import Backend, load_backend
from hippogpu.config import FactStore, RunConfig, SearchConfig, VectorType
from hippogpu.corpus import Query, read_queries
from hippogpu.embed import Embedder
from hippogpu.embed.stored import stored_embedder
from hippogpu.evaluate import EncodedOnce, Evaluation, ask, evaluate, paired_differences
from hippogpu.methods import Tools
from hippogpu.methods.loaded import min_max
from hippogpu.nearest import ExactRows, Near, Nearest, near_rows
from hippogpu.nearest.filling import fact_cells
from hippogpu.precision import ScaledRows, Vectors, float_rows, rounded
from hippogpu.searcher import Searcher
from hippogpu.store import FactCells
from hippogpu.store.opening import Opened, open_current
from hippogpu.types import Floats

RESULTS = Path("bench/results/vectors.json")
TOP, DEPTH, REPEATS = 5, 20, 7
BATCHES = (1, 32)
METHODS = ("hippo2", "hippo")
# Scores that are compared by their medians and by what 19 of 20 questions do not exceed.
_TAIL = 95
_BLOCK_ROWS = 2**16


class Store(NamedTuple):
    """A way to keep and find facts: type of the stored rows, by whom they are found, cells that are looked at."""

    name: str
    kind: VectorType
    by: FactStore = "own"
    probes: int = 0


STORES = (
    Store("float32", "float32"),
    Store("float16", "float16"),
    Store("int8", "int8"),
    *(Store(f"cells {probes}", "int8", probes=probes) for probes in (16, 32, 64, 128, 256)),
    Store("FAISS float32", "float32", "faiss"),
    Store("FAISS float16", "float16", "faiss"),
    Store("FAISS int8", "int8", "faiss"),
    Store("FAISS cells 128", "int8", "faiss", probes=128),
)


class World(NamedTuple):
    """An index, its questions and their vectors (B, w), with cells by the type of the stored rows."""

    root: Path
    opened: Opened
    queries: Sequence[Query]
    vectors: Floats
    embedder: Embedder
    backend: Backend


class Held(NamedTuple):
    """A store of the facts of an index, with the processor time that its cells and its opening took."""

    store: Store
    rows: Vectors
    cells: FactCells | None
    near: Nearest
    filling_s: float
    opening_s: float


def vectors(
    index: Annotated[Path, typer.Argument(help="An index of facts in float32, without cells.")],
    queries: Annotated[Path, typer.Argument(help="Questions with supporting_ids.")],
    name: Annotated[str, typer.Option(help="Under which the results stand.")],
    prefix: Annotated[str, typer.Option(help="Written before each of the supporting ids.")] = "",
    count: Annotated[int, typer.Option(help="Questions asked, at most.")] = 1000,
    store: Annotated[list[str] | None, typer.Option(help="These stores beside float32, of all.")] = None,
    json_path: Annotated[Path, typer.Option("--json", help="This file is updated.")] = RESULTS,
) -> None:
    """Put the facts of an index into each store and ask the same questions."""
    held: dict[str, Any] = {"bench": "vectors", "sets": {}}
    if json_path.exists():
        held = json.loads(json_path.read_text(encoding="utf-8"))
    chosen = [one for one in STORES if store is None or one is STORES[0] or one.name in store]
    held["sets"][name] = measured(world_of(index, queries, prefix, count), chosen)
    write_json(json_path, held)


def vectors_report() -> None:
    """The tables of docs/vectors.md from bench/results/vectors.json."""
    write_page(json.loads(RESULTS.read_text(encoding="utf-8")))


def world_of(index: Path, queries: Path, prefix: str, count: int) -> World:
    """The index with those questions whose supporting passages are all in it."""
    opened = open_current(index)
    config = opened.snapshot.manifest.config
    if (config.fact_vectors, config.fact_search) != ("float32", "exact"):
        raise typer.BadParameter("the facts of this index are rounded or in cells already; give one of the defaults")
    known = set(opened.snapshot.passages.ids)
    asked = [
        query._replace(supporting=tuple(prefix + id_ for id_ in query.supporting))
        for query in read_queries(queries).queries
    ]
    asked = [query for query in asked if query.supporting and known.issuperset(query.supporting)][:count]
    built = opened.snapshot.manifest.encoder
    embedder = EncodedOnce(stored_embedder(built.spec, built.name, index))
    encoded = embedder.encode([query.text for query in asked], instruction=embedder.query_to_fact)
    return World(index, opened, asked, np.asarray(encoded, np.float32), embedder, load_backend("cpu"))


def measured(world: World, stores: Sequence[Store] = STORES) -> dict[str, Any]:
    """A row a store, beside the first one, which looks at every fact in float32."""
    console, started, before = Console(stderr=True), time.perf_counter(), machine()
    facts = float_rows(world.opened.snapshot.fact_vectors, slice(None))
    made: dict[VectorType, tuple[FactCells, float]] = {}
    rows: list[dict[str, Any]] = []
    truth: Near | None = None
    exact: Mapping[str, Evaluation] = {}
    for store in stores:
        held = hold(world, store, facts, made)
        found, ranked = held.near.topk(world.vectors, TOP), evaluations(world, held)
        truth, exact = truth or found, exact or ranked
        row = {
            **described(held),
            **compared(found, truth),
            "rankings": {name: recalls(ranked[name], exact[name]) for name in ranked},
            "ms": {str(batch): milliseconds(held.near, world.vectors, batch) for batch in BATCHES},
        }
        console.print(json.dumps(row), markup=False)
        rows.append(row)
    return {
        "machine": before,
        "seconds": round(time.perf_counter() - started, 1),
        "facts": len(facts),
        "width": facts.shape[1],
        "passages": len(world.opened.snapshot.passages),
        "questions": len(world.queries),
        "cells": next((len(cells.centroids) for cells, _ in made.values()), 0),
        "rows": rows,
    }


def hold(world: World, store: Store, facts: Floats, made: dict[VectorType, tuple[FactCells, float]]) -> Held:
    """The facts in a store; cells are made once for a type."""
    rows, cells, filling_s = stored_as(facts, store.kind), None, 0.0
    if store.probes:
        if store.kind not in made:
            made[store.kind] = _timed(lambda: fact_cells(rows))
        cells, filling_s = made[store.kind]
    run = RunConfig(backend="cpu", fact_store=store.by)

    def opened() -> Nearest:
        if cells is None and store.by == "own":
            return ExactRows(world.backend, world.backend.put(rows))
        return near_rows(rows, cells, world.backend, run)

    near, opening_s = _timed(opened)
    config = SearchConfig()
    near = near.looking(probes=store.probes or config.fact_probes, shortlist=config.fact_shortlist)
    return Held(store, rows, cells, near, filling_s, opening_s)


def stored_as(facts: Floats, kind: VectorType) -> Vectors:
    """The facts rounded; int8, which takes room for working, a block at a time."""
    if kind != "int8":
        return rounded(facts, kind)
    blocks = [rounded(facts[start : start + _BLOCK_ROWS], kind) for start in range(0, len(facts), _BLOCK_ROWS)]
    parts = [block for block in blocks if isinstance(block, ScaledRows)]
    return ScaledRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def described(held: Held) -> dict[str, Any]:
    """What a store takes: bytes a fact on disk and in memory beyond it, and processor seconds to make it."""
    facts = held.rows.shape[0]
    cells = 0 if held.cells is None else held.cells.nbytes
    return {
        "store": held.store.name,
        "stored_bytes": round((held.rows.nbytes + cells) / facts, 1),
        "copied_bytes": round(held.near.nbytes / facts, 1) if held.store.by != "own" else 0.0,
        "filling_s": round(held.filling_s, 1),
        "opening_s": round(held.opening_s, 2),
    }


def compared(found: Near, truth: Near) -> dict[str, Any]:
    """How many of the true first five facts were found; how far off the extremes and the scores of a question are."""
    pairs = list(zip(found.ids.tolist(), truth.ids.tolist(), strict=True))
    mine, theirs = (min_max(near.scores, near.low, near.high) for near in (found, truth))
    off = [
        abs(float(mine[number, list(one).index(fact)]) - float(theirs[number, place]))
        for number, (one, other) in enumerate(pairs)
        for place, fact in enumerate(other)
        if fact in one
    ]
    return {
        "recall": round(float(np.mean([len(set(one) & set(other)) / len(other) for one, other in pairs])), 4),
        "same_five": round(float(np.mean([set(one) == set(other) for one, other in pairs])), 4),
        "same_first": round(float(np.mean([one[0] == other[0] for one, other in pairs])), 4),
        "low_off": _tail(found.low - truth.low),
        "high_off": _tail(found.high - truth.high),
        "score_off": _tail(np.array(off)),
    }


def evaluations(world: World, held: Held) -> dict[str, Evaluation]:
    """What the methods that start from facts make of what the store finds."""
    snapshot = replace(world.opened.snapshot, fact_vectors=held.rows, fact_cells=held.cells)
    run = RunConfig(backend="cpu", fact_store=held.store.by)
    searcher = Searcher(
        world.root, Opened(snapshot, world.opened.pointer), Tools(world.embedder), world.backend, run=run
    )
    gold = {query.id: dict.fromkeys(query.supporting, 1) for query in world.queries}
    done = {}
    for method in METHODS:
        config = SearchConfig(method=method)  # type: ignore[arg-type]
        if held.store.probes:
            config = replace(config, fact_probes=held.store.probes)
        rankings = ask(searcher, world.queries, k=DEPTH, config=config, passages=len(snapshot.passages))
        named = zip(world.queries, rankings, strict=True)
        done[method] = evaluate({query.id: [hit.passage.id for hit in one.hits] for query, one in named}, gold)
    return done


def recalls(found: Evaluation, exact: Evaluation) -> dict[str, Any]:
    """Recall at 5, and the difference to a look at every fact in float32 with its 95 % interval."""
    difference = paired_differences(found, exact)["recall@5"]
    return {
        "recall@5": round(found.values["recall@5"], 4),
        "difference": [round(value, 4) for value in difference[:3]],
    }


def milliseconds(near: Nearest, queries: Floats, batch: int) -> Any:
    """A question's share of a batch's processor time, all threads together, of the first questions."""
    some = np.resize(queries, (batch, queries.shape[1])) if len(queries) < batch else queries[:batch]
    near.topk(some, TOP)
    return spread([_timed(lambda: near.topk(some, TOP))[1] * 1000 / batch for _ in range(REPEATS)])


def _tail(off: Any) -> dict[str, float]:
    """Mean, what 19 of 20 do not exceed, and most of the sizes of differences."""
    sizes = np.abs(np.asarray(off, np.float64))
    return {
        "mean": float(f"{sizes.mean():.3g}"),
        "p95": float(f"{np.percentile(sizes, _TAIL):.3g}"),
        "most": float(f"{sizes.max():.3g}"),
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work makes, and the seconds of processor time that it took: others on the machine change those least."""
    started = time.process_time()
    made = work()
    return made, time.process_time() - started
