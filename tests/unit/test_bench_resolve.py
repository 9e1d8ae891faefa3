"""The bench of names: it counts, samples and compares, and refuses an index that has names already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from small_index import index_of, stating

from bench.resolve import resolve
from hippogpu import IndexConfig

PASSAGES = [stating("a", "4 july 1776|saw|a declaration"), stating("b", "july 4 1776|saw|a parade")]


def test_it_tells_counts_a_sample_and_what_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index_of(tmp_path / "index", PASSAGES, config=IndexConfig(synonym_threshold=1.0))
    (tmp_path / "q.jsonl").write_text('{"_id": "q", "question": "what was seen?", "supporting_ids": ["b"]}\n')
    resolve(tmp_path / "index", tmp_path / "q.jsonl", method=["hippo2"], scale=[1.0], sample=3)
    counts, *rest = map(json.loads, capsys.readouterr().out.splitlines())
    assert (counts["names"], counts["new_names"], counts["by_kind"]["date"]) == (1, 1, 1)
    assert {"kind": "date", "edges": ["4 july 1776 ~ july 4 1776 (1.00)"]} in rest
    without, names = (line for line in rest if "method" in line)
    assert (without["scale"], names["scale"], names["difference"]["recall@20"]) == (0.0, 1.0, [0.0, 0.0, 0.0])


def test_it_refuses_an_index_that_has_names(tmp_path: Path) -> None:
    index_of(tmp_path / "index", PASSAGES, config=IndexConfig(resolve="names"))
    with pytest.raises(typer.BadParameter, match="built with names"):
        resolve(tmp_path / "index")
