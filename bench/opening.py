"""How long an index takes to open, to answer first and to be checked: python -m bench opening FOLDER..."""

from __future__ import annotations

import json as json_text
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.checks import all_passed, equal
from bench.measure import spread
from bench.opening_step import STEPS
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.store import current_manifest
from hippogpu.store import verify as problems_of


def opening(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Indexes whose encoder can be had.")],
    fresh: Annotated[int, typer.Option("--fresh", min=1, help="Processes a step.")] = 5,
    warm: Annotated[int, typer.Option("--warm", min=1, help="Further times in each process.")] = 5,
    json: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the result here.")] = None,
) -> None:
    """Time opening, first questions, info, verify and refresh, in fresh processes and warm; files lie in memory.

    Exit 1 when an index does not pass the full check: then nothing is timed.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    result: dict[str, Any] = {"bench": "opening", "machine": machine()}
    checks = [
        equal(f"{folder.name}: problems of verify --full", len(problems_of(folder, full=True)), 0) for folder in folders
    ]
    result |= {"passed": all_passed(checks), "checks": [check._asdict() for check in checks]}
    if result["passed"]:
        result["indexes"] = {folder.name: measured(folder, fresh=fresh, warm=warm) for folder in folders}
    print_checks(checks, console)
    show(result, console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def measured(folder: Path, *, fresh: int, warm: int) -> dict[str, Any]:
    """Seconds of each step in a fresh process and further on, peak memory, and what the index holds."""
    manifest = current_manifest(folder)
    found: dict[str, Any] = {
        "counts": dict(manifest.counts),
        "encoder": manifest.encoder.name,
        "bytes": sum(entry.bytes for entry in manifest.files.values()),
        "steps": {},
    }
    imports: list[float] = []
    for step in STEPS:
        runs = [_run(folder, step, 1 + warm) for _ in range(fresh)]
        imports += [times[0]["import"] for times in runs]
        for name in runs[0][0]["seconds"]:
            found["steps"][name] = {
                "fresh_s": spread([times[0]["seconds"][name] for times in runs]),
                "warm_s": spread([time["seconds"][name] for times in runs for time in times[1:]]),
                "peak_mib": spread([times[0]["peak"] / 2**20 for times in runs]),
            }
    return found | {"import_s": spread(imports)}


def _run(folder: Path, step: str, times: int) -> list[dict[str, Any]]:
    """What one process found."""
    words = [sys.executable, "-m", "bench.opening_step", str(folder), step, str(times)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if ran.returncode:
        raise typer.BadParameter(f"'{folder.name}' cannot be measured: {ran.stderr.strip().splitlines()[-1]}")
    found: list[dict[str, Any]] = json_text.loads(ran.stdout)
    return found


def show(result: Mapping[str, Any], console: Console) -> None:
    """The figures as tables, one an index."""
    if "indexes" not in result:
        console.print("[red]A check failed: nothing was timed.[/red]")
        return
    for name, found in result["indexes"].items():
        rows: list[Sequence[Any]] = [
            [step, _ms(times["fresh_s"]), _ms(times["warm_s"]), times["peak_mib"]]
            for step, times in found["steps"].items()
        ]
        title = f"{name}: {found['counts']['passages']:,} passages, {found['bytes'] / 2**20:,.0f} MiB; ms"
        print_rows(title, ["step", "fresh process", "warm", "peak MiB"], rows, console)
        console.print(f"importing takes {_ms(found['import_s'])['median']:,.0f} ms more in a fresh process")


def _ms(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: value if name == "repeats" else value * 1000 for name, value in seconds.items()}
