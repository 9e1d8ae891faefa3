"""Failures, interruptions and kills: what was finished is not done again, and the end is the undisturbed index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kill_points
import pytest
from small_index import PASSAGES, Counting, Saying, hashes, index_of, open_index, stating

from hippogpu import Index, IndexConfig, Searcher
from hippogpu.config import PROFILES
from hippogpu.errors import ConfigError, IndexMissingError
from hippogpu.index.logs import log_path
from hippogpu.store import current_manifest

READ_BEFORE = {"in_extraction": ["p3", "p4"]}
ENCODED_AFTER = ("in_extraction", "before_encoding", "in_encoding")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of indexes, one a point at which its process was killed."""
    folder = tmp_path_factory.mktemp("killed")
    # A child of fork can use compiled threads only in this one of numba's layers.
    layer = {"NUMBA_THREADING_LAYER": "workqueue"}
    subprocess.run([sys.executable, kill_points.__file__, str(folder)], check=True, env=os.environ | layer)
    return folder


@pytest.fixture
def cut_short(killed: Path, tmp_path: Path) -> Path:
    """A copy of the index that was killed in encoding."""
    return Path(shutil.copytree(killed / "in_encoding", tmp_path / "cut_short"))


def encoded_before(killed: Path) -> list[str]:
    """The texts whose vectors were handed on before the kill in encoding."""
    texts: list[str] = json.loads((killed / "in_encoding.json").read_text())
    return texts


@pytest.mark.parametrize("point", [point.__name__ for point in kill_points.POINTS])
def test_a_run_after_a_kill_equals_the_undisturbed_index(made: Path, killed: Path, tmp_path: Path, point: str) -> None:
    root = Path(shutil.copytree(killed / point, tmp_path / "copy"))
    extractor, embedder = Saying(), Counting()
    index_of(root, extractor=extractor, embedder=embedder)
    assert hashes(root) == hashes(made)
    assert extractor.seen == READ_BEFORE.get(point, [])
    assert bool(embedder.texts) == (point in ENCODED_AFTER)


def test_what_was_encoded_before_a_kill_is_not_encoded_again(killed: Path, cut_short: Path) -> None:
    embedder = Counting()
    index_of(cut_short, embedder=embedder)
    assert len(encoded_before(killed)) == 6
    assert set(embedder.texts).isdisjoint(encoded_before(killed))
    assert len(embedder.texts) == len(set(embedder.texts))


def test_a_kill_while_extending_leaves_the_generation_before_it(killed: Path) -> None:
    root = killed / "while_extending"
    assert (current_manifest(root).generation, len(list((root / "manifests").iterdir()))) == (1, 2)
    assert len(Searcher.open(root).rank(["who?"], k=9)[0].hits) == 4


def test_a_spoiled_segment_is_encoded_again_and_counted(made: Path, killed: Path, cut_short: Path) -> None:
    embedder = Counting()
    segment = min(cut_short.glob("vectors/*/float32-*.npy"))
    segment.write_bytes(segment.read_bytes()[:-1])
    report = index_of(cut_short, embedder=embedder)
    again = set(embedder.texts) & set(encoded_before(killed))
    assert (report.spoiled, len(again), hashes(cut_short)) == (1, 3, hashes(made))


@pytest.mark.parametrize("stage", ["extract", "encode", "synonyms"])
def test_an_interruption_from_the_progress_leaves_a_usable_folder(made: Path, tmp_path: Path, stage: str) -> None:
    def interrupt(name: str, done: int, whole: int) -> None:
        if name == stage:
            raise KeyboardInterrupt

    root = tmp_path / "stopped"
    with open_index(root) as index:
        index.add(PASSAGES)
        with pytest.raises(KeyboardInterrupt):
            index.commit(on_progress=interrupt)
    with pytest.raises(IndexMissingError):
        current_manifest(root)
    index_of(root)
    assert hashes(root) == hashes(made)


