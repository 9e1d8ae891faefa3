"""Files of user edges: what a row may say, and what is refused with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from hippogpu.corpus import edge_fault, read_edges
from hippogpu.errors import CorpusError
from hippogpu.types import UserEdge

GOOD = {"passages": ["a", "b"]}
ROWS = [
    {"passages": ["p1", 2], "kind": "heading", "weight": 2},
    {"passage": "p1", "phrase": "Ada Lovelace"},
    {"phrases": ["Ada", "Lovelace"], "kind": "tag", "weight": 0.5},
]
EDGES = (
    UserEdge(("p1", "2"), (), "heading", 2.0),
    UserEdge(("p1",), ("Ada Lovelace",)),
    UserEdge((), ("Ada", "Lovelace"), "tag", 0.5),
)
CSV = """passage,other_passage,phrase,other_phrase,kind,weight
p1,2,,,heading,2
p1,,Ada Lovelace,,,
,,Ada,Lovelace,tag,0.5
"""


def written(folder: Path, name: str, *rows: object) -> Path:
    path = folder / name
    text = json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def refused(folder: Path, row: object) -> str:
    """The reason why a row is refused, between two that are taken."""
    edges, refusals = read_edges(written(folder, "edges.jsonl", GOOD, row, GOOD))
    assert (len(edges), [refusal.where[-2:] for refusal in refusals]) == (2, [":2"])
    return refusals[0].reason


@pytest.mark.parametrize("name", ["edges.jsonl", "edges.jsonl.gz", "edges.json"])
def test_an_edge_is_two_passages_two_phrases_or_one_of_each(tmp_path: Path, name: str) -> None:
    assert read_edges(written(tmp_path, name, *ROWS)) == (EDGES, ())


@pytest.mark.parametrize(("name", "separator"), [("edges.csv", ","), ("edges.tsv", "\t")])
def test_a_row_of_cells_names_the_second_end_of_a_kind_as_the_other(tmp_path: Path, name: str, separator: str) -> None:
    (tmp_path / name).write_text(CSV.replace(",", separator))
    assert read_edges(tmp_path / name) == (EDGES, ())


def test_a_parquet_file_may_hold_lists_or_cells(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"passages": ["p1", "2"], "phrase": None, "kind": "heading", "weight": 2.0},
        {"passages": ["p1"], "phrase": "Ada Lovelace", "kind": None, "weight": None},
    ]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "edges.parquet")
    assert read_edges(tmp_path / "edges.parquet").edges == EDGES[:2]


def test_an_edge_knows_the_line_it_stood_at(tmp_path: Path) -> None:
    path = written(tmp_path, "edges.jsonl", *ROWS)
    assert [edge.where for edge in read_edges(path).edges] == [f"{path}:{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "this one has 0"),
        ({"passage": "a"}, "this one has 1"),
        ({"passages": ["a", "b"], "phrase": "x"}, "this one has 3"),
        ({"passages": ["a", "a"]}, "it joins 'a' with itself"),
        ({"phrases": ["x", "x"]}, "it joins 'x' with itself"),
        ({"passage": " ", "phrase": "x"}, "'passage' is empty"),
        ({"passages": [["a"], "b"]}, "'passages' is not text but a list"),
        ({"passages": {"a": "b"}}, "'passages' is not text but an object"),
        ({**GOOD, "kind": 3}, "'kind' is not text but a number"),
        ({**GOOD, "kind": " "}, "texts that are not empty"),
        ({"phrases": ["x", "\ud800"]}, "half a surrogate pair"),
        (["a", "b"], "not an object but a list"),
    ],
)
def test_a_row_without_two_ends_is_refused_with_its_place(tmp_path: Path, row: object, reason: str) -> None:
    assert reason in refused(tmp_path, row)


@pytest.mark.parametrize("weight", [0, -1, 1e-7, 1e7, 10**400, True, "much", "nan", "inf", [1], {}])
def test_a_weight_that_no_walk_could_use_is_refused(tmp_path: Path, weight: object) -> None:
    assert "weight" in refused(tmp_path, {**GOOD, "weight": weight})


def test_a_field_that_means_nothing_is_refused_and_those_there_are_named(tmp_path: Path) -> None:
    reason = refused(tmp_path, {**GOOD, "wieght": 2})
    assert "'wieght'" in reason
    assert "weight" in reason.replace("wieght", "")


def test_a_line_that_is_no_json_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "edges.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{{\n{json.dumps(GOOD)}\n")
    assert [len(part) for part in read_edges(path)] == [2, 1]


@pytest.mark.parametrize(
    ("rows", "said"), [((), "empty"), (({},), r"1 refused, the first: .*edges\.jsonl:1: an edge has 2 ends")]
)
def test_a_file_without_an_edge_is_an_error_that_says_why(tmp_path: Path, rows: tuple[object, ...], said: str) -> None:
    with pytest.raises(CorpusError, match=said):
        read_edges(written(tmp_path, "edges.jsonl", *rows))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        read_edges(tmp_path / "edges.jsonl")


@pytest.mark.parametrize(
    "edge",
    [
        UserEdge(("a", "b"), weight=float("nan")),
        UserEdge(("a", "b"), weight="1"),  # type: ignore[arg-type]
        UserEdge(("a", 1)),  # type: ignore[arg-type]
        UserEdge(("a", "b\ud800")),
        UserEdge(("a", "b"), kind=""),
    ],
)
def test_an_edge_made_in_python_is_held_to_the_same(edge: UserEdge) -> None:
    assert edge_fault(edge) is not None
