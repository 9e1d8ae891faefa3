"""The verbs delete and gc, and index --force, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hippogpu.cli import app
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.testing.cli import Ran, run_verb

PASSAGES: tuple[dict[str, Any], ...] = (
    {"_id": "p1", "title": "Oliver Badman", "text": "Oliver is a politician.", "year": 2019, "tags": ["a", "b"]},
    {"_id": "p2", "title": "Montebello", "text": "Montebello is a part of Rockland County.", "year": "2019"},
    {"_id": "p3", "title": "", "text": "Erik Hort was born in Montebello.", "tags": ["b"], "public": True},
    {"_id": "p 4", "title": "Leith", "text": "Leith is a port.", "place": {"of": {"origin": "sea"}}},
)
RECORDS = [{"_id": p["_id"], "entities": [], "triples": [[p["_id"], "is said of", "something"]]} for p in PASSAGES]


def write_lines(path: Path, rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(tmp_path / "corpus.jsonl", PASSAGES)
    write_lines(tmp_path / "openie.jsonl", RECORDS)
    assert index(tmp_path, "-q").code == 0
    return tmp_path / "x.hippo"


def index(tmp_path: Path, *more: str) -> Ran:
    words = ("index", tmp_path / "x.hippo", tmp_path / "corpus.jsonl", "--openie", tmp_path / "openie.jsonl")
    return run_verb(app, *map(str, words), "--encoder", "hashing:32", *more)


def delete(folder: Path, *words: str) -> Ran:
    return run_verb(app, "delete", str(folder), *words)


def ids(folder: Path) -> list[str]:
    return list(load_snapshot(folder, current_manifest(folder)).passages.ids)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["p1", "p 4"], ["p2", "p3"]),
        (["--where", "year=2019"], ["p3", "p 4"]),
        (["--where", 'year="2019"'], ["p1", "p3", "p 4"]),
        (["--where", "tags=b"], ["p2", "p 4"]),
        (["--where", "tags=b", "--where", "public=true"], ["p1", "p2", "p 4"]),
        (["--text", "Leith is a port."], ["p1", "p2", "p3"]),
        (["--text", "Leith\nLeith is a port.", "--text", "Erik Hort was born in Montebello."], ["p1", "p2"]),
        (["--text", "Leith is a port.", "--where", "tags=b"], ["p1", "p2", "p3", "p 4"]),
        (["p2", "--where", "tags=a"], ["p3", "p 4"]),
        (["--where", "year=2019.0"], ["p2", "p3", "p 4"]),
        (["--where", "place.of.origin=sea"], ["p1", "p2", "p3"]),
        (["--where", 'place={"of": {"origin": "sea"}}'], ["p1", "p2", "p3"]),
    ],
)
def test_passages_are_deleted_by_what_names_them(folder: Path, words: list[str], left: list[str]) -> None:
    assert delete(folder, *words, "--json").code == 0
    assert ids(folder) == left


def test_ids_come_from_a_file_in_lines_of_text_or_json(folder: Path) -> None:
    file = folder.parent / "ids.txt"
    file.write_text('\ufeffp1\n\n p 4 \n{"_id": "p3"}\n{"id": "p2"}\n{\n')
    ran = delete(folder, "--ids", str(file), "--json")
    refused = [item["where"] for item in json.loads(ran.out)["refused"]]
    assert (ran.code, ids(folder), refused) == (1, ["p2"], [f"{file}:5", f"{file}:6"])


def test_what_is_not_there_is_listed_and_the_rest_deleted(folder: Path) -> None:
    ran = delete(folder, "p1", "nobody")
    assert (ran.code, ids(folder)) == (1, ["p2", "p3", "p 4"])
    assert "nobody" in ran.err
    assert "3 passages left" in ran.out


def test_a_dry_run_names_the_ids_and_deletes_nothing(folder: Path) -> None:
    ran = delete(folder, "--where", "year=2019", "--dry-run")
    assert (ran.code, ran.out.split("\n")[:2], current_manifest(folder).generation) == (0, ["p1", "p2"], 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Nothing was named"),
        (["--where", "year"], "KEY=VALUE. Got 'year'"),
        (["--ids", "none.txt"], "none.txt"),
    ],
)
def test_a_call_that_means_nothing_is_wrong_usage(folder: Path, words: list[str], said: str) -> None:
    ran = delete(folder, *words)
    assert (ran.code, current_manifest(folder).generation) == (2, 1)
    assert said in ran.err


def test_deleting_from_nothing_makes_no_folder(tmp_path: Path) -> None:
    assert delete(tmp_path / "none", "p1").code == 1
    assert not (tmp_path / "none").exists()


def test_deleting_loads_no_encoder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*asked: str) -> None:
        raise AssertionError(asked)

    monkeypatch.setattr("hippogpu.cli.deleting.stored_embedder", refuse)
    assert delete(folder, "p1", "-q").code == 0


def test_a_field_that_no_passage_has_is_told_with_those_there_are(folder: Path) -> None:
    ran = delete(folder, "--where", "yeer=2019")
    assert (ran.code, current_manifest(folder).generation) == (0, 1)
    assert "No passage has the field 'yeer' in its metadata. Fields there are: place, public, tags, year." in ran.err
    assert "No passage fits." in delete(folder, "--where", "year=1066").err


def test_what_is_forgotten_is_gone_at_once(folder: Path) -> None:
    delete(folder, "p1", "-q")
    value = json.loads(run_verb(app, "gc", str(folder), "--forget", "--json").out)
    assert (value["generations"], value["kept"], value["records"]) == (1, 0, 1)


def test_an_index_whose_pointer_is_lost_is_made_again_as_it_was(folder: Path) -> None:
    (folder / "CURRENT").unlink()
    ran = run_verb(app, "search", str(folder), "who?")
    assert (ran.code, "it is missing" in ran.err, "verify" in ran.err) == (1, True, True)
    words = ("index", folder, folder.parent / "corpus.jsonl")
    assert run_verb(app, *map(str, words), "--json", "-q").code == 0
    assert current_manifest(folder).encoder.name == "hashing-32"


def test_gc_removes_earlier_generations_and_says_what(folder: Path) -> None:
    delete(folder, "p1", "-q")
    kept = json.loads(run_verb(app, "gc", str(folder), "--json").out)
    assert (kept["generations"], kept["kept"]) == (0, 1)
    value = json.loads(run_verb(app, "gc", str(folder), "--grace", "0", "--forget", "--json").out)
    assert (value["generations"], value["kept"], value["records"], value["bytes"] > 0) == (1, 0, 1, True)


def test_a_forced_run_reads_all_again(folder: Path) -> None:
    ran = index(folder.parent, "--force", "extract", "--json")
    value = json.loads(ran.out)
    assert (ran.code, value["generation"], value["extraction"]["extracted"]) == (0, 2, 4)


def test_an_unknown_force_is_wrong_usage(folder: Path) -> None:
    assert index(folder.parent, "--force", "everything").code == 2
