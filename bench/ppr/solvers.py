"""The solvers that are measured, ours and others', each a small value. A further one is a further line in the list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from bench.peers import igraph_prpack, scikit_network, scipy_power, torch_csr
from bench.ppr import diffused
from bench.ppr.errors import Errors, mass_errors
from bench.ppr.problem import DAMPING, TOLERANCE, Batch, Problem
from hippogpu.backends import Backend, load_backend, power_steps, steps_for
from hippogpu.config import BackendName, LinearSolver
from hippogpu.types import AnyFloats

POWER_STEPS = power_steps(DAMPING, TOLERANCE)

# L1 errors of a row of mass. Float32 adds about 1e-6 of its own to the 1e-6 that the steps leave; doubles add nothing
# that shows. PRPACK stops at its own 1e-10; diteration holds its fluid in float32, and on several threads they race.
SINGLE, DOUBLE, PRPACK, DITERATION = 2 * TOLERANCE, TOLERANCE, 1e-9, 2e-2


class Solver(NamedTuple):
    """How one solver is called.

    prepare  what is done once for a graph; reported, not part of a question's time
    run      the prepared thing and a batch → an answer that `errors` can compare with exact masses
    batch    questions in one call
    limit    the greatest L1 error of its kind; beyond it nothing is timed
    steps    of the model of bytes; None where the model does not fit
    peer     whether it is another program
    requires the package that has to be installed
    most_nonzeros  the greatest graph it is for
    """

    name: str
    batch: int
    prepare: Callable[[Problem], Any]
    run: Callable[[Any, Batch], Any]
    limit: float
    steps: int | None
    value_bytes: int = 4
    peer: bool = False
    requires: str | None = None
    most_nonzeros: int | None = None
    errors: Callable[[Any, AnyFloats], Errors] = mass_errors

    def absent(self) -> bool:
        """Whether the package it needs is not installed."""
        return self.requires is not None and find_spec(self.requires) is None


class Ours(NamedTuple):
    """A backend that holds the graph."""

    backend: Backend
    graph: Any


def prepare_ours(problem: Problem, *, backend: BackendName) -> Ours:
    """The graph on the backend."""
    loaded = load_backend(backend)
    return Ours(loaded, loaded.put_graph(problem.graph))


def run_ours(ours: Ours, batch: Batch, *, solver: LinearSolver, steps: int) -> AnyFloats:
    """Masses (B, n) of a batch, from NumPy to NumPy."""
    backend = ours.backend
    masses = backend.solve(ours.graph, backend.put(batch.seeds), damping=DAMPING, steps=steps, solver=solver)
    return backend.get(masses)


def _ours(backend: BackendName, solver: LinearSolver, batch: int) -> Solver:
    steps = steps_for(solver, DAMPING, TOLERANCE)
    run = partial(run_ours, solver=solver, steps=steps)
    prepare = partial(prepare_ours, backend=backend)
    name = f"{backend}-{solver}-{batch}"
    if backend == "reference":
        # It holds every gathered row at once: 8 bytes a non-zero and question.
        return Solver(name, batch, prepare, run, DOUBLE, steps, value_bytes=8, most_nonzeros=1_000_000)
    return Solver(name, batch, prepare, run, SINGLE, steps)


def _igraph() -> Solver:
    return Solver(
        "igraph-prpack", 1,
        lambda problem: igraph_prpack.prepare(problem.graph, damping=DAMPING),
        lambda prepared, batch: igraph_prpack.run(prepared, batch.seeds),
        PRPACK, None, value_bytes=8, peer=True, requires="igraph",
    )  # fmt: skip


def _scipy(batch: int) -> Solver:
    return Solver(
        f"scipy-power-{batch}", batch,
        lambda problem: scipy_power.prepare(problem.graph, damping=DAMPING),
        lambda prepared, batch: scipy_power.run(prepared, batch.seeds, steps=POWER_STEPS),
        SINGLE, POWER_STEPS, peer=True,
    )  # fmt: skip


def _torch(batch: int) -> Solver:
    return Solver(
        f"torch-csr-{batch}", batch,
        lambda problem: torch_csr.prepare(problem.graph, damping=DAMPING),
        lambda prepared, batch: torch_csr.run(prepared, batch.seeds, steps=POWER_STEPS),
        SINGLE, POWER_STEPS, peer=True, requires="torch",
    )  # fmt: skip


def _scikit_network(solver: Literal["RH", "diteration"], limit: float, steps: int | None) -> Solver:
    return Solver(
        f"scikit-network-{solver.lower()}", 1,
        lambda problem: scikit_network.prepare(problem.graph, damping=DAMPING, solver=solver, steps=POWER_STEPS),
        lambda prepared, batch: scikit_network.run(prepared, batch.seeds),
        limit, steps, value_bytes=8, peer=True, requires="sknetwork",
    )  # fmt: skip


def _diffused(batch: int) -> Solver:
    return Solver(
        f"cpu-diffused-{batch}", batch, diffused.prepare, diffused.run, diffused.LIMIT, None,
        errors=diffused.ranking_errors,
    )  # fmt: skip


SOLVERS: tuple[Solver, ...] = (
    *(_diffused(batch) for batch in (32, 1)),
    *(_ours("cpu", "power", batch) for batch in (32, 64, 1)),
    *(_ours("cpu", "chebyshev", batch) for batch in (32, 64, 1)),
    _ours("reference", "power", 32),
    _igraph(),
    _scipy(32),
    _torch(32),
    _scikit_network("RH", DOUBLE, POWER_STEPS),
    _scikit_network("diteration", DITERATION, None),
)


def solver_named(name: str) -> Solver:
    """The solver of the list with that name."""
    return {solver.name: solver for solver in SOLVERS}[name]
