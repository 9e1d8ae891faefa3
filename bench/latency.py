"""How long a request takes, by batch size and by stage: python -m bench latency INDEX --queries FILE."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
from rich.console import Console

from bench import load as shared
from bench.checks import all_passed
from bench.load import Load, Request
from bench.measure import spread
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.config import SearchConfig


def latency(
    index: shared.Index,
    queries: shared.Questions,
    batch: shared.Sizes = None,
    k: shared.Hits = 20,
    method: shared.Method = "hippo2",
    solver: shared.Solver = "auto",
    backend: shared.Backend = "auto",
    no_encoder: shared.NoEncoder = False,
    seconds: shared.Seconds = 5.0,
    repeats: shared.Repeats = 3,
    json: shared.Json = None,
) -> None:
    """Time requests of several sizes, one after another.

    Exit 1 when batches and single calls differ: then nothing is timed.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    sizes = batch or list(shared.SIZES)
    config = SearchConfig(method=method, solver=solver)
    load = shared.open_load(index, queries, config, sizes, k=k, backend=backend, encode=not no_encoder)
    result: dict[str, Any] = {"bench": "latency", "machine": machine(), **shared.described(load)}
    checks = shared.check_batches(load, sizes)
    result |= {"passed": all_passed(checks), "checks": [check._asdict() for check in checks]}
    if result["passed"]:
        result["batches"] = {str(size): measured(load, size, seconds=seconds, repeats=repeats) for size in sizes}
    print_checks(checks, console)
    show(result, console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def measured(load: Load, size: int, *, seconds: float, repeats: int) -> dict[str, Any]:
    """Milliseconds of requests of one size; each figure is the spread of its value over the passes."""
    passes = [shared.closed_loop(load, size, seconds=seconds) for _ in range(repeats)]
    times = [[request.ms for request in requests] for requests in passes]
    return {
        "requests": [len(requests) for requests in passes],
        "ms_a_request": shared.percentiles(times),
        "ms_a_question": shared.percentiles([[ms / size for ms in one] for one in times]),
        "stages_ms_a_question": stages(passes),
        "questions_a_second": shared.questions_a_second(passes),
    }


def stages(passes: Sequence[Sequence[Request]]) -> dict[str, Any]:
    """The median milliseconds of each stage a question, as the spread over the passes; 0 where a request has it not."""
    names = dict.fromkeys(stage for requests in passes for request in requests for stage in request.stages)
    return {
        name: spread([float(np.median([r.stages.get(name, 0.0) / r.size for r in requests])) for requests in passes])
        for name in names
    }


def show(result: Mapping[str, Any], console: Console) -> None:
    """The figures as tables."""
    if "batches" not in result:
        console.print("[red]A check failed: nothing was timed.[/red]")
        return
    console.print(f"encoder: {result['encoder']}")
    for unit in ("request", "question"):
        rows = [[size, *found[f"ms_a_{unit}"].values()] for size, found in result["batches"].items()]
        print_rows(f"ms a {unit}; median of the passes (least–greatest)", ["batch", "p50", "p95", "p99"], rows, console)
    names = list(dict.fromkeys(name for found in result["batches"].values() for name in found["stages_ms_a_question"]))
    rows = [
        [size, *(found["stages_ms_a_question"].get(name) for name in names), found["questions_a_second"]]
        for size, found in result["batches"].items()
    ]
    print_rows("ms a question by stage", ["batch", *names, "questions a second"], rows, console)
