"""How many questions a second, and what waiting costs at a rate: python -m bench throughput INDEX --queries FILE."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench import load as shared
from bench.arrivals import Served, poisson_arrivals, serve
from bench.checks import all_passed
from bench.load import Load
from bench.measure import spread
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.config import SearchConfig
from hippogpu.errors import require_extra

SHARES = (0.25, 0.5, 0.75, 0.9)


def throughput(
    index: shared.Index,
    queries: shared.Questions,
    batch: shared.Sizes = None,
    rate: Annotated[
        list[float] | None,
        typer.Option("--rate", min=0.001, help="Questions a second; repeatable (25, 50, 75, 90 % of the capacity)."),
    ] = None,
    k: shared.Hits = 20,
    method: shared.Method = "hippo2",
    solver: shared.Solver = "auto",
    backend: shared.Backend = "auto",
    no_encoder: shared.NoEncoder = False,
    seconds: shared.Seconds = 5.0,
    repeats: shared.Repeats = 3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the arrivals.")] = 0,
    json: shared.Json = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Latency against rate, as SVG.")] = None,
) -> None:
    """Measure the capacity in a closed loop, then latency when questions arrive by themselves at a share of it.

    Exit 1 when batches and single calls differ: then nothing is timed.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    if plot is not None:
        require_extra("matplotlib", package="matplotlib", extra="bench", purpose="--plot")
    sizes = batch or list(shared.SIZES)
    config = SearchConfig(method=method, solver=solver)
    load = shared.open_load(index, queries, config, sizes, k=k, backend=backend, encode=not no_encoder)
    result: dict[str, Any] = {"bench": "throughput", "machine": machine(), **shared.described(load)}
    checks = shared.check_batches(load, sizes)
    result |= {"passed": all_passed(checks), "checks": [check._asdict() for check in checks]}
    if result["passed"]:
        closed = closed_loops(load, sizes, seconds=seconds, repeats=repeats)
        capacity = max(found["median"] for found in closed.values())
        rates = sorted(rate or [share * capacity for share in SHARES])
        result |= {"closed_loop": closed, "capacity": capacity, "seed": seed, "most_at_once": max(sizes)}
        result["open_loop"] = [
            open_loop(load, one, max(sizes), seconds=seconds, repeats=repeats, seed=seed) for one in rates
        ]
    print_checks(checks, console)
    show(result, console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)
    if plot is not None:
        draw(result, plot)


def closed_loops(load: Load, sizes: Sequence[int], *, seconds: float, repeats: int) -> dict[str, Any]:
    """Questions a second at each batch size, the next batch asked when the one before is answered."""
    return {
        str(size): shared.questions_a_second([shared.closed_loop(load, size, seconds=seconds) for _ in range(repeats)])
        for size in sizes
    }


def open_loop(load: Load, rate: float, most: int, *, seconds: float, repeats: int, seed: int) -> dict[str, Any]:
    """Latency at a rate of arrival: p50, p95 and p99 of each pass, as the spread over the passes.

    Each pass has arrivals of its own seed. A rate is sustained when it is in every pass.
    """
    passes = [
        serve(poisson_arrivals(rate, seconds, seed + number), load.texts, load.ask, most=most)
        for number in range(repeats)
    ]
    return {
        "rate": round(rate, 3),
        "sustained": all(served.sustained for served in passes),
        "questions": [len(served.latency_ms) for served in passes],
        "latency_ms": shared.percentiles([served.latency_ms for served in passes]),
        "queueing_ms": shared.percentiles([served.queueing_ms for served in passes]),
        "questions_a_batch": spread([_mean_batch(served) for served in passes]),
        "drain_s": spread([served.drain_s for served in passes]),
    }


def _mean_batch(served: Served) -> float:
    return sum(served.batches) / len(served.batches)


def show(result: Mapping[str, Any], console: Console) -> None:
    """The figures as tables."""
    if "closed_loop" not in result:
        console.print("[red]A check failed: nothing was timed.[/red]")
        return
    console.print(f"encoder: {result['encoder']}")
    rows = [[size, found] for size, found in result["closed_loop"].items()]
    print_rows("closed loop", ["batch", "questions a second"], rows, console)
    rows = [
        [
            *(one["rate"], "yes" if one["sustained"] else "NO", *one["latency_ms"].values()),
            *(one["queueing_ms"]["p50"], one["questions_a_batch"]),
        ]
        for one in result["open_loop"]
    ]
    columns = ["questions a second", "sustained", "p50", "p95", "p99", "queueing p50", "questions a batch"]
    print_rows(f"open loop, at most {result['most_at_once']} at once; ms", columns, rows, console)


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Latency against the rate of arrival as SVG; rates that were not sustained are marked by crosses."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    points = result["open_loop"]
    rates = [point["rate"] for point in points]
    for name in ("p50", "p95", "p99"):
        axes.plot(rates, [point["latency_ms"][name]["median"] for point in points], marker="o", label=name)
    lost = [point for point in points if not point["sustained"]]
    if lost:
        heights = [point["latency_ms"]["p99"]["median"] for point in lost]
        axes.plot([point["rate"] for point in lost], heights, "kx", markersize=10, label="not sustained")
    axes.axvline(result["capacity"], linestyle=":", color="grey", label="capacity, closed loop")
    axes.set(xlabel="questions a second, arriving at random", ylabel="ms from arrival to answer", yscale="log")
    axes.legend()
    figure.savefig(path, format="svg", metadata={"Date": None})
