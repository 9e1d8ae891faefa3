"""Every solver of the PPR bench is checked before it is timed, and its bytes are counted as the page says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer

from bench.__main__ import app
from bench.peers import scipy_power
from bench.ppr.command import chosen_solvers
from bench.ppr.errors import mass_errors
from bench.ppr.measuring import measure_solver, tiny_problem
from bench.ppr.memory import forget_peak, peak_bytes, resident_bytes
from bench.ppr.model import shares, step_bytes
from bench.ppr.problem import DAMPING, Problem, batch_of, make_from_index, make_synthetic, open_problem, rows_of
from bench.ppr.results import read_results
from bench.ppr.roof import copy_roof, gather_all, gather_roof
from bench.ppr.runs import Run, measure_graph
from bench.ppr.solvers import SOLVERS, Solver, solver_named
from bench.ppr.steps import measure_steps
from hippogpu.backends import load_backend, power_steps
from hippogpu.testing.cli import run_verb


@pytest.fixture(scope="module")
def problem() -> Iterator[Problem]:
    with tiny_problem() as problem:
        yield problem


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny graph that is measured without the roofs and the steps, which take long: they have tests of their own."""
    roof = {"copy_gbs": {"median": 1.0}, "gather_gbs": {"32": {"median": 1.0}}}
    monkeypatch.setattr("bench.ppr.runs._roof", lambda run, folder: roof)
    monkeypatch.setattr("bench.ppr.runs.STEP_BATCHES", ())
    make_synthetic(tmp_path, 30, width=8)
    return tmp_path


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_every_solver_comes_within_the_error_of_its_kind(solver: Solver, problem: Problem) -> None:
    if solver.requires is not None:
        pytest.importorskip(solver.requires)
    answer = solver.run(solver.prepare(problem), rows_of(batch_of(problem, 64), 0, solver.batch))
    if not solver.name.startswith("cpu-diffused"):
        assert answer.shape == (solver.batch, problem.graph.nodes)
    # On a tiny graph the races between diteration's threads know no bound.
    limit = 2.0 if solver.name == "scikit-network-diteration" else solver.limit
    assert 0 < solver.errors(answer, problem.exact).l1 <= limit


def test_the_exact_masses_are_those_of_the_reference_backend(problem: Problem) -> None:
    backend = load_backend("reference")
    seeds = batch_of(problem, len(problem.exact)).seeds.astype(np.float64)
    seeds /= seeds.sum(axis=1, keepdims=True)
    masses = backend.solve(
        backend.put_graph(problem.graph), seeds, damping=DAMPING, steps=power_steps(DAMPING, 1e-14)
    )  # fmt: skip
    assert np.abs(masses - problem.exact).sum(axis=1).max() < 2e-12


def test_the_tiny_problem_holds_the_case_of_nodes_without_edges(tmp_path: Path) -> None:
    make_synthetic(tmp_path, 1000, width=8)
    found = open_problem(tmp_path)
    assert found.about["isolated"] > 0
    answer = solver_named("scipy-power-32")
    masses = answer.run(answer.prepare(found), rows_of(batch_of(found, 32), 0, 32))
    assert mass_errors(masses, found.exact).l1 < answer.limit


def test_a_solver_beyond_its_error_is_shown_with_it_and_not_timed(problem: Problem) -> None:
    wrong = solver_named("scipy-power-32")._replace(limit=0.0)
    row = measure_solver(wrong, problem, repeats=2, budget_s=10)
    assert (row["passed"], "ms" in row) == (False, False)
    assert row["l1_error"] > 0


def test_an_answer_that_is_no_number_is_not_timed(problem: Problem) -> None:
    broken = solver_named("scipy-power-32")._replace(run=lambda prepared, batch: np.full_like(batch.seeds, np.nan))
    assert not measure_solver(broken, problem, repeats=1, budget_s=10)["passed"]


def test_a_spent_budget_leaves_the_time_of_the_first_call(problem: Problem) -> None:
    row = measure_solver(solver_named("scipy-power-32"), problem, repeats=5, budget_s=0)
    assert (row["first_call_only"], row["ms"]["repeats"]) == (True, 1)
    row = measure_solver(solver_named("scipy-power-32"), problem, repeats=5, budget_s=10)
    assert (row["first_call_only"], row["ms"]["repeats"]) == (False, 5)


@pytest.mark.parametrize("batch", [1, 32])
def test_every_step_is_checked_and_timed(problem: Problem, batch: int) -> None:
    rows = measure_steps(problem, batch, repeats=2, budget_s=1)
    assert [row["name"] for row in rows] == ["cpu-step", "scipy-csr", "torch-csr"]
    assert all(row.get("absent") or (row["passed"] and row["ms"]["repeats"] == 2) for row in rows)


def test_the_bytes_of_a_step_are_counted_as_by_hand() -> None:
    # Three nodes in a path: 4 non-zeros. Two questions: x holds 6 floats.
    moved = step_bytes(4, 3, 2)
    assert moved.lower == 4 * 8 + 24 + 48
    assert moved.upper == 4 * 8 + 4 * 8 + 48
    assert moved.gathered == 4 * 8
    assert step_bytes(4, 3, 2, weight_bytes=8, value_bytes=8) == (4 * 12 + 48 + 96, 4 * 12 + 64 + 96, 64)


