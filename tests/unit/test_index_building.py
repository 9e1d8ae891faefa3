"""Commits that are made out of core: what they keep for a killed one to go on with, what they take and say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_index import PASSAGES, hashes, index_of, open_index, stating

from hippogpu.config import IndexConfig, RunConfig
from hippogpu.errors import ExtractionError, StoredIndexError
from hippogpu.index import build, clean_index
from hippogpu.index.counting import count_pairs
from hippogpu.index.logs import Logs
from hippogpu.index.reading import collect
from hippogpu.index.records import Records
from hippogpu.index.stages import Stages, held_bytes
from hippogpu.index.tidying import building
from hippogpu.openie.log import ExtractionLog
from hippogpu.openie.places import Places, packed_keys, read_places
from hippogpu.tables import tabulate
from hippogpu.types import Edges, Passage, Record, Triple

RUN = RunConfig(grace_s=0)


class Cut(Exception):
    pass


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Commits whose tables are made in runs of a few passages; what is read of the records is noted."""
    read: list[int] = []

    def in_runs(records: Records, config: IndexConfig, **rest):  # type: ignore[no-untyped-def]
        return tabulate(records, config, **(rest | {"budget_bytes": 4000}))

    real = Records.__getitem__

    def noting(self: Records, i: int) -> Record | None:
        read.append(i)
        found: Record | None = real(self, i)
        return found

    monkeypatch.setattr(build, "tabulate", in_runs)
    monkeypatch.setattr(Records, "__getitem__", noting)
    return read


def many(count: int = 40) -> list[Passage]:
    return [
        *PASSAGES,
        *(stating(f"n{i}", f"Thing {i}|is near|Thing {i * 7 % count};A|has|b{i % 5}") for i in range(count)),
    ]


def test_an_index_built_in_runs_is_the_one_built_in_memory(tmp_path: Path, spilling: list[int]) -> None:
    index_of(tmp_path / "runs", many())
    assert spilling
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "tabulate", tabulate)
        index_of(tmp_path / "memory", many())
    assert hashes(tmp_path / "runs") == hashes(tmp_path / "memory")
    assert not (tmp_path / "runs" / "building").exists()


def cut_short(root: Path, stage: str = "assemble", passages: list[Passage] | None = None) -> Path:
    """Unfinished work of a commit that ended where that stage begins."""

    def fail(*_: object, **__: object) -> None:
        raise Cut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, stage, fail)
        with pytest.raises(Cut):
            index_of(root, passages or many())
    return next((root / "building").glob("tables-*"))


def test_a_commit_goes_on_with_the_tables_of_a_killed_one(tmp_path: Path, spilling: list[int]) -> None:
    root = tmp_path / "x.hippo"
    assert len(list(cut_short(root).glob("run-*.block"))) > 1
    spilling.clear()
    index_of(root, many())
    assert spilling == []
    index_of(tmp_path / "sound", many())
    assert hashes(root) == hashes(tmp_path / "sound")


def test_work_on_other_records_is_not_taken_and_goes(tmp_path: Path, spilling: list[int]) -> None:
    root = tmp_path / "x.hippo"
    before = cut_short(root)
    changed = [*many(), stating("more", "One|more|thing")]
    assert cut_short(root, "encode", changed) != before
    assert not before.exists()
    index_of(root, changed)
    index_of(tmp_path / "sound", changed)
    assert hashes(root) == hashes(tmp_path / "sound")


def test_gc_removes_unfinished_tables_only_when_asked(tmp_path: Path, spilling: list[int]) -> None:
    root = tmp_path / "x.hippo"
    index_of(root, PASSAGES)
    folder = cut_short(root)
    clean_index(root, grace_s=0)
    assert folder.exists()
    clean_index(root, grace_s=0, unfinished=True)
    assert not folder.exists()


def test_a_link_in_the_place_of_unfinished_work_is_refused_and_followed_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "real" / "tables-0").mkdir(parents=True)
    (tmp_path / "building").symlink_to(tmp_path / "real")
    with pytest.raises(StoredIndexError, match="symbolic link"):
        building(tmp_path, "tables", "f" * 64)
    assert (tmp_path / "real" / "tables-0").exists()


