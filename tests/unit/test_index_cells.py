"""An index whose facts are found by cells: what commits keep of them, and what rankings say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_index import PASSAGES, hashes, index_of, open_index, stating

from hippogpu import IndexConfig, SearchConfig, Searcher
from hippogpu.errors import IndexDamagedError
from hippogpu.nearest import filling as filling_module
from hippogpu.nearest.filling import fact_cells
from hippogpu.store import FACT_CELLS, current_manifest, files_folder, load_snapshot, publish, verify

CELLS = IndexConfig(fact_search="ivfpq")
HIPPO2 = SearchConfig(method="hippo2")
QUESTIONS = ["Who wrote notes?", "Who built the engine?"]


def cells_of(root: Path) -> dict[str, str]:
    return {role: digest for role, digest in hashes(root).items() if role in FACT_CELLS}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    index_of(tmp_path / "wiki.hippo", config=CELLS)
    return tmp_path / "wiki.hippo"


def test_without_the_setting_there_are_no_cells(tmp_path: Path) -> None:
    index_of(tmp_path / "wiki.hippo")
    assert cells_of(tmp_path / "wiki.hippo") == {}


def test_the_stored_cells_are_those_of_the_stored_facts(made: Path) -> None:
    snapshot = load_snapshot(made, current_manifest(made))
    assert snapshot.fact_cells is not None
    expected = fact_cells(snapshot.fact_vectors)
    assert all(np.array_equal(one, other) for one, other in zip(snapshot.fact_cells, expected, strict=True))
    assert verify(made, full=True) == []


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_commits_in_any_parts_leave_the_cells_of_one_commit(tmp_path: Path, kind: Any) -> None:
    config, one, two = replace(CELLS, fact_vectors=kind), tmp_path / "one", tmp_path / "two"
    index_of(one, config=config)
    index_of(two, PASSAGES[2:], config=config)
    with open_index(two, config=config) as index:
        index.add([*PASSAGES[:2], stating("gone", "a|b|c")])
        index.commit()
        index.delete(["gone"])
        index.commit()
    # Deleted and added in another order: the same facts, so the same cells.
    assert cells_of(one) == cells_of(two)
    assert len(cells_of(two)) == len(FACT_CELLS)


def test_cells_are_taken_over_while_the_facts_are_the_same(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling_module, "fact_cells", None)
    before = cells_of(made)
    index_of(made, [*PASSAGES, stating("p9", "Nothing new is stated here")], config=CELLS)
    assert (current_manifest(made).generation, cells_of(made)) == (2, before)


def test_an_index_without_facts_has_no_cells(tmp_path: Path) -> None:
    root = tmp_path / "wiki.hippo"
    index_of(root, [stating("p", "Nothing is stated here")], config=CELLS)
    assert cells_of(root) == {}
    [ranking] = Searcher.open(root).rank(QUESTIONS[:1], config=HIPPO2)
    assert (ranking.facts, ranking.fact_search) == ((), None)


def test_unfinished_blocks_are_gone_after_the_commit(made: Path) -> None:
    assert not (made / "building").exists()


@pytest.mark.parametrize("method", ["hippo", "hippo2"])
def test_rankings_say_how_facts_were_found_and_few_facts_are_all_found(made: Path, tmp_path: Path, method: Any) -> None:
    index_of(tmp_path / "exact.hippo")
    config = SearchConfig(method=method)
    exact, near = (Searcher.open(root).rank(QUESTIONS, config=config) for root in (tmp_path / "exact.hippo", made))
    assert {ranking.fact_search for ranking in exact} == {"exact"}
    assert {ranking.fact_search for ranking in near} == {"ivfpq"}
    assert [[fact[:3] for fact in row.facts] for row in exact] == [[fact[:3] for fact in row.facts] for row in near]
    for one, other in zip(exact, near, strict=True):
        assert [hit.score for hit in one.hits] == pytest.approx([hit.score for hit in other.hits], rel=1e-4)


def test_exact_facts_look_at_every_fact(made: Path) -> None:
    searcher = Searcher.open(made)
    [near] = searcher.rank(QUESTIONS[:1], config=replace(HIPPO2, fact_probes=1, fact_shortlist=1))
    [exact] = searcher.rank(QUESTIONS[:1], config=replace(HIPPO2, exact_facts=True))
    assert (near.fact_search, exact.fact_search) == ("ivfpq", "exact")


def test_methods_without_facts_say_nothing_of_them(made: Path) -> None:
    [ranking] = Searcher.open(made).rank(QUESTIONS[:1], config=SearchConfig(method="dense"))
    assert ranking.fact_search is None


def test_a_focused_walk_weighs_all_facts(made: Path) -> None:
    [ranking] = Searcher.open(made).rank(QUESTIONS[:1], config=SearchConfig(method="hippo", focus=2.0))
    assert ranking.hits


@pytest.mark.parametrize("role", FACT_CELLS)
def test_an_index_that_lacks_a_file_of_its_cells_is_refused(made: Path, role: str) -> None:
    manifest = current_manifest(made)
    publish(made, replace(manifest, generation=2, files={r: e for r, e in manifest.files.items() if r != role}))
    with pytest.raises(IndexDamagedError, match=role):
        load_snapshot(made, current_manifest(made))


def test_cells_that_name_no_fact_are_refused_before_a_search(made: Path) -> None:
    entry = current_manifest(made).files["fact_cells"]
    path = files_folder(made) / entry.file
    data = bytearray(path.read_bytes())
    data[-4:] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    with pytest.raises(IndexDamagedError, match="cells of facts"):
        Searcher.open(made).rank(QUESTIONS, config=HIPPO2)
    assert any("cells" in problem or entry.file in problem for problem in verify(made, full=True))


def test_a_commit_made_anew_makes_the_cells_anew(made: Path) -> None:
    before = cells_of(made)
    path = files_folder(made) / current_manifest(made).files["fact_codes"].file
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with open_index(made, config=CELLS) as index:
        index.add(PASSAGES)
        index.commit(force="build")
    assert cells_of(made) == before
    assert verify(made, full=True) == []


def test_damaged_cells_are_not_taken_over(made: Path) -> None:
    before = cells_of(made)
    path = files_folder(made) / current_manifest(made).files["fact_codes"].file
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    index_of(made, [*PASSAGES, stating("p9", "Nothing new is stated here")], config=CELLS)
    assert cells_of(made) == before
    assert verify(made, full=True) == []


@pytest.mark.parametrize("role", ["fact_scales", "phrase_scales", "passage_scales"])
@pytest.mark.parametrize("scale", [np.inf, np.nan, 0.0, -1.0])
def test_scales_that_are_none_are_refused_before_a_search(tmp_path: Path, role: str, scale: float) -> None:
    root = tmp_path / "wiki.hippo"
    index_of(root, config=IndexConfig(fact_vectors="int8", phrase_vectors="int8", passage_vectors="int8"))
    path = files_folder(root) / current_manifest(root).files[role].file
    path.write_bytes(path.read_bytes()[:-4] + np.float32(scale).tobytes())
    with pytest.raises(IndexDamagedError, match=role):
        Searcher.open(root).rank(QUESTIONS, config=HIPPO2)