def test_shares_are_of_the_measured_roofs() -> None:
    found = shares(step_bytes(4, 3, 2), 10, 1e-6, copy_gbs=2.08, gather_gbs=0.64)
    assert found == pytest.approx((1.04, 1.12, 50.0, 50.0))
    assert shares(step_bytes(4, 3, 2), 10, 1e-6, copy_gbs=2.08, gather_gbs=None).gather_percent is None


def test_the_gather_reads_the_rows_of_its_numbers() -> None:
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    numbers, sums = np.tile(np.array([0, 4], np.int32), 64), np.full((2, 2), 7, np.float32)
    gather_all(table, numbers, sums)
    assert sums.tolist() == [[32 * 8, 32 * 10]] * 2


def test_roofs_are_rates_above_zero() -> None:
    assert copy_roof(size_bytes=1 << 20, repeats=2)["least"] > 0
    assert gather_roof(100, 32, size_bytes=1 << 20, repeats=2)["least"] > 0


def test_the_peak_of_memory_can_be_forgotten_and_rises_again() -> None:
    np.ones(64 * 2**20, np.uint8)
    forget_peak()
    before = peak_bytes()
    assert before - resident_bytes() < 16 * 2**20
    np.ones(64 * 2**20, np.uint8)
    assert peak_bytes() - before > 48 * 2**20


def test_a_solver_is_measured_in_a_process_of_its_own(folder: Path) -> None:
    found = measure_graph(Run(1, 2, 1.0), folder, [solver_named("scipy-power-32")])
    (row,) = found["solvers"]
    assert found["passed"]
    assert row["lower_gbs"] == pytest.approx(row["bytes_lower"] / (row["ms"]["median"] * 32 / 1000) / 1e9)
    assert json.dumps(found)


def test_a_process_that_fails_is_a_failed_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.ppr.runs.sys.executable", "/bin/false")
    found = measure_graph(Run(1, 1, 1.0), folder, [solver_named("scipy-power-32")])
    assert not found["passed"]
    assert found["solvers"][0]["failed"] == "exit 1: no message"


def test_a_failed_check_is_written_and_ends_the_verb_with_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.ppr.runs.sys.executable", "/bin/false")
    given = ("ppr", "--passages", "30", "--width", "8", "--solver", "scipy-power-32", "--json")
    ran = run_verb(app, *given, str(folder / "ppr.json"))
    assert ran.code == 1
    assert not read_results(folder / "ppr.json")["graphs"]["30"]["passed"]


def test_a_verb_without_a_graph_is_a_wrong_usage() -> None:
    assert run_verb(app, "ppr").code == 2


def test_what_is_not_installed_or_too_large_is_said(folder: Path) -> None:
    one = solver_named("scipy-power-32")
    given = [one._replace(requires="no_such_package"), one._replace(most_nonzeros=10)]
    found = measure_graph(Run(1, 1, 1.0), folder, given)
    assert (found["solvers"][0]["absent"], found["solvers"][1]["too_large"], found["passed"]) == (True, True, True)


def test_a_made_graph_is_found_again_and_another_replaces_it(tmp_path: Path) -> None:
    make_synthetic(tmp_path, 30, width=8)
    written = (tmp_path / "graph-indices.npy").stat().st_mtime_ns
    make_synthetic(tmp_path, 30, width=8)
    assert (tmp_path / "graph-indices.npy").stat().st_mtime_ns == written
    make_synthetic(tmp_path, 40, width=8)
    assert open_problem(tmp_path).passages == 40


def test_the_graph_of_an_index_is_taken_with_its_vectors(made: Path, tmp_path: Path) -> None:
    make_from_index(tmp_path / "graph", made)
    found = open_problem(tmp_path / "graph")
    assert found.passages == len(found.vectors) == found.questions.scores.shape[1]
    assert found.exact.sum(axis=1) == pytest.approx(1.0)


def test_solvers_are_chosen_by_name() -> None:
    assert [solver.name for solver in chosen_solvers(["cpu-power-1", "cpu-power-32"], ["cpu-power-1"])] == [
        "cpu-power-32"
    ]
    with pytest.raises(typer.BadParameter, match="No solver is called 'prpack'"):
        chosen_solvers(["cpu-power-1"], ["prpack"])


def test_peers_get_numbers_of_32_bits(problem: Problem) -> None:
    matrix = scipy_power.prepare(problem.graph, damping=DAMPING).matrix
    assert (matrix.indices.dtype, matrix.indptr.dtype, matrix.dtype) == (np.int32, np.int32, np.float32)


def test_a_step_beyond_the_tolerance_is_not_timed(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.ppr.steps.STEP_TOLERANCE", 0.0)
    rows = [row for row in measure_steps(problem, 32, repeats=1, budget_s=1) if "absent" not in row]
    assert [(row["passed"], "ms" in row) for row in rows] == [(False, False)] * len(rows)
