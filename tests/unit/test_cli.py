"""The verbs as a user meets them: output, exit codes, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hippogpu.cli import app
from hippogpu.testing.cli import Ran, run_verb

PASSAGES = (
    {"_id": "p1", "title": "Oliver Badman", "text": "Oliver Badman is a politician from Montebello."},
    {"_id": "p2", "title": "Montebello", "text": "Montebello is a part of Rockland County."},
    {"_id": "p3", "title": "Erik Hort", "text": "Erik Hort was born in Montebello."},
)
RECORDS = (
    {"_id": "p1", "entities": [], "triples": [["Oliver Badman", "is from", "Montebello"]]},
    {"_id": "p2", "entities": [], "triples": [["Montebello", "part of", "Rockland County"], ["two", "fields"]]},
    {"_id": "p3", "entities": [], "triples": [["Erik Hort", "born in", "Montebello"]]},
)
QUERIES = (
    {"_id": "q1", "question": "In which county was Erik Hort born?", "answer": "x", "supporting_ids": ["p2", "p3"]},
    {"_id": "q2", "question": "Who is a politician?", "answer": "x", "supporting_ids": ["p1"]},
)


def write_lines(path: Path, rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_lines(tmp_path / "openie.jsonl", RECORDS)
    write_lines(tmp_path / "queries.jsonl", QUERIES)
    return write_lines(tmp_path / "corpus.jsonl", PASSAGES)


def index(corpus: Path, *more: str) -> Ran:
    folder = corpus.parent
    words = ["index", folder / "x.hippo", corpus, "--openie", folder / "openie.jsonl", "--encoder", "hashing:64"]
    return run_verb(app, *map(str, words), *more)


@pytest.fixture
def folder(corpus: Path) -> Path:
    assert index(corpus, "-q").code == 0
    return corpus.parent / "x.hippo"


def test_index_reports_what_it_took_and_what_it_dropped(corpus: Path) -> None:
    value = json.loads(index(corpus, "--json").out)
    assert (value["added"], value["counts"]["facts"], value["changed"]) == (3, 3, True)
    assert value["extraction"]["drops"] == {"2 fields, not 3": 1}


def test_indexing_again_changes_nothing(corpus: Path, folder: Path) -> None:
    value = json.loads(index(corpus, "--json").out)
    assert (value["changed"], value["generation"], value["unchanged"]) == (False, 1, 3)


def test_a_malformed_line_is_named_and_the_rest_indexed(corpus: Path) -> None:
    corpus.write_text(corpus.read_text() + '{"_id": "p4", "text": \n')
    ran = index(corpus, "--json")
    assert (ran.code, json.loads(ran.out)["added"]) == (1, 3)
    assert "corpus.jsonl:4" in json.loads(ran.out)["refused"][0]["where"]


def test_one_id_with_two_texts_is_refused_and_listed(corpus: Path) -> None:
    write_lines(corpus, [*PASSAGES, {"_id": "p1", "title": "Oliver", "text": "Another text."}])
    ran = index(corpus)
    assert ran.code == 1
    assert "p1" in ran.err


def test_a_passage_without_stored_extraction_is_listed_and_kept(corpus: Path) -> None:
    write_lines(corpus, [*PASSAGES, {"_id": "p9", "title": "New", "text": "Unread."}])
    ran = index(corpus, "--json")
    value = json.loads(ran.out)
    assert (ran.code, value["counts"]["passages"], value["extraction"]["failed"][0]["id"]) == (1, 4, "p9")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["index", "new.hippo", "nowhere.jsonl", "--openie", "openie.jsonl"], 1, "nowhere.jsonl"),
        (["index", "new.hippo", "empty.jsonl", "--openie", "openie.jsonl", "--encoder", "hashing"], 1, "No passage"),
        (["index", "new.hippo", "corpus.jsonl", "--openie", "gone.jsonl", "--encoder", "hashing"], 1, "gone.jsonl"),
        (["index", "new.hippo", "corpus.jsonl", "--extractor", "replay", "--encoder", "hashing"], 2, "--openie"),
        (["index", "new.hippo", "corpus.jsonl", "--extractor", "http", "--encoder", "hashing"], 2, "--url"),
        (["index", "new.hippo", "corpus.jsonl", "--extractor", "vllm", "--encoder", "hashing"], 2, "--model"),
        (["index", "new.hippo", "corpus.jsonl", "--extractor", "none", "--openie", "openie.jsonl"], 2, "'none'"),
        (["index", "x.hippo", "more.jsonl", "--encoder", "hashing:64"], 2, "1 texts have no record"),
        (["index", "x.hippo", "corpus.jsonl", "--edges", "bad.toml", "--encoder", "hashing:64"], 1, "bad.toml"),
        (["plan", "extract", "nowhere.jsonl"], 1, "nowhere.jsonl"),
        (["index", "x.hippo", "corpus.jsonl", "--encoder", "hashing:32"], 1, "hashing-64"),
        (["index", "x.hippo", "corpus.jsonl", "--profile", "oracle"], 2, "parallel"),
        (["index", "new.hippo", "corpus.jsonl", "--encoder", "word2vec"], 2, "word2vec"),
        (["index", "corpus.jsonl", "corpus.jsonl", "--encoder", "hashing"], 2, "is a file"),
        (["search", "nowhere.hippo", "who?"], 1, "nowhere.hippo"),
        (["search", "x.hippo"], 2, "--queries"),
        (["search", "x.hippo", "  "], 2, "empty"),
        (["search", "x.hippo", "who?", "-k", "0"], 2, "-k"),
        (["search", "x.hippo", "who?", "--method", "magic"], 2, "magic"),
        (["search", "x.hippo", "who?", "--config", "bad.toml"], 2, "dampnig"),
        (["eval", "x.hippo", "--queries", "corpus.jsonl"], 2, "gold passage"),
        (["info", "corpus.jsonl"], 1, "is a file"),
        (["verify", "nowhere.hippo"], 1, "nowhere.hippo"),
        (["conjure"], 2, "conjure"),
    ],
)
def test_wrong_calls_say_what_was_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("empty.jsonl").write_text("")
    write_lines(Path("more.jsonl"), [*PASSAGES, {"_id": "p9", "title": "New", "text": "Unread."}])
    Path("bad.toml").write_text("[search]\ndampnig = 0.5\n")
    ran = run_verb(app, *words)
    assert (ran.code, said in ran.err) == (code, True), ran.err


def test_search_prints_one_object_a_question(folder: Path) -> None:
    ran = run_verb(app, "search", str(folder), "--queries", str(folder.parent / "queries.jsonl"), "-k", "2", "--json")
    first, second = map(json.loads, ran.out.splitlines())
    assert (first["query_id"], second["query_id"], len(first["passages"])) == ("q1", "q2", 2)
    assert set(first) == {
        *("query_id", "query", "method", "solver", "fallback", "certified", "generation"),
        *("passages", "facts", "fact_search", "entities", "filter_failure", "seeds", "ms"),
    }


def test_search_shows_why(folder: Path) -> None:
    ran = run_verb(app, "search", str(folder), "Where was Erik Hort born?", "--why")
    assert "facts kept" in ran.out
    assert "erik hort" in ran.out


def test_eval_measures_each_method(folder: Path) -> None:
    ran = run_verb(app, "eval", str(folder), "--queries", str(folder.parent / "queries.jsonl"), "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row["method"], row["queries"], row["recall@5"]) for row in rows] == [("hippo", 2, 1.0), ("dense", 2, 1.0)]


def test_the_table_of_eval_fits_a_narrow_terminal(folder: Path) -> None:
    out = run_verb(app, "eval", str(folder), "--queries", str(folder.parent / "queries.jsonl")).out
    assert all(word in out for word in ("hippo", "dense", "R@20", "ndcg@10"))
    assert max(map(len, out.splitlines())) <= 80


def test_many_columns_of_eval_are_printed_some_at_a_time(folder: Path) -> None:
    methods = ["hippo", "hippo2", "dense", "bm25", "fusion"]
    words = [word for name in methods for word in ("--method", name)]
    line = ["eval", str(folder), "--queries", str(folder.parent / "queries.jsonl"), *words]
    out = CliRunner().invoke(app, line, env={"COLUMNS": "80"}).stdout
    heads = [line for line in out.splitlines() if line.startswith("┃ measure")]
    assert [name for name in methods if not any(f" {name} " in line for line in heads)] == []
    assert max(map(len, out.splitlines())) <= 80


def test_a_typo_in_a_configuration_names_table_and_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[llm.extract]\nmodle = 'm'\n")
    ran = run_verb(
        app, "index", str(folder), str(folder.parent / "corpus.jsonl"), "--config", str(tmp_path / "bad.toml")
    )
    assert (ran.code, "[llm.extract] of" in ran.err, "'modle'" in ran.err) == (2, True, True)


def test_eval_names_gold_that_is_not_in_the_index(folder: Path) -> None:
    queries = write_lines(folder.parent / "q.jsonl", [{"_id": "q", "question": "Who?", "supporting_ids": ["p1", "zz"]}])
    ran = run_verb(app, "eval", str(folder), "--queries", str(queries))
    assert "zz" in ran.err


def test_info_shows_the_manifest(folder: Path) -> None:
    value = json.loads(run_verb(app, "info", str(folder), "--json").out)
    assert (value["counts"]["passages"], value["encoder"]["name"]) == (3, "hashing-64")


def test_verify_finds_a_flipped_byte(folder: Path) -> None:
    file = next((folder / "files").glob("graph_weights-*"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    assert run_verb(app, "verify", str(folder)).code == 0
    ran = run_verb(app, "verify", str(folder), "--full")
    assert (ran.code, file.name in ran.out) == (1, True)


def test_verify_finds_an_altered_line_of_the_extraction_log(folder: Path) -> None:
    log = next((folder / "openie").glob("*.jsonl"))
    log.write_bytes(log.read_bytes().replace(b"Rockland", b"Rocklamd", 1))
    ran = run_verb(app, "verify", str(folder), "--full")
    assert (ran.code, f"{log.name}:2" in ran.out) == (1, True)


def test_doctor_tells_what_is_installed() -> None:
    value = json.loads(run_verb(app, "doctor", "--json").out)
    assert value["default_encoder"] == "all-MiniLM-L6-v2@53aa5117"
    assert value["default_extractor"].startswith("spacy-en_core_web_sm")


def test_the_command_is_installed() -> None:
    run = subprocess.run([sys.executable, "-m", "hippogpu", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip()


def test_an_index_of_edges_alone_needs_no_extractor(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.parent)
    links = [
        {"passages": ["p1", "p2"]},
        {"passage": "p3", "phrase": "towns", "kind": "tag"},
        {"passages": ["p1", "zz"]},
    ]
    write_lines(Path("links.jsonl"), links)
    words = ["index", "e.hippo", "corpus.jsonl", "--extractor", "none", "--edges", "links.jsonl"]
    ran = run_verb(app, *words, "--encoder", "hashing:64", "--json")
    value = json.loads(ran.out)
    assert (ran.code, value["edges_added"], value["counts"]["user_edges"], value["counts"]["facts"]) == (1, 2, 2, 0)
    assert [item["where"] for item in value["refused"]] == ["links.jsonl:3"]
    found = json.loads(run_verb(app, "search", "e.hippo", "a politician from Montebello", "--json").out)
    assert (found["fallback"], len(found["passages"])) == (None, 3)


def test_what_no_extractor_read_is_read_by_the_next_one(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.parent)
    run_verb(app, "index", "x.hippo", "corpus.jsonl", "--extractor", "none", "--encoder", "hashing:64", "-q")
    value = json.loads(index(corpus, "--json").out)
    assert (value["extraction"]["extracted"], value["counts"]["facts"], value["generation"]) == (3, 3, 2)


def test_what_is_refused_is_told_to_the_quiet_too(folder: Path) -> None:
    corpus, queries = folder.parent / "corpus.jsonl", folder.parent / "queries.jsonl"
    for path in (corpus, queries):
        path.write_text(path.read_text() + "{\n")
    runs = [
        index(corpus, "-q"),
        run_verb(app, "search", str(folder), "--queries", str(queries), "-q"),
        run_verb(
            app, "search", str(folder), "--queries", str(queries), "--output", str(folder.parent / "r.jsonl"), "-q"
        ),
        run_verb(app, "eval", str(folder), "--queries", str(queries), "-q"),
        run_verb(app, "plan", "extract", str(corpus), "-q"),
    ]
    assert [(ran.code, "jsonl:" in ran.err) for ran in runs] == [(1, True)] * len(runs)


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
from hippogpu.__main__ import main

class Interrupting:
    def find_spec(name, path=None, target=None):
        if name == "hippogpu.cli.deleting":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting)
main()
"""


def test_an_interruption_while_the_program_is_loaded_is_one_line_and_130() -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "error: Interrupted before anything was begun.\n")
