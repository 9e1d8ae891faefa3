"""Stored extractions as an extractor."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from hippogpu.errors import ExtractionError
from hippogpu.openie import ReplayExtractor
from hippogpu.types import Drop, Passage, Record, Triple

ADA = Passage("a", "Ada", "Ada wrote notes.")
ROW = {"_id": "a", "entities": ["Ada"], "triples": [["Ada", "wrote", "notes"], ["Ada", "wrote"]]}
RECORD = Record("a", (Triple("Ada", "wrote", "notes"),), ("Ada",), (Drop("2 fields, not 3", "['Ada', 'wrote']"),))
DOC = {"passage": "Ada\nAda wrote notes.", "extracted_entities": ["Ada"], "extracted_triples": ROW["triples"]}


def stored(path: Path, *rows: object) -> ReplayExtractor:
    content = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return ReplayExtractor(path)


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz", "r.json"])
def test_a_row_is_found_by_its_id(tmp_path: Path, name: str) -> None:
    assert list(stored(tmp_path / name, ROW).extract([ADA])) == [RECORD]


@pytest.mark.parametrize("idx", ["chunk-" + hashlib.md5(DOC["passage"].encode()).hexdigest(), 0, None])
def test_a_document_of_the_papers_library_is_found_by_its_text(tmp_path: Path, idx: object) -> None:
    file = {"docs": [{"idx": idx, **DOC}], "avg_ent_chars": 3.0}
    assert list(stored(tmp_path / "openie_results_ner_m.json", file).extract([ADA])) == [RECORD]


def test_a_document_without_passage_is_found_by_title_and_text(tmp_path: Path) -> None:
    doc = {"title": "Ada", "text": "Ada wrote notes.", "extracted_triples": DOC["extracted_triples"]}
    assert next(stored(tmp_path / "r.json", {"docs": [doc]}).extract([ADA])).triples == RECORD.triples


def test_the_same_text_under_another_id_is_found_by_text(tmp_path: Path) -> None:
    extractor = stored(tmp_path / "r.json", {"docs": [DOC]})
    assert [record.passage_id for record in extractor.extract([ADA, ADA._replace(id="b")])] == ["a", "b"]


def test_fact_texts_are_taken_from_a_parallel_list(tmp_path: Path) -> None:
    extractor = stored(tmp_path / "r.jsonl", {**ROW, "texts": ["Ada: Ada wrote notes.", None]})
    assert next(extractor.extract([ADA])).triples[0].text == "Ada: Ada wrote notes."


def test_a_passage_without_a_row_is_a_failure_that_names_it(tmp_path: Path) -> None:
    (record,) = stored(tmp_path / "r.jsonl", ROW).extract([Passage("b", "B", "other")])
    assert record == Record("b", (), error="no stored extraction for passage 'b' in 'r.jsonl'")


def test_rows_of_other_passages_are_counted_as_unused(tmp_path: Path) -> None:
    extractor = stored(tmp_path / "r.jsonl", ROW, {**ROW, "_id": "b"}, {**ROW, "_id": "c"})
    list(extractor.extract([ADA, ADA]))
    assert (len(extractor), extractor.unused) == (3, 2)


def test_the_name_is_the_hash_of_the_file(tmp_path: Path) -> None:
    name = stored(tmp_path / "r.jsonl", ROW).name
    assert name == "replay-" + hashlib.sha256((tmp_path / "r.jsonl").read_bytes()).hexdigest()[:8]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ({"_id": None, "triples": []}, "'_id' is no text or number"),
        ({"extracted_triples": []}, "neither '_id' nor 'passage'"),
        ({"_id": "b", "entities": []}, "no list 'triples'"),
        ({"_id": "b", "triples": "none"}, "no list 'triples'"),
        ({"_id": "a", "triples": []}, "_id 'a' came before with other content"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_the_rest_read(tmp_path: Path, row: object, reason: str) -> None:
    extractor = stored(tmp_path / "r.jsonl", ROW, row, {**ROW, "_id": "z"})
    assert (len(extractor), [r.where for r in extractor.refusals]) == (2, [f"{tmp_path / 'r.jsonl'}:2"])
    assert extractor.refusals[0].reason.startswith(reason)


def test_an_exact_repeat_of_a_row_is_no_refusal(tmp_path: Path) -> None:
    extractor = stored(tmp_path / "r.jsonl", ROW, ROW)
    assert (len(extractor), extractor.refusals) == (1, [])


@pytest.mark.parametrize("content", [b"", b"{}\n", gzip.compress(b"x")[:-4]])
def test_a_file_without_extractions_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(content if content[:1] == b"\x1f" else gzip.compress(content))
    with pytest.raises(ExtractionError, match=r"r\.jsonl\.gz"):
        ReplayExtractor(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ExtractionError, match=r"nowhere\.jsonl' cannot be read"):
        ReplayExtractor(tmp_path / "nowhere.jsonl")
