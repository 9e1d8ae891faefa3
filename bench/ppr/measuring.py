"""One solver over one problem: checked first, then timed, with the memory it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.measure import spread
from bench.ppr.errors import Errors
from bench.ppr.memory import forget_peak, peak_bytes, resident_bytes
from bench.ppr.problem import Batch, Problem, batch_of, make_synthetic, open_problem, rows_of
from bench.ppr.solvers import Solver

MIB = 2**20


def measure_solver(solver: Solver, problem: Problem, *, repeats: int, budget_s: float) -> dict[str, Any]:
    """What the solver's row holds: errors, whether they are of its kind, and, if so, times and memory.

    The first call is compared with the exact masses. Its time counts only when it alone spends the budget; otherwise
    calls follow until there are `repeats` of them or the next would exceed the budget, one at least. One question at a
    time takes the next question with each call. Memory is what the process took above what it held with the questions
    read: the graph in the solver's own form, what it works with, and the answer.
    """
    with tiny_problem() as tiny:
        solver.run(solver.prepare(tiny), rows_of(batch_of(tiny, solver.batch), 0, solver.batch))
    batch = batch_of(problem, max(solver.batch, len(problem.exact)))
    before = resident_bytes()
    forget_peak()
    start = time.perf_counter()
    prepared = solver.prepare(problem)
    prepare_s, preparing = time.perf_counter() - start, peak_bytes()
    forget_peak()
    errors, first_s = _first_call(solver, prepared, batch, problem)
    row: dict[str, Any] = {"prepare_s": round(prepare_s, 4), "largest_error": errors.largest, "l1_error": errors.l1}
    row["passed"] = bool(errors.l1 <= solver.limit)
    if row["passed"]:
        later = _later_calls(solver, prepared, batch, repeats, budget_s - first_s) if first_s < budget_s else []
        row["ms"] = spread([1000 * seconds / solver.batch for seconds in later or [first_s]])
        row["first_call_only"] = not later
        row["peak_mib"] = round((peak_bytes() - before) / MIB, 1)
        row["prepare_peak_mib"] = round((preparing - before) / MIB, 1)
    return row


def _first_call(solver: Solver, prepared: Any, batch: Batch, problem: Problem) -> tuple[Errors, float]:
    here = rows_of(batch, 0, solver.batch)
    start = time.perf_counter()
    answer = solver.run(prepared, here)
    seconds = time.perf_counter() - start
    return solver.errors(answer, problem.exact), seconds


def _later_calls(solver: Solver, prepared: Any, batch: Batch, repeats: int, budget_s: float) -> list[float]:
    times: list[float] = []
    while len(times) < repeats and (not times or sum(times) + times[-1] <= budget_s):
        here = rows_of(batch, len(times) % len(batch.seeds) if solver.batch == 1 else 0, solver.batch)
        start = time.perf_counter()
        solver.run(prepared, here)
        times.append(time.perf_counter() - start)
    return times


@contextmanager
def tiny_problem() -> Iterator[Problem]:
    """A few nodes to import and compile with, mapped from files as the real ones are."""
    with TemporaryDirectory() as folder:
        make_synthetic(Path(folder), 30, width=8)
        yield open_problem(Path(folder))
