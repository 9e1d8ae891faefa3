"""What the three forms of a run hold, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from run_cases import IDENTITY, QUESTIONS, written

from hippogpu import Passage
from hippogpu.corpus import Query
from hippogpu.runs import write_run
from hippogpu.types import Hit, Ranking


def test_trec_refuses_ids_with_white_space_and_writes_the_others(tmp_path: Path) -> None:
    def with_bad_passage(texts: Sequence[str]) -> list[Ranking]:
        return [
            Ranking(text, (Hit(Passage("a b" if text == "bad" else "p", "", "x"), 0.5),), "dense") for text in texts
        ]

    queries = [Query("q 1", "x"), Query("q2", "bad"), Query("q3", "x"), Query("q\u20034", "x")]
    report = write_run(tmp_path / "run.trec", queries, with_bad_passage, IDENTITY, batch=2)
    assert (report.questions, report.refused) == (1, 3)
    assert [item.where for item in report.refusals] == ["question 'q 1'", "question 'q2'", "question 'q\u20034'"]
    assert (tmp_path / "run.trec").read_text() == "q3 Q0 p 1 0.5 hippogpu-dense\n"


def test_a_question_refused_for_its_passages_is_counted_by_later_calls(tmp_path: Path) -> None:
    spaced = Ranking("x", (Hit(Passage("a b", "", "x"), 0.5),), "dense")
    calls = iter([[spaced]])
    queries = [Query("q1", "x"), Query("q2", "x")]
    with pytest.raises(StopIteration):
        write_run(tmp_path / "run.trec", queries, lambda texts: next(calls), IDENTITY, batch=1)
    report = write_run(tmp_path / "run.trec", queries, lambda texts: [Ranking("x", (), "dense")], IDENTITY, batch=1)
    assert (report.questions, report.earlier, report.refused) == (1, 0, 1)


def test_a_trec_run_reads_as_its_rankings(tmp_path: Path) -> None:
    written(tmp_path / "run.trec")
    rows = [line.split(" ") for line in (tmp_path / "run.trec").read_text().splitlines()]
    assert rows[1] == ["q0", "Q0", "p0-1", "2", repr(1 / 4), "hippogpu-hippo2"]
    assert (len(rows), {len(row) for row in rows}) == (24, {6})


def test_a_parquet_run_has_a_row_group_a_batch_and_typed_columns(tmp_path: Path) -> None:
    written(tmp_path / "run.parquet")
    file = pq.ParquetFile(tmp_path / "run.parquet")
    assert file.num_row_groups == 4
    row = file.read().to_pylist()[4]
    assert row == {
        "query_id": "q1", "rank": 2, "passage_id": "p1-1", "title": "A title", "score": 1 / 5, "solver": "power",
        "fallback": None, "certified": None,
    }  # fmt: skip


def test_a_jsonl_run_holds_one_object_a_question(tmp_path: Path) -> None:
    written(tmp_path / "run.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["query_id"] for row in rows] == [f"q{number}" for number in range(QUESTIONS)]
    assert [passage["id"] for passage in rows[1]["passages"]] == ["p1-0", "p1-1", "p1-2"]
