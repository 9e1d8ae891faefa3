"""The bench of stores: what its rows say, and that the guide has the tables of the stored results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from small_index import index_of

from bench.vectors import RESULTS, STORES, Store, compared, measured, world_of
from bench.vectors_page import PAGE, with_tables
from hippogpu import IndexConfig
from hippogpu.nearest import Near

OWN = [store for store in STORES if store.by == "own" and store.probes in (0, 128)]


def questions(folder: Path) -> Path:
    rows = [
        {"_id": "q1", "question": "Who built the engine?", "answer": "", "supporting_ids": ["p2"]},
        {"_id": "q2", "question": "Who wrote notes?", "answer": "", "supporting_ids": ["p1", "p2"]},
        {"_id": "q3", "question": "Who is nowhere?", "answer": "", "supporting_ids": ["p99"]},
    ]
    path = folder / "queries.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_store_is_measured_on_the_questions_whose_passages_are_there(tmp_path: Path) -> None:
    index_of(tmp_path / "i.hippo")
    found = measured(world_of(tmp_path / "i.hippo", questions(tmp_path), "", 10), OWN)
    assert (found["questions"], [row["store"] for row in found["rows"]]) == (2, [store.name for store in OWN])
    # Of seven facts every store finds the nearest five.
    assert [row["recall"] for row in found["rows"]] == [1.0] * len(OWN)
    first, *others = found["rows"]
    assert (first["low_off"]["most"], first["stored_bytes"], first["rankings"]["hippo"]["difference"]) == (
        0.0,
        128.0,
        [0.0, 0.0, 0.0],
    )
    assert all(row["score_off"]["most"] < 0.02 for row in others)


def test_an_index_whose_facts_are_rounded_already_is_refused(tmp_path: Path) -> None:
    index_of(tmp_path / "i.hippo", config=IndexConfig(fact_vectors="int8"))
    with pytest.raises(typer.BadParameter, match="rounded"):
        world_of(tmp_path / "i.hippo", questions(tmp_path), "", 10)


def test_facts_that_were_missed_and_extremes_that_are_off_are_counted() -> None:
    truth = Near(np.array([[1, 2]]), np.array([[0.9, 0.5]]), np.array([-0.1]), np.array([0.9]), True)
    found = Near(np.array([[1, 3]]), np.array([[0.9, 0.4]]), np.array([0.0]), np.array([0.9]), False)
    row = compared(found, truth)
    assert (row["recall"], row["same_five"], row["same_first"]) == (0.5, 0.0, 1.0)
    assert (row["low_off"]["most"], row["high_off"]["most"], row["score_off"]["most"]) == (0.1, 0.0, 0.0)


def test_the_first_store_is_the_exact_one() -> None:
    assert STORES[0] == Store("float32", "float32")


def test_the_guide_has_the_tables_of_the_stored_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, json.loads(RESULTS.read_text(encoding="utf-8"))) == text


def test_the_stored_results_compare_with_float32_and_have_every_store() -> None:
    rows = [found["rows"] for found in json.loads(RESULTS.read_text(encoding="utf-8"))["sets"].values()]
    assert {some[0]["store"] for some in rows} == {"float32"}
    assert {row["store"] for some in rows for row in some} == {store.name for store in STORES}
