"""A target is there when it is whole, and what was there before is replaced only when that was asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_index import PASSAGES, hashes, index_of, open_index, stating

from hippogpu.errors import HippoError, UsageError
from hippogpu.exchange import export_index, form_of, import_parquet, parquet_export
from hippogpu.store import verify

KILLED = """
import os, signal, sys
from pathlib import Path
import hippogpu.exchange.parquet_import as importing
from hippogpu.exchange import export_index, import_parquet

folder = Path(sys.argv[1])
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
importing.publish = die
kill_at_edges = lambda stage, done, whole: die() if stage in ("graph", "edges") else None

def export(name):
    export_index(folder / "small.hippo", folder / name, overwrite=True, on_progress=kill_at_edges)

for work in (
    lambda: export("x.parquet"),
    lambda: export("x.graphml.gz"),
    lambda: export("old.parquet"),
    lambda: import_parquet(folder / "copy.hippo", folder / "old.parquet"),
):
    child = os.fork()
    if not child:
        work()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which exports, a replacement of old.parquet and an import were killed half-way."""
    folder = tmp_path_factory.mktemp("killed")
    index_of(folder / "small.hippo")
    export_index(folder / "small.hippo", folder / "old.parquet")
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=True)
    return folder


@pytest.mark.parametrize("name", ["x.parquet", "x.graphml.gz"])
def test_a_killed_export_leaves_no_target_and_the_next_one_cleans_up(killed: Path, name: str) -> None:
    assert not (killed / name).exists()
    assert (killed / f"{name}.partial").exists()
    export_index(killed / "small.hippo", killed / name)
    assert (killed / name).exists()
    assert not (killed / f"{name}.partial").exists()


def test_a_killed_import_leaves_no_index_and_the_next_one_makes_it(killed: Path) -> None:
    assert not (killed / "copy.hippo").exists()
    import_parquet(killed / "copy.hippo", killed / "old.parquet")
    assert verify(killed / "copy.hippo", full=True) == []
    assert not (killed / "copy.hippo.partial").exists()


def test_a_killed_replacement_leaves_the_old_export(killed: Path) -> None:
    assert (killed / "old.parquet.partial").exists()
    import_parquet(killed / "old.hippo", killed / "old.parquet")


def test_an_export_that_fails_leaves_nothing(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_export, "write_records", full_disk)
    with pytest.raises(HippoError, match=r"x\.parquet' cannot be written: No space left.*Make room"):
        export_index(made, tmp_path / "x.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["small.hippo"]


@pytest.mark.parametrize("name", ["x.parquet", "x.graphml", "x.csv"])
def test_a_target_that_is_there_is_refused_without_overwrite(made: Path, tmp_path: Path, name: str) -> None:
    export_index(made, tmp_path / name)
    with pytest.raises(UsageError, match="--overwrite"):
        export_index(made, tmp_path / name)
    index_of(made, [*PASSAGES, stating("new", "more|is|said")])
    rows = export_index(made, tmp_path / name, overwrite=True).rows
    assert max(rows.values()) >= 19
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.hippo", name]


def test_nothing_but_an_export_is_ever_replaced(made: Path, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").mkdir()
    (tmp_path / "x.parquet" / "diary.txt").write_text("mine")
    for target, form in ((tmp_path / "x.parquet", None), (made, "parquet"), (made, "edges"), (tmp_path, "graphml")):
        with pytest.raises(UsageError, match=r"no export of this form|in the way|exists|index itself"):
            export_index(made, target, form=form, overwrite=True)  # type: ignore[arg-type]
    assert (tmp_path / "x.parquet" / "diary.txt").read_text() == "mine"
    assert verify(made, full=True) == []


def test_an_export_beside_which_something_else_lies_is_not_replaced(made: Path, tmp_path: Path) -> None:
    export_index(made, tmp_path / "x.parquet")
    (tmp_path / "x.parquet" / "diary.txt").write_text("mine")
    with pytest.raises(UsageError, match="no export of this form"):
        export_index(made, tmp_path / "x.parquet", overwrite=True)


def test_a_folder_called_partial_that_is_not_ours_is_left_alone(made: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tsv.partial").mkdir()
    (tmp_path / "x.tsv.partial" / "diary.txt").write_text("mine")
    with pytest.raises(UsageError, match="in the way"):
        export_index(made, tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv.partial" / "diary.txt").read_text() == "mine"


def test_one_process_at_a_time_writes_a_target(made: Path, tmp_path: Path) -> None:
    def told(stage: str, done: int, whole: int) -> None:
        export_index(made, tmp_path / "x.tsv")

    with pytest.raises(UsageError, match="Another process"):
        export_index(made, tmp_path / "x.tsv", on_progress=told)


def test_a_folder_moved_aside_by_a_killed_replacement_is_put_back(made: Path, tmp_path: Path) -> None:
    export_index(made, tmp_path / "x.parquet")
    (tmp_path / "x.parquet.partial").mkdir()
    (tmp_path / "x.parquet.partial" / "LOCK").touch()
    os.rename(tmp_path / "x.parquet", tmp_path / "x.parquet.partial" / "replaced")
    with pytest.raises(UsageError, match="--overwrite"):
        export_index(made, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet" / "export.json").is_file()


def test_a_missing_parent_and_a_missing_index_are_named(made: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        export_index(made, tmp_path / "no" / "x.tsv")
    with pytest.raises(HippoError, match="There is no folder"):
        export_index(tmp_path / "none.hippo", tmp_path / "x.tsv")
    assert not (tmp_path / "none.hippo").exists()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("a.parquet", "parquet"), ("A.GRAPHML", "graphml"), ("a.graphml.gz", "graphml"), ("a.csv.gz", "edges")),
        *(("a.tsv", "edges"), ("a.qdrant", "qdrant"), ("a.chroma", "chroma"), ("a.db", "milvus")),
    ],
)
def test_an_ending_says_the_form(name: str, form: str) -> None:
    assert form_of(Path(name)) == form


@pytest.mark.parametrize("name", ["a", "a.json", "a.gz", "a.parquet.gz", "a.db.gz", ".tsv.d"])
def test_another_ending_says_none(name: str) -> None:
    with pytest.raises(UsageError, match="does not say by its ending"):
        form_of(Path(name))


@pytest.mark.parametrize("name", ["x.tsv", "x.csv.gz", "x.graphml"])
def test_a_file_of_another_kind_is_not_replaced(made: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"_id": "mine"}\n')
    with pytest.raises(UsageError, match="no export of this form"):
        export_index(made, tmp_path / name, overwrite=True)
    assert (tmp_path / name).read_text() == '{"_id": "mine"}\n'


def test_nothing_is_exported_into_the_index_itself(made: Path) -> None:
    with pytest.raises(UsageError, match="the folder of the index itself"):
        export_index(made, made / "x.parquet")


def test_an_empty_index_comes_back_empty(made: Path, tmp_path: Path) -> None:
    with open_index(made) as index:
        index.delete([passage.id for passage in PASSAGES])
        index.commit()
    export_index(made, tmp_path / "x.parquet")
    import_parquet(tmp_path / "copy.hippo", tmp_path / "x.parquet")
    assert hashes(tmp_path / "copy.hippo") == hashes(made)
