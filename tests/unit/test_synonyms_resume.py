"""A search that was killed goes on after its last finished step, and trusts nothing that is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synonym_cases import circles, names, same

from hippogpu.config import IndexConfig
from hippogpu.errors import IndexDamagedError, StoredIndexError
from hippogpu.precision import rounded
from hippogpu.synonyms import find_synonyms
from hippogpu.synonyms.found import Found
from hippogpu.synonyms.kept import keep, kept, room
from hippogpu.types import Edges

COUNT = 300
BUDGETS = {"exact": 600_000, "cells": 2**16}
CONFIGS = {"exact": IndexConfig(), "cells": IndexConfig(synonym_search="cells")}
searches = pytest.mark.parametrize("search", ["exact", "cells"])


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def little_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hippogpu.synonyms.kept._LEAST_MAPPED_BYTES", 1)


def found(search: str, scratch: Path | None, *, stop: int = 10**6, seed: int = 0, **values: Any) -> Edges:
    """A search that is killed at the given report of progress."""
    reports: list[int] = []

    def report(done: int, whole: int) -> None:
        reports.append(done)
        if len(reports) == stop:
            raise Killed

    config, budget = CONFIGS[search], BUDGETS[search]
    vectors = rounded(circles(COUNT, seed=seed), "float16")
    args = {"budget_bytes": budget, "scratch": scratch, "on_progress": report} | values
    return find_synonyms(names(COUNT), vectors, config, **args)


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is worked out from now on: steps, rounds of centres and stretches."""
    seen: list[str] = []
    from hippogpu.synonyms import cells, centres, searching

    def watch(module: Any, name: str) -> None:
        inner = getattr(module, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return inner(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    for module, name in ((searching, "search_step"), (searching, "search_cells")):
        watch(module, name)
    for module, name in ((centres, "_first"), (centres, "_moved")):
        watch(module, name)
    watch(cells, "nearest_cells")
    return seen


def files(scratch: Path) -> list[Path]:
    return sorted(path for path in scratch.rglob("*") if path.is_file())


@searches
def test_a_folder_for_unfinished_work_changes_nothing(search: str, tmp_path: Path) -> None:
    assert same(found(search, tmp_path), found(search, None))


@searches
def test_killed_at_any_step_it_goes_on_and_gives_the_same(search: str, tmp_path: Path, worked: list[str]) -> None:
    whole = found(search, tmp_path / "whole")
    steps = len(worked)
    assert steps > 5
    for stop in range(1, steps - 1):
        scratch = tmp_path / str(stop)
        worked.clear()
        with pytest.raises(Killed):
            found(search, scratch, stop=stop)
        assert same(found(search, scratch), whole)
        assert len(worked) == steps


@searches
def test_finished_work_is_not_done_again(search: str, tmp_path: Path, worked: list[str]) -> None:
    whole = found(search, tmp_path)
    worked.clear()
    assert same(found(search, tmp_path), whole)
    assert not worked


@searches
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove", "grow"])
def test_every_file_that_is_damaged_is_made_again(search: str, damage: str, tmp_path: Path) -> None:
    whole = found(search, tmp_path)
    for path in files(tmp_path):
        data = path.read_bytes()
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        spoiled = {"flip": flipped, "cut": data[:-3], "empty": b"", "grow": data + b"more"}
        path.unlink() if damage == "remove" else path.write_bytes(spoiled[damage])
        assert same(found(search, tmp_path), whole), path.name


@searches
def test_a_step_that_is_made_anew_and_killed_leaves_nothing_that_says_it_is_finished(
    search: str, tmp_path: Path
) -> None:
    found(search, tmp_path)
    [step, *_] = [path for path in files(tmp_path) if path.name == "pairs-000000-000"]
    remade = Found(step.parent, CONFIGS[search].synonym_cap)
    remade.gather(0, 10**6)
    assert not step.exists()


@searches
def test_pairs_of_a_stranger_that_point_outside_are_refused(search: str, tmp_path: Path) -> None:
    found(search, tmp_path)
    [step, *_] = [path for path in files(tmp_path) if path.name == "pairs-000000-000"]
    for source, target in ((0, COUNT), (0, -1)):
        columns = np.array([source], np.int32), np.array([target], np.int32), np.ones(1)
        keep(step, 1, 1, columns)
        with pytest.raises(IndexDamagedError, match="Unfinished work"):
            found(search, tmp_path)


@searches
def test_other_vectors_or_settings_take_nothing_over(search: str, tmp_path: Path, worked: list[str]) -> None:
    found(search, tmp_path)
    steps = len(worked)
    worked.clear()
    assert same(found(search, tmp_path, seed=1), found(search, None, seed=1))
    assert len(worked) == 2 * steps
    worked.clear()
    vectors = rounded(circles(COUNT), "float16")
    other = IndexConfig(synonym_search=CONFIGS[search].synonym_search, synonym_threshold=0.85)
    find_synonyms(names(COUNT), vectors, other, budget_bytes=BUDGETS[search], scratch=tmp_path)
    assert len(worked) == steps


@searches
def test_a_step_with_more_pairs_than_the_budget_holds_puts_them_down_in_parts(search: str, tmp_path: Path) -> None:
    config = IndexConfig(synonym_search=CONFIGS[search].synonym_search, synonym_threshold=0.01)
    vectors = np.abs(circles(COUNT))
    args: dict[str, Any] = {"budget_bytes": BUDGETS[search], "scratch": tmp_path}
    edges = find_synonyms(names(COUNT), vectors, config, **args)
    assert same(edges, find_synonyms(names(COUNT), vectors, config))
    assert [path for path in files(tmp_path) if path.name.endswith("-001")]
    assert same(find_synonyms(names(COUNT), vectors, config, **args), edges)


def test_mapped_edges_outlive_the_folder(tmp_path: Path) -> None:
    edges, whole = found("cells", tmp_path), found("cells", None)
    for path in files(tmp_path):
        path.unlink()
    assert same(edges, whole)


def test_a_disk_that_is_full_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(StoredIndexError, match=r"edges.*Make room"):
        room((1 << 19,), np.int32, tmp_path, "edges")


def test_what_is_kept_comes_back_and_a_link_is_not_followed(tmp_path: Path) -> None:
    keep(tmp_path / "some", 3, 4, [np.arange(5, dtype=np.int32), np.empty(0)])
    there = kept(tmp_path / "some")
    assert there is not None
    assert (there.first, there.second, there.body.view(np.int32).tolist()) == (3, 4, list(range(5)))
    keep(tmp_path / "none", 1, 2, [])
    assert (again := kept(tmp_path / "none")) is not None
    assert len(again.body) == 0
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(StoredIndexError):
        room((1 << 19,), np.int32, tmp_path, "link")
