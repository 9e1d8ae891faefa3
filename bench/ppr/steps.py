"""One batched step alone: ours, SciPy's product with its update, torch's; each checked against SciPy's in float64."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from bench.measure import Spread, spread
from bench.peers import scipy_power, torch_csr
from bench.ppr.problem import DAMPING, Problem, batch_of
from hippogpu.backends.cpu_step import aligned_zeros, equal_parts, padded_width, step
from hippogpu.backends.reference import row_sums
from hippogpu.types import AnyFloats, Csr, Floats

# Of the largest mass in the step's result: a row sums some ten to ten thousand products in float32.
STEP_TOLERANCE = 1e-5


class Step(NamedTuple):
    """A step that can be repeated: `work` does it, `result` is x = d·P·x₀ + (1 − d)·x₀ as (n, B)."""

    work: Callable[[], Any]
    result: Callable[[], AnyFloats]


def measure_steps(problem: Problem, batch: int, *, repeats: int, budget_s: float) -> list[dict[str, Any]]:
    """One row a step: its error, and its time where the error is within the tolerance."""
    x = np.ascontiguousarray(batch_of(problem, batch).seeds.T)
    doubles = scipy_power.prepare(problem.graph, damping=DAMPING, dtype=np.float64)
    few = x[:, :4].astype(np.float64)
    wanted = scipy_power.step(doubles, few, (1 - DAMPING) * few)
    del doubles
    makers = {"cpu-step": _ours, "scipy-csr": _scipy, "torch-csr": _torch}
    rows: list[dict[str, Any]] = []
    for name, make in makers.items():
        row: dict[str, Any] = {"name": name, "batch": batch}
        if name == "torch-csr" and find_spec("torch") is None:
            rows.append({**row, "absent": True})
            continue
        rows.append(row | _checked(make(problem.graph, x), wanted, repeats, budget_s))
    return rows


def _checked(made: Step, wanted: AnyFloats, repeats: int, budget_s: float) -> dict[str, Any]:
    made.work()
    error = float(np.abs(made.result()[:, : wanted.shape[1]] - wanted).max() / wanted.max())
    if not error <= STEP_TOLERANCE:
        return {"error": error, "passed": False}
    return {"error": error, "passed": True, "ms": _times(made.work, repeats, budget_s)}


def _times(work: Callable[[], Any], repeats: int, budget_s: float) -> Spread:
    times: list[float] = []
    while len(times) < repeats and (not times or sum(times) + times[-1] <= budget_s):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return spread([1000 * seconds for seconds in times])


def _ours(graph: Csr, x: Floats) -> Step:
    """The backend's own loop, called as the backend calls it: y = d·D⁻¹·x goes in, and x comes out where scale is 1."""
    degrees = row_sums(graph, graph.weights)
    scale = np.divide(DAMPING, degrees, out=np.zeros(graph.nodes), where=degrees > 0).astype(np.float32)
    shape = (graph.nodes, padded_width(x.shape[1], x.dtype), x.dtype)
    y, restart, out = aligned_zeros(*shape), aligned_zeros(*shape), aligned_zeros(*shape)
    y[:, : x.shape[1]], restart[:, : x.shape[1]] = x * scale[:, None], np.float32(1 - DAMPING) * x
    parts, ones = equal_parts(graph.indptr), np.ones(graph.nodes, np.float32)
    given = (graph.indptr, graph.indices, graph.weights, parts, y, restart, ones, np.float32(1), np.float32(0), out)
    return Step(lambda: step(*given), lambda: out[:, : x.shape[1]])


def _scipy(graph: Csr, x: Floats) -> Step:
    prepared, restart = scipy_power.prepare(graph, damping=DAMPING), np.float32(1 - DAMPING) * x
    return Step(
        lambda: scipy_power.step(prepared, x, restart),
        lambda: scipy_power.step(prepared, x, restart),
    )


def _torch(graph: Csr, x: Floats) -> Step:
    import torch

    prepared = torch_csr.prepare(graph, damping=DAMPING)
    columns = torch.from_numpy(x)
    restart = (1 - DAMPING) * columns
    return Step(
        lambda: torch_csr.step(prepared, columns, restart),
        lambda: torch_csr.step(prepared, columns, restart).numpy(),
    )
