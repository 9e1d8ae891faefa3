"""What a commit and gc remove from a folder, and what they leave alone."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from small_index import PASSAGES, hashes, index_of, open_index, stating

from hippogpu import Index, RunConfig, Searcher, clean_index
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import HippoError, IndexLockedError, IndexMissingError, StoredIndexError
from hippogpu.openie import ExtractionLog
from hippogpu.store import current_manifest, verify
from hippogpu.store.generations import manifest_path


@pytest.fixture
def changed(made: Path) -> Path:
    """An index of three generations, all on disk."""
    for number in (1, 2):
        index_of(made, [stating(f"new{number}", f"x|y|z{number}")])
    return made


def generations(root: Path) -> list[int]:
    return sorted(int(path.stem) for path in (root / "manifests").iterdir())


def files(root: Path) -> set[str]:
    return {path.name for path in (root / "files").iterdir()}


def needed(root: Path) -> set[str]:
    return {entry.file for entry in current_manifest(root).files.values()}


def aged(root: Path, generation: int, seconds: float) -> None:
    """Sets when a generation was published."""
    then = time.time() - seconds
    os.utime(manifest_path(root, generation), (then, then))


def test_only_the_current_generation_stays_without_a_grace(changed: Path) -> None:
    before, on_disk = hashes(changed), len(files(changed))
    report = clean_index(changed, grace_s=0.0)
    assert (report.generations, report.kept, generations(changed)) == (2, 0, [3])
    assert (report.files, files(changed)) == (on_disk - len(needed(changed)), needed(changed))
    assert (hashes(changed), verify(changed, full=True)) == (before, [])


def test_a_generation_stays_for_the_grace_after_it_was_replaced(changed: Path) -> None:
    for generation, seconds in ((1, 500), (2, 100), (3, 10)):
        aged(changed, generation, seconds)
    assert clean_index(changed, grace_s=50).kept == 1
    assert generations(changed) == [2, 3]


def test_a_generation_that_never_became_current_goes(changed: Path) -> None:
    content = manifest_path(changed, 3).read_bytes()
    manifest_path(changed, 4).write_bytes(content)
    clean_index(changed, grace_s=1e9)
    assert generations(changed) == [1, 2, 3]


def test_a_second_time_there_is_nothing_to_remove(changed: Path) -> None:
    clean_index(changed, grace_s=0.0)
    assert clean_index(changed, grace_s=0.0) == (0, 0, 0, 0, 0, 0)


def test_half_written_files_go_and_foreign_ones_stay(made: Path) -> None:
    for name in (
        "files/.phrases.77.tmp",
        "files/phrases-0123456789abcdef.arrow",
        "manifests/.1.json.8.tmp",
        ".CURRENT.9.tmp",
    ):
        (made / name).write_text("half")
    for name in ("files/notes.txt", "NOTES", "manifests/notes.json"):
        (made / name).write_text("mine")
    assert clean_index(made, grace_s=0.0).files == 4
    assert all((made / name).is_file() for name in ("files/notes.txt", "NOTES", "manifests/notes.json"))


def test_an_earlier_manifest_that_is_damaged_goes_with_its_files(changed: Path) -> None:
    manifest_path(changed, 2).write_text("{")
    assert clean_index(changed, grace_s=1e9).generations == 1
    assert generations(changed) == [1, 3]


def test_a_reader_keeps_the_generation_that_it_opened(changed: Path) -> None:
    reader = Searcher.open(changed)
    before = reader.rank(["who wrote notes?"], k=9)[0].hits
    index_of(changed, [stating("p1", "x|y|z")])
    clean_index(changed, grace_s=0.0)
    assert reader.rank(["who wrote notes?"], k=9)[0].hits == before


def test_a_commit_removes_what_was_replaced_longer_ago_than_the_grace(made: Path) -> None:
    index_of(made, [stating("a", "x|y|z")])
    aged(made, 2, 100)
    index_of(made, [stating("b", "x|y|zz")])
    assert generations(made) == [2, 3]


def test_a_commit_without_grace_leaves_one_generation(made: Path) -> None:
    from small_index import WIDTH, Saying

    run = RunConfig(grace_s=0.0)
    with Index.open(made, extractor=Saying(), embedder=HashingEmbedder(WIDTH), run=run) as index:
        index.add([stating("a", "x|y|z")])
        index.commit()
    assert (generations(made), files(made)) == ([2], needed(made))


def test_what_cannot_be_removed_fails_no_commit(made: Path, monkeypatch, caplog) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr("hippogpu.index.tidying.collect_garbage", refuse)
    assert index_of(made, [stating("a", "x|y|z")]).generation == 2
    assert "could not be removed" in caplog.text


def test_gc_is_refused_while_a_writer_holds_the_folder(made: Path) -> None:
    with open_index(made), pytest.raises(IndexLockedError):
        clean_index(made, grace_s=0.0)


def test_gc_of_a_folder_without_index_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(IndexMissingError):
        clean_index(tmp_path / "none", grace_s=0.0)
    assert list(tmp_path.iterdir()) == []


def test_unfinished_work_stays_unless_it_is_named(made: Path) -> None:
    for name in ("vectors/x", "diffusing/y"):
        (made / name).mkdir(parents=True)
    clean_index(made, grace_s=0.0)
    assert (made / "vectors/x").is_dir()
    assert (made / "diffusing/y").is_dir()
    clean_index(made, grace_s=0.0, unfinished=True)
    assert not (made / "vectors").exists()
    assert not (made / "diffusing").exists()


def test_forgetting_leaves_the_records_of_what_is_held(made: Path) -> None:
    with open_index(made) as index:
        index.delete(["p1", "p3"])
        index.commit()
    log = made / "openie" / "saying.jsonl"
    for name in ("replies.sqlite", "replies.sqlite-wal", "saying.jsonl.torn"):
        (made / "openie" / name).write_text("said of p1")
    assert clean_index(made, grace_s=0.0, forget=True).records == 2
    with ExtractionLog(log) as kept:
        assert sorted(record.passage_id for record in kept.load().records.values()) == ["p0", "p2", "p4"]
    assert all(b"p1" not in path.read_bytes() for path in made.rglob("*") if path.is_file() and path.suffix != ".npy")


def test_an_index_whose_records_were_forgotten_reads_what_comes_back(made: Path) -> None:
    from small_index import Saying

    before, extractor = hashes(made), Saying()
    with open_index(made) as index:
        index.delete(["p4"])
        index.commit()
    clean_index(made, grace_s=0.0, forget=True)
    index_of(made, PASSAGES, extractor=extractor)
    assert (extractor.seen, hashes(made)) == (["p4"], before)


def lying_about(root: Path, word: bytes) -> list[str]:
    """The files that hold a word."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return [str(path.relative_to(root)) for path in paths if word in path.read_bytes()]


