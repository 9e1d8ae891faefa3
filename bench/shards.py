"""python -m bench shards: what of a ranking survives when the passages of an index are split into shards."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from scipy.sparse import csr_array

from bench.ppr.questions import passage_vectors, questions_near
from bench.ppr.synthetic import synthetic_graph
from bench.report import machine, write_json
from bench.shards_page import write_page
from bench.shards_parts import PARTS, cut_of, split
from bench.shards_walks import PASSAGE_WEIGHT, SCHEMES, Scheme, Seeds, World, exact, seeds_of, sharded, world_of
from hippogpu.corpus import read_queries
from hippogpu.embed.stored import stored_embedder
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import Csr, Floats, Ints, Ragged

RESULTS = Path("bench/results/shards.json")
TOP, FIRST = 20, 5
# Every shard walks the whole graph of phrases there: so many shards take so many walks of it.
MOST_SHARDS_WITH_ALL_PHRASES = 8


class Case(NamedTuple):
    """An index, or a synthetic graph, with questions: gold has the passages of each, empty where none are known."""

    name: str
    world: World
    graph: Csr
    mentions: Ragged
    seeds: Seeds
    gold: list[Ints]
    schemes: tuple[Scheme, ...]
    synonyms: int


def shards(
    index: Annotated[Path | None, typer.Option(help="An index folder.")] = None,
    queries: Annotated[Path | None, typer.Option(help="Questions with supporting_ids.")] = None,
    prefix: Annotated[str, typer.Option(help="Written before each of the supporting ids.")] = "",
    passages: Annotated[int, typer.Option(help="A synthetic graph of so many passages instead.")] = 0,
    count: Annotated[int, typer.Option(help="Questions asked.")] = 64,
    split_into: Annotated[str, typer.Option(help="Numbers of shards.")] = "2,4,8,16,32,64",
    name: Annotated[str, typer.Option(help="What the case is called (default: the index and the questions).")] = "",
    json_path: Annotated[Path, typer.Option("--json", help="This file is updated.")] = RESULTS,
) -> None:
    """Split an index, walk each shard by itself, and compare with the whole."""
    if index is not None and queries is not None:
        case = _of_index(index, queries, prefix, count)
    elif passages:
        case = synthetic_case(passages, count)
    else:
        raise typer.BadParameter("give --index and --queries, or --passages")
    result = measured(case, [int(number) for number in split_into.split(",")])
    held: dict[str, Any] = {"bench": "shards", "cases": {}}
    if json_path.exists():
        held = json.loads(json_path.read_text(encoding="utf-8"))
    held["cases"][name or case.name] = result
    write_json(json_path, held)


def shards_report() -> None:
    """The tables of docs/shards.md from bench/results/shards.json and the arithmetic of plan index."""
    write_page(json.loads(RESULTS.read_text(encoding="utf-8")))


def measured(case: Case, numbers: Sequence[int]) -> dict[str, Any]:
    """Every way to split, number of shards and scheme, beside the whole."""
    console, started = Console(stderr=True), time.perf_counter()
    first, second = exact(case.world, case.seeds)
    whole = first + second
    rows: list[dict[str, Any]] = []
    cuts: list[dict[str, Any]] = []
    for kind in PARTS:
        for number in numbers:
            where = split(kind, case.mentions, case.graph.nodes - len(case.mentions), number)
            cut = cut_of(where, case.mentions, case.graph, number)
            cuts.append({"split": kind, "shards": number, **cut._asdict()})
            for scheme in case.schemes:
                if scheme.phrases and number > MOST_SHARDS_WITH_ALL_PHRASES:
                    continue
                found = sharded(case.world, where, number, scheme, case.seeds, first)
                row = {"split": kind, "shards": number, "scheme": scheme.name, **compared(found, whole, case.gold)}
                if not scheme.degrees:
                    del row["mass"]
                rows.append(row)
                console.print(json.dumps(row), markup=False)
    return {
        "machine": machine(),
        "seconds": round(time.perf_counter() - started, 1),
        "passages": len(case.mentions),
        "phrases": case.graph.nodes - len(case.mentions),
        "nonzeros": case.graph.nonzeros,
        "synonyms": case.synonyms,
        "questions": len(whole),
        "exact": compared(whole, whole, case.gold),
        "cuts": cuts,
        "rows": rows,
    }


def compared(found: Floats, whole: Floats, gold: Sequence[Ints]) -> dict[str, Any]:
    """Means over questions: of the mass of the 20 passages that are first in the whole, the share that `found` has;
    the share of those 20 that are among the first 20 of `found`; and recall at 5 where gold is known.
    """
    best, theirs = _first(whole, TOP), _first(found, TOP)
    mass = np.take_along_axis(found, best, 1).sum(axis=1) / np.take_along_axis(whole, best, 1).sum(axis=1)
    same = [len(np.intersect1d(one, other)) / len(one) for one, other in zip(best, theirs, strict=True)]
    value: dict[str, Any] = {"mass": round(float(mass.mean()), 4), "top": round(float(np.mean(same)), 4)}
    if gold:
        near = _first(found, FIRST)
        recalls = [len(np.intersect1d(some, row)) / len(some) for some, row in zip(gold, near, strict=True)]
        value["recall"] = round(float(np.mean(recalls)), 4)
    return value


def _first(scores: Floats, k: int) -> Ints:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)


def _of_index(index: Path, queries: Path, prefix: str, count: int) -> Case:
    manifest = current_manifest(index)
    snapshot, built = load_snapshot(index, manifest), manifest.encoder
    rows = dict(zip(snapshot.passages.ids, snapshot.passages.rows.tolist(), strict=True))
    asked = [
        query
        for query in read_queries(queries).queries
        if query.supporting and all(prefix + id_ in rows for id_ in query.supporting)
    ][:count]
    if not asked:
        raise typer.BadParameter("no question's supporting passages are in the index; is a --prefix missing?")
    vectors = stored_embedder(built.spec, built.name, index).encode([query.text for query in asked])
    world = world_of(snapshot, vectors)
    gold = [np.array([rows[prefix + id_] for id_ in query.supporting], np.int32) for query in asked]
    name = f"{index.stem}, {queries.parent.name}"
    return Case(
        name,
        world,
        snapshot.graph,
        snapshot.tables.mentions,
        seeds_of(world),
        gold,
        SCHEMES,
        manifest.counts["synonyms"],
    )


def synthetic_case(passages: int, count: int) -> Case:
    made = synthetic_graph(passages)
    graph = made.graph
    ends = graph.indptr[: passages + 1]
    mentions = Ragged(ends, (graph.indices[: int(ends[-1])] - passages).astype(np.int32))
    questions = questions_near(passage_vectors(passages, 64), graph, count)
    seeds = Seeds(*(np.zeros((graph.nodes, count), np.float32) for _ in range(2)))
    seeds.passages[:passages] = PASSAGE_WEIGHT * questions.scores.T
    for number, (phrases, weights) in enumerate(zip(questions.phrases, questions.weights, strict=True)):
        seeds.phrases[passages + phrases, number] = weights
    adjacency = csr_array((graph.weights, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    nothing = np.empty(0, np.int32)
    world = World(
        adjacency,
        np.asarray(adjacency.sum(axis=1)).ravel(),
        passages,
        np.bincount(mentions.values, minlength=graph.nodes - passages).astype(np.int32),
        nothing,
        nothing,
        csr_array(np.zeros((passages, 0), np.float32)),
        questions.scores,
        np.zeros((count, 0), np.float32),
    )
    schemes = tuple(scheme for scheme in SCHEMES if scheme.facts)
    return Case(f"synthetic, {passages:,}", world, graph, mentions, seeds, [], schemes, made.synonyms)
