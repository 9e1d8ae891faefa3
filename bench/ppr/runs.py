"""All measurements of one graph, each in a process of its own with the same number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from bench.ppr.model import shares, step_bytes
from bench.ppr.problem import DAMPING, TOLERANCE
from bench.ppr.solvers import Solver
from bench.report import machine

ROOT = Path(__file__).resolve().parents[2]
THREAD_LIMITS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PEERS = ("igraph", "torch", "scikit-network")
STEP_BATCHES = (32, 64)


class Run(NamedTuple):
    """How everything is measured."""

    threads: int
    repeats: int
    budget_s: float


def available_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def measure_graph(run: Run, folder: Path, solvers: Sequence[Solver]) -> dict[str, Any]:
    """The graph's entry of the result: what it is, the roofs, a row a solver, and a row a step."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {"graph": about, "machine": {**machine(), "peers": _peer_versions()}, **run._asdict()}
    found |= {"damping": DAMPING, "tolerance": TOLERANCE, "roof": _roof(run, folder)}
    diffused = any(solver.name.startswith("cpu-diffused") for solver in solvers)
    if diffused:
        found["diffusion"] = _worker(run, folder, "diffuse")
    found["solvers"] = [_solver_row(run, folder, solver, found) for solver in solvers]
    found["steps"] = [
        _with_shares(row, found, batch=batch, steps=1, value_bytes=4)
        for batch in STEP_BATCHES
        for row in _worker(run, folder, f"steps:{batch}")
    ]
    if diffused:
        found["certificates"] = _worker(run, folder, "certificates")
    found["passed"] = all(row.get("passed", True) for row in [*found["solvers"], *found["steps"]])
    return found


def _solver_row(run: Run, folder: Path, solver: Solver, found: Mapping[str, Any]) -> dict[str, Any]:
    row = {
        "name": solver.name,
        "batch": solver.batch,
        "peer": solver.peer,
        "limit": solver.limit,
        "steps": solver.steps,
    }
    if solver.absent():
        return {**row, "absent": True}
    if solver.most_nonzeros is not None and found["graph"]["nonzeros"] > solver.most_nonzeros:
        return {**row, "too_large": True}
    try:
        row |= _worker(run, folder, solver.name)
    except WorkerError as error:
        return {**row, "passed": False, "failed": str(error)}
    if solver.steps is None:
        return row
    return _with_shares(row, found, batch=solver.batch, steps=solver.steps, value_bytes=solver.value_bytes)


def _with_shares(
    row: dict[str, Any], found: Mapping[str, Any], *, batch: int, steps: int, value_bytes: int
) -> dict[str, Any]:
    """The row with the bytes of the model, and rates and shares of the roofs where it has a time."""
    graph, roof = found["graph"], found["roof"]
    moved = step_bytes(
        graph["nonzeros"], graph["nodes"], batch, weight_bytes=value_bytes, value_bytes=value_bytes
    )  # fmt: skip
    row |= {"bytes_lower": steps * moved.lower, "bytes_upper": steps * moved.upper}
    if "ms" in row:
        # A solver's time is a question's, a step's that of the whole batch.
        calls = 1 if "error" in row else batch
        seconds = row["ms"]["median"] * calls / 1000
        gather = roof["gather_gbs"].get(str(batch))
        row |= shares(
            moved, steps, seconds, copy_gbs=roof["copy_gbs"]["median"], gather_gbs=gather and gather["median"]
        )._asdict()
    return row


def _roof(run: Run, folder: Path) -> Any:
    return _worker(run, folder, "roof")


class WorkerError(Exception):
    """A measurement's process ended badly; the message has its exit status and its last words."""


def _worker(run: Run, folder: Path, task: str) -> Any:
    command = [sys.executable, "-m", "bench.ppr.worker", str(folder.resolve()), task]
    command += ["--repeats", str(run.repeats), "--budget-s", str(run.budget_s)]
    limits = dict.fromkeys(THREAD_LIMITS, str(run.threads))
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **limits}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise WorkerError(f"exit {done.returncode}: {last[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def _peer_versions() -> dict[str, str | None]:
    """Versions of the peers' packages; None where one is not installed."""
    found: dict[str, str | None] = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
