"""python -m bench locality: node orders, and edges in fewer bytes, by size and by the time of steps and pushes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from bench.locality_accuracy import measure_accuracy
from bench.locality_layouts import LAYOUTS
from bench.locality_measuring import BASE, Problem, measure_diffusion, measure_layouts, measure_orders
from bench.locality_orders import ORDERS
from bench.locality_page import write_page
from bench.locality_predictions import PREDICTIONS
from bench.ppr.synthetic import synthetic_graph
from bench.report import machine, write_json
from hippogpu.config import IndexConfig
from hippogpu.graph import assemble
from hippogpu.store.opening import Opened, open_current
from hippogpu.synonyms import find_synonyms
from hippogpu.types import Csr

RESULTS = Path("bench/results/locality.json")
SYNONYM_BYTES = 2**28


def locality(
    passages: Annotated[int | None, typer.Option(help="A synthetic graph of that many passages.")] = None,
    index: Annotated[Path | None, typer.Option(help="Or the graph of this index.")] = None,
    synonyms: Annotated[bool, typer.Option(help="Join its phrases by synonyms in cells, if it has none.")] = False,
    order: Annotated[list[str] | None, typer.Option(help="These orders only; 'none' for no order.")] = None,
    layout: Annotated[list[str] | None, typer.Option(help="These layouts only; 'none' for no layout.")] = None,
    ordered: Annotated[str, typer.Option(help="Measure the layouts in this order of the nodes.")] = BASE,
    diffusion: Annotated[bool, typer.Option(help="A diffusion of 64 columns, with the order and without.")] = False,
    queries: Annotated[Path | None, typer.Option(help="Questions to compare rankings with, of an index.")] = None,
    prefix: Annotated[str, typer.Option(help="What the index puts before the ids of supporting passages.")] = "",
    count: Annotated[int, typer.Option(help="So many questions at most.")] = 1000,
    repeats: Annotated[int, typer.Option(help="Timed turns of each pair.")] = 7,
    work: Annotated[Path | None, typer.Option(help="Keep the graph there; a rerun finds it.")] = None,
    name: Annotated[str | None, typer.Option(help="Under which the results stand.")] = None,
    results: Annotated[Path, typer.Option("--json", help="This file is updated.")] = RESULTS,
) -> None:
    """Each order and layout in turns with the graph as it is, on one thread, by processor time."""
    if (passages is None) == (index is None):
        raise typer.BadParameter("give either --passages or --index")
    opened = open_current(index) if index is not None else None
    title = name or (index.stem if index is not None else f"{passages}")
    problem = kept_problem(work, title) or problem_of(passages, opened, title, synonyms)
    keep_problem(work, problem)
    entry = read_results(results)["graphs"].get(problem.name, {})
    words = ["python -m bench locality", *(Path(word).name if "/" in word else word for word in sys.argv[2:])]
    entry |= {"graph": about(problem, passages is not None), "machine": machine()}
    entry["commands"] = [*entry.get("commands", []), " ".join(words)]
    console = Console(stderr=True)
    for row in measure_orders(problem, chosen(order, list(ORDERS)), repeats):
        console.print(row["order"], {batch: found["ratio"] for batch, found in row["steps"].items()}, row["push"])
        keep(results, problem.name, entry, "orders", row, ("order",))
    if diffusion:
        keep(results, problem.name, entry, "diffusion", measure_diffusion(problem, repeats), ("what",))
    for row in measure_layouts(problem, ordered, chosen(layout, list(LAYOUTS)), repeats):
        console.print(row["layout"], {batch: found["ratio"] for batch, found in row["steps"].items()})
        keep(results, problem.name, entry, "layouts", row, ("layout", "order"))
    if queries is not None and index is not None and opened is not None:
        for row in measure_accuracy(index, opened, problem.graph, queries, prefix, count):
            keep(results, problem.name, entry, "accuracy", row, ("weights",))


def locality_report() -> None:
    """The tables of docs/locality.md from bench/results/locality.json."""
    write_page(read_results(RESULTS))


def problem_of(passages: int | None, opened: Opened | None, name: str, synonyms: bool) -> Problem:
    """The synthetic graph, or that of the index."""
    if opened is None:
        assert passages is not None
        return Problem(name, synthetic_graph(passages).graph, passages)
    snapshot = opened.snapshot
    graph = snapshot.graph
    if synonyms and not len(snapshot.synonyms.source):
        config = IndexConfig(synonym_search="cells")
        found = find_synonyms(snapshot.tables.phrases, snapshot.phrase_vectors, config, budget_bytes=SYNONYM_BYTES)
        graph = assemble(snapshot.tables, found, config.edge_rule)
    # Plain arrays: compiled code takes maps of files for another type.
    graph = Csr(*(np.array(array) for array in (graph.indptr, graph.indices, graph.weights)))
    return Problem(name, graph, len(snapshot.passages))


def kept_problem(work: Path | None, name: str) -> Problem | None:
    """The graph of that name that an earlier run left."""
    if work is None or not (work / f"{name}.npz").exists():
        return None
    with np.load(work / f"{name}.npz", allow_pickle=False) as arrays:
        graph = Csr(arrays["indptr"], arrays["indices"], arrays["weights"])
        return Problem(name, graph, int(arrays["passages"]))


def keep_problem(work: Path | None, problem: Problem) -> None:
    """Leave the graph for later runs."""
    if work is None or (work / f"{problem.name}.npz").exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    graph = problem.graph
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "weights": graph.weights}
    np.savez(work / f"{problem.name}.npz", passages=problem.passages, **arrays)  # type: ignore[arg-type]


def about(problem: Problem, synthetic: bool) -> dict[str, Any]:
    """Counts of the graph."""
    nodes, edges = problem.graph.nodes, problem.graph.nonzeros
    mentions = 2 * int(problem.graph.indptr[problem.passages])
    counts = {"passages": problem.passages, "nodes": nodes, "nonzeros": edges, "of_mentions": mentions}
    return {"synthetic": synthetic, **counts}


def chosen(names: list[str] | None, known: list[str]) -> list[str]:
    """The names, all when none are given; BadParameter for one that is not known."""
    if names == ["none"]:
        return []
    for name in names or []:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}")
    return names or known


def read_results(path: Path) -> dict[str, Any]:
    """What is stored, with the predictions beside it."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"graphs": {}}
    return {**found, "predicted": PREDICTIONS}


def keep(
    path: Path, name: str, entry: dict[str, Any], kind: str, row: dict[str, Any], named_by: tuple[str, ...]
) -> None:
    """Write the row at once, in the place of an earlier one of its name."""
    others = [old for old in entry.get(kind, []) if any(old[key] != row[key] for key in named_by)]
    entry[kind] = [*others, row]
    found = read_results(path)
    found["graphs"][name] = entry
    write_json(path, found)
