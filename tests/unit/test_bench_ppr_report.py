"""Results of the PPR bench are merged by graph, and page and plot follow from them alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.ppr.page import PAGE, with_tables
from bench.ppr.plot import write_plot
from bench.ppr.results import RESULTS, costs, merged, read_results, slope
from bench.ppr.tables import slope_columns, slope_rows, solver_rows, step_rows
from bench.report import write_json

MARKED = "before\n<!-- ppr tables -->\nold\n<!-- /ppr tables -->\nafter\n"


def times(median: float) -> dict[str, float]:
    return {"median": median, "least": median, "greatest": 2 * median, "repeats": 3}


def solver(name: str, *, peer: bool, **measured: Any) -> dict[str, Any]:
    return {"name": name, "batch": 32, "peer": peer, "limit": 2e-6, "steps": 21, **measured}


def entry(passages: int, ms: float, *, kind: str = "synthetic") -> dict[str, Any]:
    """What the bench stores of one graph, the figures made up."""
    rated = {"bytes_lower": 10**9, "bytes_upper": 2 * 10**9, "lower_gbs": 1.0, "upper_gbs": 2.0}
    rated |= {"copy_percent": 12.4, "gather_percent": 130.0, "passed": True}
    errors = {"largest_error": 1e-9, "l1_error": 1e-7, "prepare_s": 0.5, "peak_mib": 3.25}
    ours = solver("cpu-power-32", peer=False, ms=times(ms), first_call_only=False, **rated, **errors)
    slow = solver("scipy-power-32", peer=True, ms=times(4 * ms), first_call_only=True, **rated, **errors)
    wrong = solver("scikit-network-rh", peer=True, passed=False, largest_error=0.04, l1_error=0.3, prepare_s=0.1)
    absent = solver("torch-csr-32", peer=True, absent=True)
    step = {"name": "cpu-step", "batch": 32, "error": 1e-7, "ms": times(1.0), **rated}
    return {
        "graph": {
            "made_from": {"kind": kind}, "passages": passages, "phrases": 9, "nonzeros": 24, "nodes": 12, "isolated": 1,
        },
        "machine": {"cpu": "a processor", "date": "2026-11-30", "load_before": 0.1},
        "threads": 1,
        "roof": {"copy_gbs": times(20.0), "gather_gbs": {"32": times(10.0)}},
        "solvers": [ours, slow, wrong, absent],
        "steps": [step, {**step, "name": "scipy-csr", "ms": times(2.5)}],
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    found = merged(read_results(Path("no such file")), "10000", entry(10000, 40.0))
    found = merged(found, "wiki.hippo", entry(300, 1.0, kind="index"))
    return merged(found, "1000", entry(1000, 2.0))


def test_graphs_stand_by_size_and_indexes_after_them(results: Mapping[str, Any]) -> None:
    assert list(results["graphs"]) == ["1000", "10000", "wiki.hippo"]


def test_a_graph_that_is_run_again_replaces_its_entry_alone(results: Mapping[str, Any], tmp_path: Path) -> None:
    write_json(tmp_path / "ppr.json", results)
    again = merged(read_results(tmp_path / "ppr.json"), "1000", entry(1000, 7.0))
    assert costs(again)["cpu-power-32"] == {1000: 7.0, 10000: 40.0}


def test_the_exponent_is_that_of_the_law() -> None:
    assert slope({1000: 2.0, 10000: 40.0, 100000: 800.0}) == pytest.approx(1.30103, abs=1e-5)
    assert slope({1000: 2.0}) is None


def test_growth_has_a_column_a_size_and_leaves_indexes_out(results: Mapping[str, Any]) -> None:
    assert slope_columns(results) == ["ms a question", "1,000", "10,000", "exponent"]
    assert slope_rows(results)[0] == ["cpu-power-32", "2", "40", "1.3"]


def test_a_row_has_its_figures(results: Mapping[str, Any]) -> None:
    row = solver_rows(results["graphs"]["1000"])[0]
    assert row[:7] == ["cpu-power-32", "32", "2 (2–4)", "0.5", "3.25", "1–2", "1–2"]
    assert row[7:] == ["12", "130", "1.0e-09", "1.0e-07"]


def test_what_was_not_timed_says_why_and_shows_its_error(results: Mapping[str, Any]) -> None:
    _, slow, wrong, absent = solver_rows(results["graphs"]["1000"])
    assert slow[2] == "8 (8–16) one call"
    assert (wrong[2], wrong[-1]) == ("error beyond its kind: not timed", "3.0e-01")
    assert absent[2] == "not installed"


def test_a_step_is_compared_with_ours_of_the_same_batch(results: Mapping[str, Any]) -> None:
    assert [row[6] for row in step_rows(results["graphs"]["1000"])] == ["1.00×", "2.50×"]


def test_the_tables_stand_between_the_marks_and_replace_what_stood_there(results: Mapping[str, Any]) -> None:
    page = with_tables(MARKED, results)
    assert page.startswith("before\n<!-- ppr tables -->\n")
    assert page.endswith("<!-- /ppr tables -->\nafter\n")
    assert "old" not in page
    assert with_tables(page, results) == page
    assert page.index("### 1,000 passages") < page.index("### The index wiki.hippo")


def test_the_plot_is_the_same_bytes_from_the_same_result(results: Mapping[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        write_plot(results, tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert all(name in text for name in ("cpu-power-32", "scipy-power-32"))
    assert "scikit-network-rh" not in text


def test_the_page_is_that_of_the_stored_result() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, read_results(RESULTS)) == text


def test_the_stored_result_has_no_time_of_what_failed() -> None:
    rows = [row for found in read_results(RESULTS)["graphs"].values() for row in found["solvers"]]
    assert rows
    assert [row["name"] for row in rows if "ms" in row and not row["passed"]] == []
