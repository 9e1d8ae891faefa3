"""A reader beside a writer: when it takes in a new generation, when it keeps the one it has, and what it opens."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_index import PASSAGES, Saying, file_of, index_of

from hippogpu import Index, RunConfig, SearchConfig, Searcher, diffuse_index, searcher
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import EncoderMismatchError, IndexDamagedError, IndexMissingError
from hippogpu.store import opening
from hippogpu.types import Passage

QUESTION = "what did Grace Hopper find?"
NEW = Passage("p9", "Grace Hopper", "Grace Hopper|found|the moth")


def first_of(reader: Searcher) -> tuple[int, str]:
    """The generation that answered, and the passage it put first."""
    (ranking,) = reader.rank([QUESTION], k=1)
    return ranking.generation, ranking.hits[0].passage.id


def forget(root: Path) -> None:
    """Removes every generation, as one does before building an index anew."""
    for name in ("CURRENT", "manifests", "files"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_refresh_takes_in_a_new_generation(made: Path) -> None:
    reader = Searcher.open(made)
    index_of(made, [NEW])
    before = first_of(reader)
    assert (before[0], reader.refresh(), first_of(reader)) == (1, True, (2, "p9"))
    assert reader.manifest.generation == 2


def test_refresh_with_nothing_new_reads_current_alone(made: Path) -> None:
    reader = Searcher.open(made)
    (made / "manifests").rename(made / "elsewhere")
    (made / "files").rename(made / "elsewhere as well")
    assert reader.refresh() is False


def test_a_second_refresh_finds_nothing_new(made: Path) -> None:
    reader = Searcher.open(made)
    index_of(made, [NEW])
    assert [reader.refresh() for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("taken", [0, 1])
def test_batches_that_are_taken_slowly_are_of_one_generation(made: Path, taken: int) -> None:
    reader = Searcher.open(made)
    reader._budget_bytes = 1
    batches = reader.rank_batches([QUESTION, "steam", QUESTION], k=9, config=SearchConfig(method="hippo2"))
    rankings = [next(batches)[0] for _ in range(taken)]
    index_of(made, [NEW])
    reader.refresh()
    rankings += [ranking for batch in batches for ranking in batch]
    assert [(ranking.generation, len(ranking.hits)) for ranking in rankings] == [(1, 5)] * 3


def test_a_reader_outlives_the_files_of_its_generation(made: Path) -> None:
    reader = Searcher.open(made)
    wanted = first_of(reader)
    forget(made)
    assert first_of(reader) == wanted
    with pytest.raises(IndexMissingError):
        reader.refresh()
    assert first_of(reader) == wanted


def test_an_index_built_anew_in_the_same_folder_is_taken_in(made: Path) -> None:
    reader = Searcher.open(made)
    forget(made)
    index_of(made, [*PASSAGES, NEW])
    assert (reader.refresh(), first_of(reader)) == (True, (1, "p9"))


def test_another_encoder_is_refused_and_the_old_generation_stays(made: Path) -> None:
    reader = Searcher.open(made)
    wanted = first_of(reader)
    forget(made)
    with Index.open(made, extractor=Saying(), embedder=HashingEmbedder(48), encoder_spec="hashing:48") as index:
        index.add([NEW])
        index.commit()
    for _ in range(2):
        with pytest.raises(EncoderMismatchError, match="hashing-48"):
            reader.refresh()
    assert first_of(reader) == wanted


@pytest.mark.parametrize("role", ["facts", "graph_weights", "passage_vectors"])
def test_a_missing_file_is_an_error_and_the_old_generation_stays(made: Path, role: str) -> None:
    reader = Searcher.open(made)
    index_of(made, [NEW])
    path = file_of(made, role)
    path.rename(path.with_suffix(".away"))
    with pytest.raises(IndexDamagedError, match=role):
        reader.refresh()
    kept = first_of(reader)[0]
    path.with_suffix(".away").rename(path)
    assert (kept, reader.refresh(), first_of(reader)) == (1, True, (2, "p9"))


def test_numbers_out_of_range_are_an_error_of_refresh_and_the_old_generation_stays(made: Path) -> None:
    reader = Searcher.open(made)
    index_of(made, [NEW])
    path = file_of(made, "mentions")
    np.lib.format.open_memmap(path, "r+")[:] = 999
    with pytest.raises(IndexDamagedError, match="mentions"):
        reader.refresh()
    assert first_of(reader)[0] == 1


def test_first_use_by_several_threads_loads_once(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, calls = searcher.load, list[int]()

    def counted(*arguments: Any, **settings: Any) -> Any:
        calls.append(1)
        time.sleep(0.05)
        return load(*arguments, **settings)

    monkeypatch.setattr(searcher, "load", counted)
    reader = Searcher.open(made)
    with ThreadPoolExecutor(9) as pool:
        assert len(list(pool.map(reader.rank, [[QUESTION]] * 9))) == 9
    assert len(calls) == 1


def test_a_refresh_by_several_threads_opens_once(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, calls = Searcher.open(made), list[int]()
    index_of(made, [NEW])

    def counted(root: Path) -> opening.Opened:
        calls.append(1)
        time.sleep(0.05)
        return opening.open_current(root)

    monkeypatch.setattr(searcher, "open_current", counted)
    with ThreadPoolExecutor(9) as pool:
        taken = list(pool.map(lambda _: reader.refresh(), range(9)))
    assert (sum(taken), len(calls)) == (1, 1)


def test_what_two_generations_share_is_put_on_the_device_once(root: Path) -> None:
    with Index.open(root, extractor=Saying(), embedder=HashingEmbedder(32), encoder_spec="hashing:32") as index:
        index.add(PASSAGES)
        index.commit(diffuse="never")
    reader = Searcher.open(root, run=RunConfig(backend="reference"))
    reader.rank([QUESTION])
    before = reader._generation.loaded()
    diffuse_index(root)
    assert reader.refresh()
    after = reader._generation.loaded()
    shared = [getattr(after, name) is getattr(before, name) for name in ("passages", "facts", "graph", "diffused")]
    assert (shared, before.diffused) == ([True, True, True, False], None)
    assert reader.rank([QUESTION])[0].solver == "diffused"


def test_what_a_new_generation_changes_is_put_anew(made: Path) -> None:
    reader = Searcher.open(made, run=RunConfig(backend="reference"))
    before = reader._generation.loaded()
    index_of(made, [NEW])
    reader.refresh()
    after = reader._generation.loaded()
    assert not any(getattr(after, name) is getattr(before, name) for name in ("passages", "facts", "graph", "diffused"))


def removed_meanwhile(root: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Lets a commit, and the removal of what was there before it, fall between reading CURRENT and opening files."""
    load, left = opening.load_snapshot, iter(range(times))

    def late(*arguments: Any) -> Any:
        number = next(left, None)
        if number is not None:
            old = set((root / "files").iterdir())
            index_of(root, [NEW._replace(text=f"Grace Hopper|found|moth {number}")])
            kept = {entry.file for entry in opening.current_manifest(root).files.values()}
            for path in old:
                if path.name not in kept:
                    path.unlink()
        return load(*arguments)

    monkeypatch.setattr(opening, "load_snapshot", late)


def test_a_generation_removed_while_it_is_opened_gives_way_to_the_next(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed_meanwhile(made, monkeypatch, times=2)
    assert first_of(Searcher.open(made)) == (3, "p9")


def test_refresh_follows_current_when_files_are_removed_meanwhile(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Searcher.open(made)
    index_of(made, [NEW])
    removed_meanwhile(made, monkeypatch, times=2)
    assert (reader.refresh(), first_of(reader), reader.refresh()) == (True, (4, "p9"), False)


def test_opening_gives_up_after_some_tries(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "TRIES", 3)
    removed_meanwhile(made, monkeypatch, times=10)
    with pytest.raises(IndexDamagedError, match="missing"):
        Searcher.open(made)
    assert opening.current_manifest(made).generation == 4


def test_a_missing_file_of_the_current_generation_is_damage_at_once(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, load = [], opening.load_snapshot
    monkeypatch.setattr(opening, "load_snapshot", lambda *arguments: (tries.append(1), load(*arguments))[1])
    file_of(made, "facts").unlink()
    with pytest.raises(IndexDamagedError, match=r"facts-.*missing"):
        Searcher.open(made)
    assert len(tries) == 1
