"""A Parquet export that is damaged, altered or made up is refused, and the message names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from exchange_cases import declare, exported, rewrite, rich_index, with_column

from hippogpu.errors import CorpusError
from hippogpu.exchange import import_parquet
from hippogpu.openie.log_lines import encode_line
from hippogpu.types import Record, Triple


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(rich_index(tmp_path_factory.mktemp("hostile") / "rich.hippo"))


@pytest.fixture
def export(pristine: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    copy = tmp_path / "x.parquet"
    copy.mkdir()
    for path in pristine.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def refused(export: Path, match: str) -> None:
    with pytest.raises(CorpusError, match=match):
        import_parquet(export.with_name("made.hippo"), export)
    assert [path.name for path in export.parent.iterdir()] == [export.name]


def change_head(export: Path, change: Callable[[Any], object]) -> None:
    head = json.loads((export / "export.json").read_text())
    change(head)
    (export / "export.json").write_text(json.dumps(head))


@pytest.mark.parametrize("name", ["passages.parquet", "graph.parquet", "diffused.parquet", "records-0000.jsonl"])
def test_a_flipped_bit_is_found(export: Path, name: str) -> None:
    data = bytearray((export / name).read_bytes())
    data[len(data) // 2] ^= 4
    (export / name).write_bytes(data)
    refused(export, f"{name}.*altered")


@pytest.mark.parametrize("name", ["ids.parquet", "records-0000.jsonl"])
def test_a_cut_or_missing_file_is_named(export: Path, name: str) -> None:
    (export / name).write_bytes((export / name).read_bytes()[:-9])
    refused(export, f"{name}.*bytes")
    (export / name).unlink()
    refused(export, f"{name}.*missing")


def test_a_link_is_not_followed(export: Path, tmp_path: Path, pristine: Path) -> None:
    (export / "facts.parquet").unlink()
    (export / "facts.parquet").symlink_to(pristine / "facts.parquet")
    refused(export, r"facts\.parquet.*no plain file")


HEADS: list[Callable[[Any], object]] = [
    lambda head: head.update(what="something"),
    lambda head: head.pop("tables"),
    lambda head: head["tables"].pop("facts"),
    lambda head: head["tables"].update({"../up": head["tables"]["facts"]}),
    lambda head: head["tables"]["facts"].update(rows=-1),
    lambda head: head["tables"]["facts"].update(rows=1 << 40),
    lambda head: head["tables"]["facts"].update(sha256="no"),
    lambda head: head["tables"].pop("user_edge_nodes"),
    lambda head: head["config"].update(unknown=1),
    lambda head: head["encoder"].update(width=1 << 20),
    lambda head: head["encoder"].update(name=7),
    lambda head: head.update(diffusion=None),
    lambda head: head["diffusion"].update(damping=float("nan")),
    lambda head: head["records"][0].update(file="../../etc/passwd"),
    lambda head: head["records"][0].update(extractor=""),
    lambda head: head["records"].append(head["records"][0]),
    lambda head: head.update(records={"a": 1}),
    lambda head: head["counts"].update(phrases=99),
    lambda head: head["counts"].update(more=1),
]


@pytest.mark.parametrize("number", range(len(HEADS)))
def test_a_head_of_another_shape_is_refused(export: Path, number: int) -> None:
    change_head(export, HEADS[number])
    refused(export, r"export\.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000, '{"what": "hippogpu index"}'])
def test_a_head_that_is_none_is_refused(export: Path, text: str) -> None:
    (export / "export.json").write_text(text)
    refused(export, r"export\.json")


def test_a_newer_format_is_refused_with_the_way_out(export: Path) -> None:
    change_head(export, lambda head: head.update(format=2))
    refused(export, "format 2.*Upgrade")


def test_a_folder_without_a_head_is_refused(export: Path) -> None:
    (export / "export.json").unlink()
    refused(export, "holds no export")


def last(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [*values[:-1], value]


def moved(place: int, value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [*values[:place], value, *values[place + 1 :]]


TABLES = [
    ("ids", "passage", last(99), "Passage|passage"),
    ("ids", "passage", last(-1), "Passage|passage"),
    ("ids", "passage", lambda rows: [1, 0, *rows[2:]], "order"),
    ("ids", "id", last("p0"), "ids.parquet"),
    ("ids", "id", last(""), "ids.parquet"),
    ("ids", "meta", last("[1]"), "no object"),
    ("ids", "meta", last("{"), "no JSON"),
    ("ids", "title", last("somebody else's"), "title"),
    ("passages", "id", last("p0"), "passages.parquet"),
    ("passages", "text", last(""), "passages.parquet|title|records-0000"),
    ("passages", "text", lambda texts: [texts[1], *texts[1:]], "passages.parquet|title|records-0000"),
    ("passages", "vector", moved(0, [0.0] * 32), "passage_vectors"),
    ("passages", "vector", moved(0, [float("nan")] * 32), "passage_vectors"),
    ("phrases", "text", lambda texts: texts[::-1], "phrases.parquet"),
    ("phrases", "vector", moved(2, [2.0] + [0.0] * 31), "phrase_vectors"),
    ("facts", "subject", last(10_000), "facts.parquet"),
    ("facts", "object", last(-5), "facts.parquet"),
    ("facts", "predicate", lambda texts: ["zzz", *texts[1:]], "facts.parquet|facts"),
    ("statements", "fact", last(10_000), "statements"),
    ("statements", "passage", lambda rows: rows[::-1], "statements.parquet"),
    ("mentions", "passage", last(77), "mentions.parquet"),
    ("mentions", "phrase", lambda rows: rows[::-1], "mentions"),
    ("graph", "weight", last(9.0), "graph.parquet"),
    ("graph", "target", last(0), "graph.parquet"),
    ("user_edges", "weight", last(-1.0), "user_edges.parquet"),
    ("user_edges", "kind", last(""), "user_edges.parquet"),
    ("user_edge_nodes", "source", last(1 << 30), "user_edges"),
    ("user_edge_nodes", "weight", last(float("inf")), "user_edges"),
    ("diffused", "one", last(float("nan")), "diffused"),
    ("diffused", "one", last(0.25), "diffused_ones"),
    ("passages", "extractor", last("nobody"), "passages|counts"),
]


@pytest.mark.parametrize(("name", "column", "change", "match"), TABLES)
def test_a_value_that_does_not_fit_is_refused(export: Path, name: str, column: str, change, match: str) -> None:
    rewrite(export, name, with_column(column, change))
    refused(export, match)


SYNONYMS = [
    ([0], [10_000], [0.9]),
    ([0], [0], [0.9]),
    ([0], [1], [float("nan")]),
    ([0], [1], [1.5]),
    ([0], [1], [-1.0]),
]


@pytest.mark.parametrize(("source", "target", "weight"), SYNONYMS)
def test_a_synonym_that_is_none_is_refused(export: Path, source, target, weight) -> None:
    def made(table: pa.Table) -> pa.Table:
        return pa.table([source, target, weight], schema=table.schema)

    rewrite(export, "synonyms", made)
    refused(export, r"synonyms\.parquet")


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.rename_columns(["name", "vector"]),
        lambda table: table.append_column("more", [list(range(table.num_rows))]),
        lambda table: table.set_column(0, "text", table["text"].cast(pa.large_binary())),
        lambda table: table.cast(pa.schema([field.with_nullable(True) for field in table.schema])),
    ],
)
def test_other_columns_are_refused(export: Path, change) -> None:
    rewrite(export, "phrases", change)
    refused(export, r"phrases\.parquet.*columns")


def test_what_is_no_parquet_is_refused(export: Path) -> None:
    path = export / "mentions.parquet"
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    declare(export, path, lambda head: head["tables"]["mentions"])
    refused(export, r"mentions\.parquet.*no readable Parquet")


def test_more_rows_than_the_file_can_hold_are_not_allocated(export: Path) -> None:
    change_head(export, lambda head: head["tables"]["phrases"].update(rows=(1 << 31) - 1))
    refused(export, r"phrases\.parquet.*bytes hold no")


RECORDS = [
    (lambda key, line: line.replace(key, b"0" * 32), "a text that the export has not|altered"),
    (lambda key, line: encode_line("0" * 32, Record("p", ())), "a text that the export has not"),
    (lambda key, line: encode_line(key.decode(), Record("p", (Triple("a", "b", 7),))), "no 'triples'"),  # type: ignore[arg-type]
    (lambda key, line: encode_line(key.decode(), Record(7, ())), "no 'passage_id'"),  # type: ignore[arg-type]
    (lambda key, line: line + line, "two of one|not"),
    (lambda key, line: b"", "records, not"),
    (lambda key, line: b"\x00\xff\n", "checksum"),
]


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_a_record_that_is_none_is_refused(export: Path, number: int) -> None:
    path = export / "records-0000.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    change, match = RECORDS[number]
    key = first.split(b'"key":"')[1][:32]
    path.write_bytes(change(key, first) + b"".join(rest))
    declare(export, path, lambda head: head["records"][0])
    refused(export, f"records-0000.*({match})")
