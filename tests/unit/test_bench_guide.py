"""The tables of the page of benches are those of the stored results."""

from __future__ import annotations

import pytest

from bench import guide

SPREAD = {"median": 0.0123, "least": 0.01, "greatest": 0.5, "repeats": 3}
MACHINE = {"cpu": "a processor", "cores": 2, "date": "2020-01-02", "load_before": 0.25}
HELD = {"generation": 9, "rss": 100 * 2**20, "files": 19, "maps": 38}
RESULTS = {
    "growth": {
        "machine": MACHINE,
        "rules": {
            "never": {
                "commits": 400,
                "total_s": 123.4,
                "one_shot_s": 9.0,
                "exponent": 0.987,
                "exponent_linear": 1.0,
                "marks": [{"passages": 4000, "commit_s": SPREAD, "linear_s": SPREAD, "one_shot_s": 9.0}],
            }
        },
        "shares": [{"passages": 1000, "added": 10, "added_s": 0.5, "one_shot_s": 2.0, "share_of_one_shot": 0.25}],
    },
    "opening": {
        "machine": MACHINE,
        "indexes": {
            "wiki.hippo": {
                "counts": {"passages": 1890},
                "bytes": 3 * 2**20,
                "import_s": SPREAD,
                "steps": {"open": {"fresh_s": SPREAD, "warm_s": SPREAD, "peak_mib": SPREAD | {"median": 77.7}}},
            }
        },
    },
    "concurrent": {
        "machine": MACHINE,
        "settings": {"generations": 50, "passages": 1000},
        "checks": [{"passed": True}, {"passed": False}],
        "cases": [
            {
                "processes": 1,
                "threads": 16,
                "backend": "cpu",
                "layer": "omp",
                "questions": 7488,
                "questions_a_second": 1653.5,
                "generations_seen": 7,
                "commit_s": SPREAD,
                "early": HELD,
                "late": HELD | {"rss": 101 * 2**20},
            }
        ],
    },
}


def test_the_page_holds_the_tables_of_the_stored_results() -> None:
    page = guide.PAGE.read_text(encoding="utf-8")
    assert page == guide.with_tables(page, guide.stored_results())


def test_every_bench_with_a_table_has_its_place_on_the_page() -> None:
    page = guide.PAGE.read_text(encoding="utf-8")
    assert [name for name in guide.TABLES if f"<!-- {name} table -->\n" not in page] == []


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("growth", "| 4,000 | 0.0123 (0.01–0.5) | 0.0123 | 9 |"),
        ("growth", "| 1,000 + 10 | 0.5 | 2 | 25% |"),
        ("opening", "| open | 12.3 (10–500) | 12.3 (10–500) | 78 |"),
        ("concurrent", "| 1 × 16, cpu, omp | 7,488 | 1,654 | 7 | 0.0123 | 100 → 101 | 19 → 19 | 38 → 38 |"),
    ],
)
def test_a_result_becomes_rows_between_its_marks(name: str, row: str) -> None:
    page = f"before\n<!-- {name} table -->\nold\n<!-- /{name} table -->\nafter\n"
    lines = guide.with_tables(page, RESULTS).splitlines()
    assert row in lines
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    assert lines[-3] == "On a processor, 2 cores, 2020-01-02, load 0.25 before."
