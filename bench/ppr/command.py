"""The verbs: measure some graphs, and write the page and the plot of the stored result."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.folders import work_folder
from bench.ppr.page import write_page
from bench.ppr.plot import write_plot
from bench.ppr.problem import make_from_index, make_synthetic
from bench.ppr.results import RESULTS, merged, read_results
from bench.ppr.runs import Run, available_threads, measure_graph
from bench.ppr.solvers import SOLVERS, Solver
from bench.ppr.tables import print_graph
from bench.report import write_json

NAMES = [solver.name for solver in SOLVERS]


def ppr(
    passages: Annotated[
        list[int] | None, typer.Option(min=20, help="Passages of a synthetic graph; repeatable.")
    ] = None,
    index: Annotated[list[Path] | None, typer.Option(help="The graph of this index; repeatable.")] = None,
    json: Annotated[Path | None, typer.Option(help="Update this file; a graph of the same name is replaced.")] = None,
    solver: Annotated[list[str] | None, typer.Option(help=f"Only this one; repeatable. {', '.join(NAMES)}.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Leave this solver out; repeatable.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Timed calls of each solver.")] = 7,
    budget_s: Annotated[
        float, typer.Option(min=0.0, help="Seconds that the calls of one solver may take; one is always made.")
    ] = 60.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each solver; all cores if not given.")] = None,
    work: Annotated[Path | None, typer.Option(help="Keep the graphs here; a rerun finds them.")] = None,
    width: Annotated[int, typer.Option(min=8, help="Width of the passage vectors of synthetic graphs.")] = 384,
    seed: Annotated[int, typer.Option(min=0, help="Seed of synthetic graphs and of all questions.")] = 0,
) -> None:
    """Time Personalised PageRank, ours beside others'. Exit 1 when a check failed; what failed is not timed."""
    console = Console() if sys.stdout.isatty() else Console(width=190)
    chosen = chosen_solvers(solver or NAMES, skip or [])
    if not passages and not index:
        raise typer.BadParameter("Name at least one graph: --passages 1000, or --index wiki.hippo.")
    run, passed = Run(threads or available_threads(), repeats, budget_s), True
    with work_folder(work) as folder:
        for name, place in _graphs(folder, passages or [], index or [], width, seed):
            found = measure_graph(run, place, chosen)
            print_graph(name, found, console)
            passed &= found["passed"]
            if json is not None:
                write_json(json, merged(read_results(json), name, found))
    if not passed:
        raise typer.Exit(1)


def ppr_report(
    json: Annotated[Path, typer.Option(help="The stored result.")] = RESULTS,
) -> None:
    """Write the tables of docs/ppr.md and the plot docs/ppr.svg from the stored result."""
    results = read_results(json)
    write_page(results)
    write_plot(results)


def chosen_solvers(names: Sequence[str], skipped: Sequence[str]) -> list[Solver]:
    """The solvers of those names without the skipped ones, in the list's order; usage error for an unknown name."""
    unknown = [name for name in [*names, *skipped] if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"No solver is called '{unknown[0]}'. Take one of: {', '.join(NAMES)}.")
    return [solver for solver in SOLVERS if solver.name in names and solver.name not in skipped]


def _graphs(
    folder: Path, passages: Sequence[int], indexes: Sequence[Path], width: int, seed: int
) -> Iterator[tuple[str, Path]]:
    """Each graph's name and folder, made when its turn comes."""
    for count in passages:
        place = folder / f"synthetic-{count}"
        make_synthetic(place, count, width=width, seed=seed)
        yield str(count), place
    for index in indexes:
        name = index.resolve().name
        make_from_index(folder / f"index-{name}", index, seed=seed)
        yield name, folder / f"index-{name}"
