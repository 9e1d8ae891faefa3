"""The page of the stored results: every figure from the JSON alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.quality.page import PAGE, page_blocks, write_page
from bench.quality.results import RESULTS, read_results
from bench.quality.tables import (
    agreement,
    better_signs,
    better_table,
    comparison_table,
    direction_table,
    figure,
    overview_table,
    percent,
)
from hippogpu.evaluate.pages import as_markdown

MEASURES = ("recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5", "mrr", "ndcg@10")
BETTER, TIE, WORSE = [0.1, 0.05, 0.2, 0.01, "better"], [0.0, -0.1, 0.1, 1.0, "tie"], [-0.1, -0.2, -0.05, 0.01, "worse"]


def row(value: float, against: dict[str, Any] | None = None, than: str | None = None) -> dict[str, Any]:
    return {
        **{"group": "", "settings": {"method": "dense"}, "than": than, "note": "", "command": ""},
        **{"values": dict.fromkeys(MEASURES, value), "intervals": {m: [value - 0.1, value + 0.1] for m in MEASURES}},
        **{"fallbacks": {}, "filter_failures": {}, "facts_kept": 0.0},
        "against": {name: dict.fromkeys(MEASURES, one) for name, one in (against or {}).items()},
    }


def one_set(**rows: dict[str, Any]) -> dict[str, Any]:
    return {
        **{"title": "A set", "use": "report", "level": "passage", "family": "musique", "note": "", "cases_set": False},
        **{"questions": 3, "gold_pairs": 5, "passages": 8, "k": 20, "records": {"by": "hand", "llm": False}},
        "index": {"counts": {"facts": 5}, "encoder": "hashing-64", "profile": "default"},
        "machine": {"cpu": "A CPU", "cores": 2, "load_before": 0.5},
        **{"order": list(rows), "rows": rows, "checks": [], "not_run": []},
    }


@pytest.fixture
def results() -> dict[str, Any]:
    rows = {
        "dense": row(0.5, {"bm25": BETTER, "hippo2": TIE}),
        "bm25": row(0.4, {"dense": WORSE, "hippo2": WORSE}),
        "hippo2": row(0.6, {"dense": TIE, "bm25": BETTER}),
        "hippo2, far": row(0.3, {"dense": WORSE, "bm25": TIE, "hippo2": WORSE}, "hippo2"),
    }
    directions = [
        {"claim": "go far", "row": "hippo2, far", "than": "hippo2", "values": {"musique": [74.7, 63.7]}},
        {"claim": "the graph", "row": "hippo2", "than": "dense", "values": {"musique": [69.7, 74.7]}},
        {"claim": "the graph", "row": "hippo2", "than": "bm25", "values": {"musique": [74.7, 43.5]}},
    ]
    return {"bench": "quality", "published": {"directions": directions}, "sets": {"tiny": one_set(**rows)}}


def test_a_figure_is_in_percent_with_its_interval(results: dict[str, Any]) -> None:
    assert figure(results["sets"]["tiny"]["rows"]["hippo2"], "recall@5") == "60.0 [50.0, 70.0]"


def test_the_overview_has_every_row_and_an_empty_cell_where_it_was_not_run(results: dict[str, Any]) -> None:
    results["sets"]["other"] = one_set(dense=row(0.2))
    table = overview_table(results["sets"], "recall@5")
    assert [cells[0] for cells in table.rows] == ["dense", "bm25", "hippo2", "hippo2, far"]
    assert table.rows[1][1:] == ["40.0 [30.0, 50.0]", ""]


def test_a_direction_is_confirmed_contradicted_or_undecided(results: dict[str, Any]) -> None:
    assert [cells[-1] for cells in direction_table(results).rows] == [
        "**confirmed**",
        "**undecided**",
        "**contradicted**",
    ]


@pytest.mark.parametrize(
    ("change", "ours", "told"),
    [
        *[(5.0, BETTER, "confirmed"), (-5.0, BETTER, "contradicted"), (-5.0, WORSE, "confirmed")],
        *[(5.0, TIE, "undecided"), (-0.6, TIE, "undecided"), (-0.6, WORSE, "differs")],
        (-0.6, [0.0, -0.02, 0.03, 1.0, "tie"], "confirmed as equal"),
        *[(74.7 - 73.7, BETTER, "confirmed"), (0.9, BETTER, "differs")],
    ],
)
def test_agreement_looks_at_the_sign_and_the_interval(change: float, ours: list[Any], told: str) -> None:
    assert agreement(change, ours) == told


def test_a_direction_of_another_family_is_marked_as_extrapolated(results: dict[str, Any]) -> None:
    results["published"]["directions"] = [
        {"claim": "go far", "row": "hippo2, far", "than": "hippo2", "values": {"any": [80.5, 79.9]}}
    ]
    cells = direction_table(results).rows[0]
    assert (cells[2], cells[-1]) == ("80.5 → 79.9 (-0.6, about equal)", "**differs**, extrapolated")


@pytest.mark.parametrize(("fraction", "shown"), [(0.2875, "28.8"), (0.28749, "28.7"), (0.7925, "79.3"), (1.0, "100.0")])
def test_half_a_digit_is_rounded_up(fraction: float, shown: str) -> None:
    assert percent(fraction) == shown


def test_half_a_digit_of_a_loss_is_rounded_away_from_nought() -> None:
    assert percent(-0.0125, sign="+") == "-1.3"


def test_the_page_says_which_sets_were_not_timed(results: dict[str, Any]) -> None:
    results["sets"]["other"] = one_set(dense=row(0.2))
    assert "No speed was measured on `tiny`, `other`." in as_markdown(page_blocks(results, picture="q.svg"))
    speed = {"median": 5.0, "least": 4.0, "greatest": 6.0}
    results["sets"]["tiny"]["rows"]["dense"]["queries_per_s"] = speed
    assert "No speed was measured on `other`." in as_markdown(page_blocks(results, picture="q.svg"))


def test_the_better_baseline_is_chosen_at_each_cut_off(results: dict[str, Any]) -> None:
    found = results["sets"]["tiny"]
    found["rows"]["bm25"]["values"]["recall@1"] = 0.9
    assert better_signs(found, found["rows"]["hippo2, far"]) == "· − − − −"


def test_the_signs_of_all_sets_leave_out_the_baselines_themselves(results: dict[str, Any]) -> None:
    assert list(better_table(results["sets"]).rows) == [
        ["hippo2", "· · · · ·"],
        ["hippo2, far", "− − − − −"],
    ]


def test_a_row_is_compared_with_the_one_it_changes(results: dict[str, Any]) -> None:
    last = comparison_table(results["sets"]["tiny"]).rows[-1]
    assert last[-1] == "-10.0 [-20.0, -5.0] worse to hippo2"


def test_the_page_says_what_the_data_lacks_and_what_was_tuned_on(results: dict[str, Any]) -> None:
    text = as_markdown(page_blocks(results, picture="quality.svg"))
    assert all(word in text for word in ("no simple questions (NQ, PopQA)", "**report**", "passage level", "hand"))


def test_a_failed_check_is_told_on_the_page(results: dict[str, Any]) -> None:
    results["sets"]["tiny"]["checks"] = [{"name": "recall@5, dense", "found": 1, "wanted": 2, "passed": False}]
    assert "**Checks that failed: recall@5, dense.**" in as_markdown(page_blocks(results, picture="q.svg"))


def test_the_page_its_plot_and_the_html_are_the_same_for_the_same_results(
    results: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_page(results, page=tmp_path / name / "quality.md", html=tmp_path / name / "q.html")
        texts.append([(tmp_path / name / file).read_text() for file in ("quality.md", "quality.svg", "q.html")])
    assert texts[0] == texts[1]
    assert "<svg" in texts[0][2]


def test_the_page_of_the_repository_is_that_of_the_stored_results() -> None:
    results = read_results(RESULTS)
    assert PAGE.read_text(encoding="utf-8") == as_markdown(page_blocks(results, picture="quality.svg"))


def test_every_check_of_the_stored_results_passed() -> None:
    sets = read_results(RESULTS)["sets"]
    assert [check["name"] for found in sets.values() for check in found["checks"] if not check["passed"]] == []