def test_a_commit_tells_seconds_and_peak_memory_of_the_same_stages(tmp_path: Path) -> None:
    with open_index(tmp_path / "x.hippo") as index:
        index.add(PASSAGES)
        report = index.commit()
    assert report.seconds.keys() == report.peak_bytes.keys()
    assert {"extract", "tables", "encode", "synonyms", "graph", "commit"} <= report.peak_bytes.keys()
    assert all(peak > 2**20 for peak in report.peak_bytes.values())


def test_the_peak_of_a_stage_is_what_was_held_and_not_mapped() -> None:
    stages, size = Stages(None), 64 * 2**20
    with stages("before"):
        pass
    with stages("large"):
        held = np.ones(size, np.uint8)
        time.sleep(0.2)
        del held
    assert stages.peak_bytes["large"] - stages.peak_bytes["before"] == pytest.approx(size, rel=0.25)
    assert stages.peak_bytes["large"] > held_bytes()


def record(name: str, *, error: str | None = None) -> Record:
    return Record(name, () if error else (Triple("a", name, "b"),), error=error)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ExtractionLog]:
    with ExtractionLog(tmp_path / "x.jsonl") as opened:
        yield opened


KEY, OTHER = "0" * 30 + "00", "ab" * 16


def test_places_say_what_the_outcomes_of_a_log_say(log: ExtractionLog) -> None:
    for key, error in ((KEY, "e"), (OTHER, None), (KEY, None), (OTHER, "late"), ("odd key", "e"), ("odd key", "f")):
        log.append(key, record("p", error=error))
    places, said = read_places(log.path).outcomes(), log.outcomes()
    assert (places.failed, places.damage) == (said.failed, said.damage)
    assert all((key in places.finished) == (key in said.finished) for key in (KEY, OTHER, "odd key", "absent"))


@pytest.mark.parametrize("end", range(7))
def test_places_that_grow_with_the_log_are_those_of_the_whole(end: int, log: ExtractionLog) -> None:
    lines = [(KEY, "e"), (KEY, None), (OTHER, "e"), (KEY, None), ("odd", None), (OTHER, "f")]
    known = Places()
    for number, (key, error) in enumerate(lines):
        known = read_places(log.path, known) if number == end else known
        log.append(key, record("p", error=error))
    grown, whole = read_places(log.path, known), read_places(log.path)
    for name in ("keys", "begin", "end", "line", "crc"):
        assert np.array_equal(getattr(grown, name), getattr(whole, name))
    assert (grown.failed, grown.lines, grown.size) == (whole.failed, whole.lines, whole.size)


def test_records_are_the_last_success_of_each_text_in_passage_order(log: ExtractionLog) -> None:
    for key, name in ((KEY, "old"), (OTHER, "other"), (KEY, "new")):
        log.append(key, record(name))
    places = read_places(log.path)
    rows = places.rows(packed_keys([OTHER, KEY]))
    columns = places.begin[rows], places.end[rows], places.crc[rows]
    records = Records(packed_keys([OTHER, KEY]), [log.path], np.zeros(2, np.int16), *columns, {})
    assert list(records) == [record("other"), record("new")]


def test_a_record_that_is_altered_behind_the_readers_back_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "x.hippo"
    with open_index(root) as index:
        index.add(PASSAGES)
        index.extract()
        passages, keys = index._current()
        reading = collect(root, passages, keys, "saying", logs=Logs(root))
        path = next((root / "openie").glob("*.jsonl"))
        path.write_bytes(path.read_bytes().replace(b"Ada", b"Eve"))
        with pytest.raises(ExtractionError, match="altered while it was read"):
            list(reading.records)


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_pairs_of_directed_edges_are_counted_once_each(at_once: int) -> None:
    random = np.random.default_rng(0)
    source, target = (random.integers(31, size=200).astype(np.int32) for _ in range(2))
    edges = Edges(source, target, np.ones(200, np.float32))
    assert count_pairs(edges, 31, at_once=at_once) == len(
        {frozenset(p) for p in zip(source.tolist(), target.tolist(), strict=True)}
    )