def test_an_interrupted_commit_can_be_made_again_by_the_same_writer(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "stopped"
    with open_index(root, extractor=Saying(stop_after=2)) as index:
        index.add(PASSAGES)
        with pytest.raises(KeyboardInterrupt):
            index.commit()
        index._extractor = Saying()
        index.commit()
    assert hashes(root) == hashes(made)


def test_progress_names_its_stages_and_ends_each_at_the_whole(root: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    with open_index(root) as index:
        index.add(PASSAGES)
        index.commit(on_progress=lambda name, done, whole: seen.update({name: (done, whole)}))
    assert set(seen) == {"extract", "tables", "encode", "synonyms", "graph", "words", "diffuse"}
    assert all(done == whole for done, whole in seen.values())


def test_a_failed_passage_is_stored_listed_and_found(root: Path) -> None:
    report = index_of(root, extractor=Saying(failing=["p1"]))
    assert (report.extraction.failed, report.counts["without_record"]) == ((("p1", "down"),), 1)
    ranking = Searcher.open(root).rank([PASSAGES[1].text], k=5)[0]
    assert "p1" in [hit.passage.id for hit in ranking.hits]


def test_a_failed_passage_is_read_on_the_next_run_and_completes_the_index(made: Path, tmp_path: Path) -> None:
    root, again = tmp_path / "failed", Saying()
    index_of(root, extractor=Saying(failing=["p1", "p4"]))
    report = index_of(root, extractor=again)
    assert (again.seen, report.generation, hashes(root)) == (["p1", "p4"], 2, hashes(made))


def test_a_passage_that_fails_again_makes_no_new_generation(root: Path) -> None:
    index_of(root, extractor=Saying(failing=["p1"]))
    report = index_of(root, extractor=Saying(failing=["p1"]))
    assert (report.changed, report.generation, report.extraction.failed) == (False, 1, (("p1", "down"),))


def test_all_passages_may_fail(root: Path) -> None:
    index_of(root, extractor=Saying(failing=[p.id for p in PASSAGES]))
    assert Searcher.open(root).rank(["who?"], k=1)[0].fallback is not None
    assert index_of(root).counts["without_record"] == 0


def test_a_log_that_was_lost_is_read_again_before_its_facts_go(made: Path) -> None:
    log_path(made, "saying").unlink()
    extractor = Saying()
    report = index_of(made, [stating("new", "x|y|zzz")], extractor=extractor)
    assert sorted(extractor.seen) == ["new", "p0", "p1", "p2", "p3", "p4"]
    assert report.counts["facts"] == 8


@pytest.mark.parametrize("config", list(PROFILES.values()))
def test_what_a_lost_log_said_is_taken_from_the_index_where_nobody_reads(root: Path, config: IndexConfig) -> None:
    index_of(root, config=config)
    before = hashes(root)
    log_path(root, "saying").unlink()
    with Index.open(root, embedder=Counting()) as index:
        index.add([PASSAGES[0]._replace(meta={"x": 1})])
        assert index.commit().recovered == 5
    assert hashes(root) | {"ids": before["ids"]} == before


def test_new_passages_still_need_a_reader_when_a_log_was_lost(made: Path) -> None:
    log_path(made, "saying").unlink()
    with Index.open(made, embedder=Counting()) as index:
        index.add([stating("new", "x|y|z")])
        with pytest.raises(ConfigError, match="1 texts"):
            index.commit()


def test_an_altered_line_of_the_log_is_said_and_its_passage_read_again(made: Path) -> None:
    path, extractor = log_path(made, "saying"), Saying()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b"Ada", b"Eve"), *lines[2:]]))
    report = index_of(made, [stating("new", "x|y|zzz")], extractor=extractor)
    assert (sorted(extractor.seen), len(report.damage), report.counts["facts"]) == (["new", "p1"], 1, 8)


def test_what_another_extractor_read_is_kept(made: Path) -> None:
    other = Saying(name="other")
    report = index_of(made, [stating("new", "x|y|zzz")], extractor=other)
    assert (other.seen, report.counts["facts"]) == (["new"], 8)


@pytest.mark.parametrize("pair", [("a/b", "a_b"), ("a:b", "a/b"), ("x" * 300, "x" * 299), ("..", "__")])
def test_extractors_of_different_names_have_different_logs_in_the_folder(root: Path, pair: tuple[str, str]) -> None:
    one, other = (log_path(root, name) for name in pair)
    assert one != other
    assert one.parent == other.parent == root / "openie"
    assert len(one.name) < 200
