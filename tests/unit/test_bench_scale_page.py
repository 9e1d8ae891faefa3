"""docs/scale.md: its generated parts are those of the stored results, and its tables say what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from bench.scale.cost_tables import cost_blocks, kill_blocks, question_table, stage_table
from bench.scale.page import COST, PAGE, QUALITY, plot, stored, with_tables
from bench.scale.quality_asking import GROUPS, MEASURES, METHODS
from bench.scale.quality_tables import (
    change_table,
    corpus_table,
    main_line,
    measures_table,
    recall_table,
    speed_table,
    summary,
    variant_table,
)
from hippogpu.evaluate.pages import as_markdown


def group(value: float, questions: int) -> dict[str, Any]:
    return {
        "questions": questions,
        "values": dict.fromkeys(MEASURES, value),
        "intervals": {name: [value - 0.1, value + 0.05] for name in MEASURES},
        "against_dense": {name: [0.1, 0.05, 0.2, "better"] for name in MEASURES},
    }


def case(size: int, recalls: dict[str, list[float]], variant: str = "exact", order: str = "near") -> dict[str, Any]:
    methods = {
        method: {
            "groups": {name: group(sum(found) / len(found), 4) for name in GROUPS},
            "by_question": found,
            "ms": {"median": 5.0, "least": 4.0, "greatest": 6.0, "repeats": 3, "cpu": 2.0},
        }
        for method, found in recalls.items()
    }
    return {
        **{"size": size, "order": order, "variant": variant, "unread": 1, "gold_with_copies": 2, "encoded_anew": 0},
        "settings": {"synonym_search": "exact" if variant == "exact" else "cells"},
        "sources": {"asked_sets": min(size, 50), "modern_rest": max(0, size - 50), "of_1810": 0},
        "counts": {"phrases": 10 * size, "facts": 20 * size, "synonyms": size},
        **{"build_s": {"encode": 2.0, "words": 0.2}, "build_cpu_s": 1.5},
        "machine": {"cores": 2, "load_before": 0.5, "load_after": 1.5},
        "methods": methods,
    }


LOW, HIGH = [0.0, 0.5, 0.5, 0.0], [1.0, 1.0, 0.5, 1.0]


@pytest.fixture
def cases() -> dict[str, Any]:
    few, many = dict.fromkeys(METHODS, HIGH), {**dict.fromkeys(METHODS, LOW), "hippo": HIGH}
    return {
        "a": case(200, many),
        "b": case(20, few),
        "c": case(200, {**many, "hippo": LOW}, "cells"),
        "d": case(20, few, order="mixed"),
    }


@pytest.fixture
def quality(cases: dict[str, Any]) -> dict[str, Any]:
    return {
        **{"questions": dict.fromkeys(GROUPS, 4), "gold_passages": 9, "asked_passages": 50, "modern_passages": 100},
        "cases": cases,
    }


def test_the_line_has_each_size_once_in_its_order_and_exact_before_cells(cases: dict[str, Any]) -> None:
    assert main_line(cases) == [cases["b"], cases["a"]]
    assert main_line(cases, "mixed") == [cases["d"]]


def test_the_table_of_passages_says_where_they_are_from(cases: dict[str, Any]) -> None:
    wanted = ["200", "50", "150", "0", "1", "2", "2,000", "4,000", "200", "exact"]
    assert corpus_table([cases["a"]]).rows == [wanted]


def test_recall_stands_with_its_interval_and_the_lead_over_dense(cases: dict[str, Any]) -> None:
    cells = recall_table([cases["a"]], "both").rows[0]
    assert cells[:2] == ["200", "25.0 [15.0, 30.0]"]
    assert cells[-1] == "+10.0 [5.0, 20.0] better"


def test_a_change_is_that_of_the_same_questions_with_its_interval(cases: dict[str, Any]) -> None:
    table = change_table(main_line(cases))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["dense"].startswith("-62.5 [")
    assert row["dense"].endswith("worse")
    assert row["hippo"] == "+0.0 [0.0, 0.0] tie"
    assert row["lead of hippo"].startswith("+62.5 [")
    assert row["lead of hippo2"] == "+0.0 [0.0, 0.0] tie"


def test_the_summary_tells_the_ends_of_the_line_and_what_became_of_the_leads(cases: dict[str, Any]) -> None:
    text = summary(main_line(cases))
    assert text.startswith("**From 20 to 200 passages**, recall@5 in percent: dense 87.5 → 25.0, bm25 87.5 → 25.0,")
    assert "Leads over dense at 200, in points: bm25 +10.0 [5.0, 20.0] better" in text
    assert "since 20: bm25 +0.0 [0.0, 0.0] tie, hippo2 +0.0 [0.0, 0.0] tie, hippo +62.5 [" in text


def test_settings_of_one_size_are_held_against_each_other(cases: dict[str, Any]) -> None:
    rows = variant_table(cases).rows
    assert [row[:2] for row in rows] == [["200", "exact → cells"]] * 4
    assert [row[5] for row in rows] == ["0", "0", "0", "3"]
    assert rows[3][3:5] == ["87.5", "25.0"]


def test_every_measure_of_every_method_is_told(cases: dict[str, Any]) -> None:
    table = measures_table(main_line(cases))
    assert len(table.rows) == 2 * len(METHODS)
    assert all(len(row) == len(table.columns) == 2 + len(MEASURES) for row in table.rows)


def test_times_stand_with_the_load_meanwhile(cases: dict[str, Any]) -> None:
    assert speed_table([cases["a"]]).rows[0] == ["200", "encode 2.0", "2", *["5.0 (2.0)"] * 4, "0.5–1.5"]


def test_the_plot_is_the_same_for_the_same_results_and_marks_1810(quality: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    found = plot(quality)
    assert found == plot(quality)
    assert "1810 from here<" in found
    assert all(f">{method}<" in found for method in METHODS)


def test_parts_are_replaced_between_their_marks_alone(quality: dict[str, Any]) -> None:
    marks = {name: (f"<!-- scale {name} -->\n", f"<!-- /scale {name} -->\n") for name in ("quality", "kills")}
    text = "Before\n" + "what it said\n".join(marks["quality"]) + "after\n" + "".join(marks["kills"])
    made = with_tables(text, {}, quality)
    assert made.startswith("Before\n<!-- scale quality -->\n\n4 questions with 9 gold passages.")
    assert "what it said" not in made
    assert made.endswith("after\n<!-- scale kills -->\n\nNo result is stored.\n\n<!-- /scale kills -->\n")
    assert with_tables(made, {}, quality) == made


STAGE = {
    "wall_s": 4.0,
    "cpu_s": 3.0,
    "anon_bytes": 2**30,
    "peak_bytes": 2**31,
    "written_bytes": 2**29,
    "load_before": 1.0,
}


@pytest.fixture
def cost() -> dict[str, Any]:
    said = {"single": {"median": 123.4, "p95": 200.0}, "batched": {"median": 1.234}, "first_ms": 900.0}
    asked = {**said, "gold_in_5": 30, "of_batch": 32}
    facts = {name: {**said, "name": f"{name} facts"} for name in ("every", "own")}
    return {
        "passages": 1000,
        "machine": {"cores": 2, "date": "2026-11-30"},
        "settings": {"fact_vectors": "int8"},
        **{"counts": {"passages": 1000, "facts": 12}, "bytes": 2**30, "passed": True, "checks": []},
        "predicted": {"index": {"wall_s": 5.0}, "index: encode": {"wall_s": 2.5}},
        "stages": {
            "index": {**STAGE, "stages_s": {"encode": 3.0}, "stages_peak_bytes": {"encode": 2**29}},
            "ask dense": STAGE,
        },
        "questions": {"dense": asked, "facts": {**facts, "recall": {"recall_5": 0.98}}},
        "alike": {"dense": {"questions": 32, "same_set": 31}},
    }


def test_stages_stand_beside_what_was_foretold_of_them(cost: dict[str, Any]) -> None:
    assert stage_table(cost).rows == [
        ["index", "4.0", "5.0", "3.0", "1.00", "2.00", "0.50"],
        ["index: encode", "3.0", "2.5", "–", "0.50", "–", "–"],
    ]


def test_questions_stand_by_method_and_facts_by_store(cost: dict[str, Any]) -> None:
    assert question_table(cost).rows == [
        ["dense", "123", "200", "1.23", "–", "–", "900", "31 of 32", "30 of 32"],
        ["facts alone: every facts", "123", "200", "1.23", "–", "–", "–", "", ""],
        ["facts alone: own facts", "123", "200", "1.23", "–", "–", "–", "recall of 5: 0.980", ""],
    ]


def test_smaller_cases_come_first_and_a_failed_check_is_told(cost: dict[str, Any]) -> None:
    failed = {**cost, "passages": 20, "passed": False, "checks": [{"name": "whole", "passed": False}]}
    text = as_markdown(cost_blocks({"cost": {"b": cost, "a": failed}}))
    assert text.index("### a") < text.index("### b")
    assert text.count("**Checks that failed: whole.**") == 1


def test_a_kill_says_which_files_differ() -> None:
    row = {"stage": "index: encode", "killed_after_s": 1.0, "undisturbed_s": 2.0, "wall_s": 2.6, "differing": []}
    text = as_markdown(kill_blocks({"kills": {"20000-compact": {"kills": [row, {**row, "differing": ["graph"]}]}}}))
    assert "| index: encode | 1.0 | 2.0 | 2.6 | none |" in text
    assert "| graph |" in text


def test_the_page_says_what_the_stored_results_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, stored(COST), stored(QUALITY)) == text


def test_the_plot_of_the_page_is_that_of_the_stored_results() -> None:
    quality = stored(QUALITY)
    drawn = PAGE.with_name("scale.svg").read_text(encoding="utf-8")
    for found in main_line(quality["cases"]):
        assert f">{found['size'] / 1000:.3g}k<" in drawn
