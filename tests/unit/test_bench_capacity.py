"""Plans beside the indexes of the scale bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.capacity import (
    BYTES_WITHIN,
    PAGE,
    TIMES_WITHIN,
    Row,
    counts_of,
    plan_of,
    rows,
    stored_results,
    tables,
    with_tables,
)
from hippogpu.capacity import foreseen

ROOT = Path(__file__).resolve().parents[2]
STORED = stored_results(ROOT)


def made(passages: int = 100_000, *, load: float = 0.5, disk: float = 1.0, slower: float = 1.0) -> dict[str, Any]:
    """A result that is off from its plan by these factors."""
    settings = {"encoder": "hashing:384", "fact_vectors": "int8", "fact_search": "ivfpq"}
    counts = foreseen(passages)
    names = ("passages", "ids", "phrases", "facts", "fact_pairs", "mentions", "synonyms", "edges")
    case: dict[str, Any] = {"passages": passages, "passed": True, "settings": settings, "file_bytes": {}}
    case["counts"] = {name: getattr(counts, name) for name in names}
    plan = plan_of(case, counts)
    case["file_bytes"] = {array.name: round(array.bytes * disk) for array in plan.files}
    stages = {stage.name: (stage.seconds or 0.0) * slower for stage in plan.stages}
    most = max(peak.bytes for peak in plan.peaks)
    case["stages"] = {"index": {"stages_s": stages, "load_before": load, "anon_bytes": most}}
    dense = plan.questions[0]
    case["questions"] = {"dense": {"solver": None, "single": {"median": dense.alone_ms}, "batched": {"median": 0.1}}}
    return {"cost": {"made": case}}


def test_counts_come_back_from_the_files_of_an_index() -> None:
    found, counts = counts_of(made()["cost"]["made"]), foreseen(100_000)
    for name in ("found", "statements", "words", "vocabulary", "facts_bytes", "passages_bytes"):
        assert getattr(found, name) == pytest.approx(getattr(counts, name), rel=0.001)


def test_a_plan_that_was_right_is_within() -> None:
    found = rows(made())
    assert {row.what for row in found} >= {"disk, all files", "encode", "memory while it is built"}
    assert all(row.within for row in found)
    assert {row.what for row in found if not row.held} == {"memory while it is built", "dense, single"}


@pytest.mark.parametrize("slower", [2.1 * TIMES_WITHIN, 0.45 / TIMES_WITHIN])
def test_a_stage_that_took_more_or_less_than_twice_the_time_is_off(slower: float) -> None:
    timed = [row for row in rows(made(slower=slower)) if row.unit == "s"]
    assert timed
    assert not any(row.within for row in timed)


def test_times_of_a_busy_machine_are_shown_and_not_held() -> None:
    busy = rows(made(load=9.0, slower=7.0))
    assert [row.what for row in busy if row.held and row.unit != "bytes"] == []
    assert "(busy)" in tables(made(load=9.0))


def test_sizes_are_held_within_a_fifth() -> None:
    assert Row("", "", "bytes", 119, 100, held=True).within
    assert not Row("", "", "bytes", 100 * (1 + BYTES_WITHIN) + 1, 100, held=True).within


def test_the_plans_are_true_to_the_measurements() -> None:
    found = [row for results in STORED for row in rows(results)]
    assert {row.what for row in found} >= {"disk, all files", "synonyms, processor time ÷ 2"}
    assert [f"{row.case}, {row.what}: {row.ratio:.2f}" for row in found if row.held and not row.within] == []


def test_the_tables_of_the_page_are_those_of_the_measurements() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text, *STORED) == text
