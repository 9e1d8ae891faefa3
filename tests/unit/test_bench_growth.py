"""The bench of growth: what it reads, what it checks before it reports, and how its figures are made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from small_index import Counting

from bench import growth
from bench.growing import AllSeen, Commit
from bench.stored import read_stored
from hippogpu.errors import UsageError
from hippogpu.testing.cli import Ran, run_verb

app = typer.Typer()
app.command("growth")(growth.growth)
app.command("other")(lambda: None)


def corpus_of(folder: Path, count: int, *, without: Sequence[int] = ()) -> tuple[Path, Path]:
    """A corpus and its extractions; some passages have none."""
    folder.mkdir()
    passages = [{"_id": f"p{n}", "title": f"Town {n % 7}", "text": f"Town {n} of {folder.name}."} for n in range(count)]
    records = [
        {"_id": f"p{n}", "entities": [], "triples": [[f"town {n % 7}", "has", f"mill {n}"], [f"mill {n}", "is", "old"]]}
        for n in range(count)
        if n not in without
    ]
    for name, rows in (("corpus.jsonl", passages), ("openie.jsonl", records)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder, folder / "openie.jsonl"


def run_growth(tmp_path: Path, *more: str) -> tuple[Ran, dict[str, Any]]:
    corpus, openie = corpus_of(tmp_path / "towns", 31)
    words = [
        "growth",
        str(corpus),
        "--openie",
        str(openie),
        "--batch",
        "5",
        "--passages",
        "23",
        "--encoder",
        "hashing:16",
    ]
    ran = run_verb(app, *words, "--json", str(tmp_path / "out.json"), *more)
    return ran, json.loads((tmp_path / "out.json").read_text())


def test_every_commit_is_timed_and_the_marks_stand_beside_one_commit_of_all(tmp_path: Path) -> None:
    ran, result = run_growth(tmp_path)
    found = result["rules"]["never"]
    assert (ran.code, result["passed"], found["commits"], len(found["every_commit_s"])) == (0, True, 5, 5)
    assert [row["passages"] for row in found["marks"]] == [10, 23]
    for row in found["marks"]:
        assert 0 < row["linear_s"]["median"] < row["commit_s"]["median"]
        assert {"extract", "tables", "encode", "synonyms", "graph", "commit", "rest"} <= row["stages_s"].keys()
        assert row["one_shot_s"] > 0


def test_what_a_hundredth_costs_is_beside_a_build_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SHARES_OF", (20, 31))
    _, result = run_growth(tmp_path)
    (row,) = result["shares"]
    assert (row["passages"], row["added"]) == (20, 1)
    assert row["share_of_one_shot"] == pytest.approx(row["added_s"] / row["one_shot_s"], rel=0.05)


def test_both_rules_of_diffusion_may_be_asked_for(tmp_path: Path) -> None:
    _, result = run_growth(tmp_path, "--diffuse", "auto", "--diffuse", "never")
    stages = {rule: result["rules"][rule]["marks"][-1]["stages_s"] for rule in ("auto", "never")}
    assert ("diffuse" in stages["auto"], "diffuse" in stages["never"]) == (True, False)


def test_no_time_is_reported_of_an_index_that_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files_of = growth.files_of
    monkeypatch.setattr(growth, "files_of", lambda root: files_of(root) | {"graph_indices": root.name})
    ran, result = run_growth(tmp_path)
    assert (ran.code, result["passed"], "rules" in result, "shares" in result) == (1, False, False, False)
    assert [check["found"] for check in result["checks"] if not check["passed"]] == [["graph_indices"]]


def test_too_few_passages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="31 passages with an extraction, fewer than 40"):
        run_growth(tmp_path, "--passages", "40")


def test_an_unknown_rule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Got 'sometimes'"):
        run_growth(tmp_path, "--diffuse", "sometimes")


def test_the_exponent_of_a_power_law_is_found_whatever_the_start_costs() -> None:
    at = np.arange(10, 4010, 10)
    assert growth.exponent(at, np.where(at < 100, 5.0, 0.003 * at**1.25)) == pytest.approx(1.25, abs=1e-3)
    assert growth.exponent(at[:2], at[:2] * 1.0) is None


def test_linear_seconds_leave_out_synonyms_and_diffusion() -> None:
    assert growth.linear_seconds(Commit(10, 9.0, {"tables": 1.0, "synonyms": 2.0, "diffuse": 3.0}, {})) == 4.0


def test_equal_ids_of_two_corpora_stay_apart_and_passages_without_extraction_are_left_out(tmp_path: Path) -> None:
    one, two = corpus_of(tmp_path / "one", 3), corpus_of(tmp_path / "two", 2, without=[0])
    stored = read_stored([one[0], two[0]], [one[1], two[1]])
    assert [passage.id for passage in stored.passages] == ["0/p0", "0/p1", "0/p2", "1/p1"]
    assert [record.passage_id for record in stored.extractor.extract(stored.passages[2:])] == ["0/p2", "1/p1"]


def test_a_text_that_two_corpora_hold_counts_once(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one, two = corpus_of(tmp_path / "one", 3), corpus_of(tmp_path / "other" / "one", 5)
    stored = read_stored([one[0], two[0]], [one[1], two[1]])
    assert [passage.id for passage in stored.passages] == ["0/p0", "0/p1", "0/p2", "1/p3", "1/p4"]


def test_each_corpus_needs_its_extractions(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 corpora and 1 files"):
        read_stored([tmp_path, tmp_path], [tmp_path / "openie.jsonl"])


def test_an_encoder_that_has_seen_a_text_is_not_asked_again() -> None:
    inner = Counting(16)
    seen = AllSeen(inner)
    first = seen.encode(["b", "a", "b"])
    assert np.array_equal(seen.encode(["a", "c", "b"])[[2, 0, 2]], first)
    assert inner.texts == ["b", "a", "c"]
