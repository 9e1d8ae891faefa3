"""Readers of passages: every format, and what each refuses."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from hippogpu.corpus import content_id, distinct, read_corpus
from hippogpu.errors import CorpusError, UsageError
from hippogpu.types import Passage, Refusal

ROWS = [{"_id": "a", "title": "A", "text": "one"}, {"_id": "b", "title": "B", "text": "two"}]
PASSAGES = [Passage("a", "A", "one"), Passage("b", "B", "two")]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def read(*paths: Path) -> tuple[list[Passage], list[Refusal]]:
    reading = read_corpus(paths)
    return list(reading.passages), reading.refusals


def written(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def first_reason(tmp_path: Path, row: object) -> str:
    line = row if isinstance(row, str) else json.dumps(row)
    _, refusals = read(written(tmp_path / "c.jsonl", line + "\n" + LINES.decode()))
    assert [refusal.where for refusal in refusals] == [f"{tmp_path / 'c.jsonl'}:1"]
    return refusals[0].reason


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.jsonl", LINES),
        ("c.ndjson", LINES),
        ("c.json", LINES),
        ("c.jsonl.gz", gzip.compress(LINES)),
        ("c.jsonl.xz", lzma.compress(LINES)),
        ("c.json", json.dumps(ROWS, indent=2).encode()),
        ("c.json", b"\xef\xbb\xbf \n[]".replace(b"[]", json.dumps(ROWS).encode())),
        ("c.jsonl", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n\r\n")),
        ("c.csv", b"_id,title,text\na,A,one\nb,B,two\n"),
        ("c.csv", b'\xef\xbb\xbftext,id,title\n"one",a,A\r\n"two",b,B\r\n'),
        ("c.tsv", b"id\ttitle\ttext\na\tA\tone\nb\tB\ttwo\n"),
        ("c.tsv.gz", gzip.compress(b"id\ttitle\ttext\na\tA\tone\nb\tB\ttwo\n")),
    ],
)
def test_every_format_gives_the_same_passages(tmp_path: Path, name: str, content: bytes) -> None:
    assert read(written(tmp_path / name, content)) == (PASSAGES, [])


def test_parquet_gives_the_same_passages(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "c.parquet")
    assert read(tmp_path / "c.parquet") == (PASSAGES, [])


def test_a_parquet_number_id_is_cast_to_text(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"id": [7], "text": ["x"], "when": [None]}), tmp_path / "c.parquet")
    assert read(tmp_path / "c.parquet")[0] == [Passage("7", "", "x", {"when": None})]


def test_a_parquet_row_that_is_not_utf8_is_refused_alone(tmp_path: Path) -> None:
    raw = pa.array([b"ok", b"\xff", b"fine"], pa.binary())
    text = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2])
    pyarrow.parquet.write_table(pa.table({"id": ["a", "b", "c"], "text": text}), tmp_path / "c.parquet")
    passages, refusals = read(tmp_path / "c.parquet")
    assert ([p.id for p in passages], refusals) == (
        ["a", "c"],
        [Refusal(f"{tmp_path / 'c.parquet'}: row 2", "not UTF-8")],
    )


def test_a_beir_folder_is_read_from_its_corpus_file(tmp_path: Path) -> None:
    written(tmp_path / "corpus.jsonl", LINES)
    written(tmp_path / "readme.md", "# not a passage")
    assert read(tmp_path)[0] == PASSAGES


def test_a_folder_of_texts_is_read_in_path_order_with_relative_ids(tmp_path: Path) -> None:
    written(tmp_path / "z.txt", "last")
    written(tmp_path / "a" / "b.md", "intro\n```\n# no\n```\n## The *title* ##\nbody")
    written(tmp_path / "a" / "c.md", "no heading")
    written(tmp_path / "picture.png", "x")
    passages, _ = read(tmp_path)
    assert [(p.id, p.title) for p in passages] == [("a/b.md", "The *title*"), ("a/c.md", "c"), ("z.txt", "z")]


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    for name in (".git/a.txt", ".b.txt", "c.txt"):
        written(tmp_path / name, "text")
    assert [p.id for p in read(tmp_path)[0]] == ["c.txt"]


def test_an_empty_or_undecodable_text_file_is_refused_alone(tmp_path: Path) -> None:
    written(tmp_path / "a.txt", "  \n")
    written(tmp_path / "b.txt", b"\xff")
    written(tmp_path / "c.txt", "fine")
    passages, refusals = read(tmp_path)
    assert ([p.id for p in passages], [r.reason for r in refusals]) == (
        ["c.txt"],
        ["empty file", "not UTF-8 (byte 1)"],
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"_id": "x", "text": "cut', "not JSON"),
        ('{"_id": "x", "text": "t", "score": NaN}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([1, 2], "not an object but a list"),
        ("null", "not an object but null"),
        ({"_id": "x", "title": "T"}, "no 'text' or 'contents' field"),
        ({"_id": "x", "title": "T", "text": None}, "no 'text' or 'contents' field"),
        ({"_id": "x", "title": " ", "text": ""}, "text and title are empty"),
        ({"_id": "x", "text": 5}, "'text' is not text but a number"),
        ({"_id": "x", "text": ["s", "t"]}, "'text' is not text but a list"),
        ({"_id": "x", "title": {}, "text": "t"}, "'title' is not text but an object"),
        ({"_id": "", "text": "t"}, "'_id' is empty"),
        ({"_id": True, "text": "t"}, "'_id' is not text but a boolean"),
        ({"_id": ["x"], "text": "t"}, "'_id' is not text but a list"),
        ({"_id": "x", "text": "\ud800"}, "'text' cannot be stored as UTF-8"),
        ({"_id": "\udfff", "text": "t"}, "'_id' cannot be stored as UTF-8"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_the_rest_read(tmp_path: Path, row: object, reason: str) -> None:
    assert first_reason(tmp_path, row).startswith(reason)
    assert read(tmp_path / "c.jsonl")[0] == PASSAGES


def test_a_line_that_is_not_utf8_is_refused_alone(tmp_path: Path) -> None:
    passages, refusals = read(written(tmp_path / "c.jsonl", b'{"_id": "x", "text": "\xe9"}\n' + LINES))
    assert (passages, [r.reason for r in refusals]) == (PASSAGES, ["not UTF-8 (byte 23 of the line)"])


def test_nul_and_line_separators_inside_text_are_kept(tmp_path: Path) -> None:
    text = "a\0b\u2028c\u0085d"
    line = json.dumps({"_id": "x", "text": text}, ensure_ascii=False)
    assert read(written(tmp_path / "c.jsonl", line))[0] == [Passage("x", "", text)]


def test_a_document_of_two_megabytes_is_one_passage(tmp_path: Path) -> None:
    text = "word " * 460_000
    for name in ("c.jsonl", "c.json"):
        content = json.dumps({"_id": "x", "text": text})
        assert read(written(tmp_path / name, f"[{content}]" if name == "c.json" else content))[0][0].text == text


@pytest.mark.parametrize(("value", "id_"), [(7, "7"), (1.5, "1.5"), (0, "0")])
def test_a_number_id_is_cast_to_text(tmp_path: Path, value: float, id_: str) -> None:
    assert read(written(tmp_path / "c.jsonl", json.dumps({"idx": value, "text": "t"})))[0][0].id == id_


def test_a_missing_or_null_id_is_made_from_the_content(tmp_path: Path) -> None:
    content = '{"title": "T", "text": "one"}\n{"_id": null, "contents": "two"}\n'
    ids = [p.id for p in read(written(tmp_path / "c.jsonl", content))[0]]
    assert ids == [content_id("T", "one"), content_id("", "two")]


def test_a_content_id_stays_the_same_between_versions() -> None:
    assert content_id("T", "one") == content_id("", "T\none") == "text-1eb253c8ed71f5e6"


def test_other_fields_become_meta(tmp_path: Path) -> None:
    line = '{"_id": "x", "id": 3, "text": "t", "contents": "c", "tags": ["u", null]}'
    assert read(written(tmp_path / "c.jsonl", line))[0][0].meta == {"id": 3, "contents": "c", "tags": ["u", None]}


def test_csv_cells_are_text_and_may_hold_line_breaks(tmp_path: Path) -> None:
    content = 'id,text,year\n007,"one\ntwo, three",1999\nNA,null,\n'
    assert read(written(tmp_path / "c.csv", content))[0] == [
        Passage("007", "", "one\ntwo, three", {"year": "1999"}),
        Passage("NA", "", "null", {"year": ""}),
    ]


def test_tsv_quotes_are_plain_characters(tmp_path: Path) -> None:
    assert read(written(tmp_path / "c.tsv", 'id\ttext\na\t"open\nb\ttwo\n'))[0][0].text == '"open'


def test_bad_csv_rows_are_refused_with_their_numbers_and_the_rest_read(tmp_path: Path) -> None:
    content = b"_id,title,text\nx,one\na,A,one\ny,\xff,t\nb,B,two\nz,1,2,3\n"
    passages, refusals = read(written(tmp_path / "c.csv", content))
    assert passages == PASSAGES
    assert [r.where.rpartition(" ")[2] for r in refusals] == ["2", "4", "6"]


def test_items_of_an_array_before_a_break_are_kept_and_the_rest_is_refused(tmp_path: Path) -> None:
    passages, refusals = read(written(tmp_path / "c.json", json.dumps(ROWS)[:-1] + ', {"_id": "c", "te'))
    assert (passages, [r.where for r in refusals]) == (PASSAGES, [f"{tmp_path / 'c.json'}: item 3"])


def test_array_items_longer_than_a_block_are_read_whole(tmp_path: Path) -> None:
    rows = [{"_id": str(n), "text": "é" * n} for n in (1, 65_535, 65_536, 200_000, 3)]
    content = json.dumps(rows, ensure_ascii=False)
    assert [len(p.text) for p in read(written(tmp_path / "c.json", content))[0]] == [1, 65_535, 65_536, 200_000, 3]


def test_an_array_item_that_is_not_utf8_is_refused_alone(tmp_path: Path) -> None:
    content = b'[{"_id": "x", "text": "\xff"}, ' + json.dumps(ROWS).encode()[1:]
    passages, refusals = read(written(tmp_path / "c.json", content))
    assert (passages, len(refusals)) == (PASSAGES, 1)


def test_one_id_with_other_content_is_refused_and_with_the_same_content_dropped(tmp_path: Path) -> None:
    again = json.dumps({"_id": "a", "title": "A", "text": "other"})
    reading = read_corpus([written(tmp_path / "c.jsonl", LINES + LINES + again.encode())])
    assert list(reading.passages) == PASSAGES
    assert dict(reading.counts) == {"passages": 2, "duplicates": 2, "refusals": 1}
    assert reading.refusals[0].where.endswith(":5")


def test_one_id_in_two_files_of_one_call_is_one_passage(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, LINES) for name in ("c.jsonl", "d.jsonl")]
    assert read(*paths) == (PASSAGES, [])


def test_two_ids_with_one_content_are_both_kept() -> None:
    passages = (Passage("a", "T", "x"), Passage("b", "T", "x"))
    assert distinct(passages) == (passages, (), 0)


def test_distinct_keeps_the_first_and_counts_the_rest() -> None:
    first, same, other = Passage("a", "T", "x"), Passage("a", "T", "x", {"n": 1}), Passage("a", "T", "y")
    result = distinct([first, same, other])
    assert (result.passages, [r.where for r in result.refusals], result.duplicates) == ((first,), ["passage 3"], 1)


def test_refusals_are_told_as_they_happen(tmp_path: Path) -> None:
    told: list[Refusal] = []
    reading = read_corpus([written(tmp_path / "c.jsonl", b"{\n" + LINES)], on_refusal=told.append)
    next(reading.passages)
    assert told == reading.refusals
    assert len(told) == 1


def test_reading_holds_one_row_at_a_time(tmp_path: Path) -> None:
    reading = read_corpus([written(tmp_path / "c.jsonl", LINES + b"{")])
    next(reading.passages)
    assert (reading.counts["passages"], reading.refusals) == (1, [])


def test_a_missing_path_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere\.jsonl' does not exist"):
        read_corpus([written(tmp_path / "c.jsonl", LINES), tmp_path / "nowhere.jsonl"])


def test_an_unknown_format_is_an_error_that_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no known format.*\.parquet"):
        read_corpus([written(tmp_path / "c.docx", "x")])


def test_no_path_at_all_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        read_corpus([])


@pytest.mark.parametrize(
    ("name", "content"), [("c.jsonl", b""), ("c.jsonl", b"{\n"), ("c.json", b"[]"), ("d/x.png", b"")]
)
def test_a_corpus_without_a_passage_is_an_error(tmp_path: Path, name: str, content: bytes) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(CorpusError, match="No passage in"):
        read(path.parent if name.startswith("d/") else path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.jsonl.gz", gzip.compress(LINES)[:-12]),
        ("c.jsonl.gz", LINES),
        ("c.jsonl.xz", lzma.compress(LINES)[:-20]),
        ("c.parquet", b"PAR1 no"),
        ("c.csv", b""),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(CorpusError, match=name.replace(".", r"\.")):
        read(written(tmp_path / name, content))