def test_forgetting_leaves_nothing_of_a_text_that_was_never_committed(made: Path) -> None:
    """Read, encoded, killed, and given up: its record, its vectors and half a file lie in the folder."""
    with open_index(made) as index, pytest.MonkeyPatch.context() as broken:
        broken.setattr("hippogpu.index.build.find_synonyms", failing)
        index.add([stating("new", "topsecret|is|kept")])
        with pytest.raises(RuntimeError):
            index.commit()
    segment = next((made / "vectors").rglob("float32-*.npy"))
    (segment.parent / ".float32.77.tmp").write_bytes(b"topsecret")
    assert len(lying_about(made, b"topsecret")) == 2
    clean_index(made, grace_s=0.0, forget=True)
    assert lying_about(made, b"topsecret") == []
    assert not segment.exists()


def failing(*parts: object, **named: object) -> None:
    raise RuntimeError("killed")


def test_half_written_vectors_go_with_the_next_gc(made: Path) -> None:
    folder = next((made / "vectors").iterdir())
    (folder / ".float32.77.tmp").write_bytes(b"half")
    assert clean_index(made, grace_s=0.0).files == 1


def test_forgetting_keeps_a_last_line_that_lacks_only_its_end(made: Path) -> None:
    log = made / "openie" / "saying.jsonl"
    log.write_bytes(log.read_bytes()[:-1])
    assert clean_index(made, grace_s=0.0, forget=True)[4:] == (0, 0)
    with ExtractionLog(log) as kept:
        assert len(kept.load().records) == 5


def test_forgetting_counts_damaged_lines_apart(made: Path) -> None:
    log = made / "openie" / "saying.jsonl"
    log.write_bytes(log.read_bytes() + b"rubbish\n")
    with open_index(made) as index:
        index.delete(["p1"])
        index.commit()
    assert clean_index(made, grace_s=0.0, forget=True)[4:] == (1, 1)


def test_forgetting_does_not_undo_a_forced_reading(made: Path) -> None:
    with open_index(made) as index:
        index.extract(forced=True)
    with pytest.raises(StoredIndexError, match=r"forced reading.*gc --unfinished"):
        clean_index(made, grace_s=0.0, forget=True)


@pytest.mark.parametrize("name", ["openie/x.jsonl", "manifests/0000000009.json", "files/x", "vectors/x"])
def test_a_pipe_is_not_waited_for(made: Path, name: str) -> None:
    os.mkfifo(made / name)
    with suppress(HippoError):
        clean_index(made, grace_s=1e9, forget=True)


def test_a_linked_manifest_in_grace_is_not_followed(made: Path, tmp_path: Path) -> None:
    index_of(made, [stating("a", "x|y|z")])
    manifest = manifest_path(made, 1)
    manifest.rename(tmp_path / "elsewhere")
    manifest.symlink_to(tmp_path / "elsewhere")
    assert clean_index(made, grace_s=1e9).generations == 1
    assert (tmp_path / "elsewhere").exists()


def test_an_index_in_a_folder_called_files_loses_none(tmp_path: Path) -> None:
    root = tmp_path / "files"
    index_of(root)
    (root / "phrases-0123456789abcdef.arrow").write_text("mine")
    clean_index(root, grace_s=0.0)
    assert (root / "phrases-0123456789abcdef.arrow").exists()
