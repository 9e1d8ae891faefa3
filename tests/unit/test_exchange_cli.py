"""The verbs export and import: exit codes, lines for people, one object for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exchange_cases import RICH, rich_index
from small_index import hashes, index_of

from hippogpu import Passage
from hippogpu.cli import app
from hippogpu.testing.cli import run_verb


def test_there_and_back(made: Path, tmp_path: Path) -> None:
    out = run_verb(app, "export", str(made), str(tmp_path / "x.parquet"))
    assert (out.code, "passages" in out.out, "parquet" in out.out) == (0, True, True)
    back = run_verb(app, "import", str(tmp_path / "copy"), str(tmp_path / "x.parquet"))
    assert (back.code, "26 files as in the exported index" in back.out) == (0, True)
    assert hashes(tmp_path / "copy") == hashes(made)


def test_export_tells_programs_one_object(made: Path, tmp_path: Path) -> None:
    out = run_verb(app, "export", str(made), str(tmp_path / "x.tsv"), "--json", "-q")
    value = json.loads(out.out)
    assert (out.code, out.err) == (0, "")
    assert {name: value[name] for name in ("form", "rows", "refused", "replaced", "notes")} == {
        **{"form": "edges", "rows": {"edges": 17}},
        **{"refused": [], "replaced": [], "notes": []},
    }
    assert value["bytes"] == (tmp_path / "x.tsv").stat().st_size


def test_import_tells_programs_one_object(made: Path, tmp_path: Path) -> None:
    run_verb(app, "export", str(made), str(tmp_path / "x"), "--to", "parquet")
    out = run_verb(app, "import", str(tmp_path / "copy"), str(tmp_path / "x"), "--from", "parquet", "--json", "-q")
    value = json.loads(out.out)
    assert (out.code, value["records"], value["same_files"], value["counts"]["facts"]) == (0, 5, 26, 7)


def test_replaced_characters_are_listed_and_fail_nothing(root: Path, tmp_path: Path) -> None:
    index_of(root, [Passage("a\x01", "", "x|y|z")])
    out = run_verb(app, "export", str(root), str(tmp_path / "g.graphml"))
    assert (out.code, "U+0001" in out.err) == (0, True)


WRONG = [
    ("export", "INDEX", "x.unknown"),
    ("export", "INDEX", "x.tsv", "--what", "facts"),
    ("export", "INDEX", "there"),
    ("export", "INDEX", "x.qdrant", "--what", "passages,others"),
    ("import", "INDEX", "x.parquet"),
    ("import", "new", "x.graphml"),
    ("import", "new", "x.parquet", "--encoder", "hashing"),
    ("import", "new", "x.parquet", "--no-vectors"),
    ("import", "new", "x.chroma"),
]


@pytest.mark.parametrize("words", WRONG)
def test_wrong_usage_is_exit_2_in_one_line(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    out = run_verb(app, *(str(made) if word == "INDEX" else word for word in words), "-q")
    assert out.code == 2
    assert out.err.startswith("error: ")
    assert not (tmp_path / "new").exists()


def test_a_spoiled_export_is_exit_1(made: Path, tmp_path: Path) -> None:
    run_verb(app, "export", str(made), str(tmp_path / "x.parquet"))
    (tmp_path / "x.parquet" / "facts.parquet").unlink()
    out = run_verb(app, "import", str(tmp_path / "copy"), str(tmp_path / "x.parquet"), "-q")
    assert (out.code, "facts.parquet" in out.err) == (1, True)


def test_overwrite_replaces(made: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "x.csv")
    assert [run_verb(app, "export", str(made), target, *more).code for more in ([], [], ["--overwrite"])] == [0, 2, 0]


def test_a_store_there_and_back(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("qdrant_client", reason="the extra 'qdrant' is not installed")
    rich_index(root)
    source = str(tmp_path / "x.qdrant")
    assert run_verb(app, "export", str(root), source, "--what", "passages,facts").code == 0
    words = ["import", str(tmp_path / "copy"), source, "--encoder", "hashing:32"]
    told, again = run_verb(app, *words), run_verb(app, *words, "--json")
    assert (told.code, "Nobody has read" in told.err, "hashing-32" in told.err) == (0, True, True)
    value = json.loads(again.out)
    assert (value["unchanged"], value["changed"], value["vectors"]) == (len(RICH), False, len(RICH))
