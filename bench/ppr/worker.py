"""One measurement in a process of its own: python -m bench.ppr.worker FOLDER TASK; prints one JSON line.

A process of its own has its own peak of memory, its own threads, and no pages of another solver.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.ppr.measuring import measure_solver
from bench.ppr.problem import open_problem
from bench.ppr.solvers import solver_named

ROOF_BATCHES = (1, 32, 64)


def measure(folder: Path, task: str, *, repeats: int, budget_s: float) -> Any:
    """The task's figures: 'roof', 'diffuse', 'certificates', 'steps' with a batch after a colon, or a solver."""
    problem = open_problem(folder)
    # Compiled code is imported by the tasks that use it alone, so that it is in no other solver's memory.
    if task == "roof":
        from bench.ppr.roof import copy_roof, gather_roof

        gathers = {str(batch): gather_roof(problem.graph.nodes, batch) for batch in ROOF_BATCHES}
        return {"copy_gbs": copy_roof(), "gather_gbs": gathers}
    if task.startswith("steps:"):
        from bench.ppr.steps import measure_steps

        return measure_steps(problem, int(task.removeprefix("steps:")), repeats=repeats, budget_s=budget_s)
    if task == "diffuse":
        from bench.ppr.diffused import make_diffused

        return make_diffused(problem)
    if task == "certificates":
        from bench.ppr.certificates import measure_certificates

        return measure_certificates(problem, repeats=repeats)
    return measure_solver(solver_named(task), problem, repeats=repeats, budget_s=budget_s)


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.ppr.worker")
    parser.add_argument("folder", type=Path)
    parser.add_argument("task")
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--budget-s", type=float, required=True)
    given = parser.parse_args()
    print(json.dumps(measure(given.folder, given.task, repeats=given.repeats, budget_s=given.budget_s)))


if __name__ == "__main__":
    main()
