"""The search by cells misses some pairs, finds none that is wrong, and depends on the vectors alone."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from synonym_cases import by_definition, circles, cloud, demo_phrases, names, same, units

from hippogpu.config import IndexConfig
from hippogpu.config.retrieval import VectorType
from hippogpu.precision import rounded
from hippogpu.synonyms import KnownSynonyms, find_synonyms
from hippogpu.synonyms.cells import cell_steps, sort_into_cells
from hippogpu.synonyms.centres import Reach, find_centres, nearest_cells
from hippogpu.types import Edges

CELLS = IndexConfig(synonym_search="cells")
# Of real phrases with vectors of their letters; measured 1.0 with a few hundred pairs.
LEAST_RECALL = 0.97


@pytest.fixture
def short_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells so small, and so few of them, that pairs are missed."""
    monkeypatch.setattr("hippogpu.synonyms.searching.REACH", Reach(phrases=4, cells=3, groups=3))


def keyed(edges: Edges) -> dict[tuple[int, int], float]:
    pairs = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    return dict(zip(pairs, edges.weight.tolist(), strict=True))


def test_of_real_phrases_nearly_all_pairs_are_found() -> None:
    phrases, vectors = demo_phrases()
    exact, cells = (
        keyed(find_synonyms(phrases, vectors, IndexConfig(synonym_search=search, synonym_threshold=0.6)))
        for search in ("exact", "cells")
    )
    assert len(exact) > 1000
    assert len(exact.keys() & cells.keys()) >= LEAST_RECALL * len(exact)


@pytest.mark.usefixtures("short_reach")
@pytest.mark.parametrize("kind", get_args(VectorType))
def test_what_is_found_is_right_and_from_both_ends(kind: VectorType) -> None:
    vectors = rounded(circles(500), kind)
    exact, cells = (keyed(find_synonyms(names(500), vectors, c)) for c in (IndexConfig(), CELLS))
    assert 0.5 * len(exact) < len(cells) < len(exact)
    assert cells.items() <= exact.items()
    assert all((target, source) in cells for source, target in cells)


@pytest.mark.usefixtures("short_reach")
@pytest.mark.parametrize("cap", [0, 2, 5])
def test_no_more_than_the_cap_of_a_phrase_and_those_its_nearest_found(cap: int) -> None:
    vectors = circles(300, of=20)
    whole = find_synonyms(names(300), vectors, CELLS)
    capped = find_synonyms(names(300), vectors, IndexConfig(synonym_search="cells", synonym_cap=cap))
    first = np.concatenate([np.flatnonzero(whole.source == phrase)[:cap] for phrase in range(300)])
    assert same(capped, Edges(*(column[first] for column in whole)))


@pytest.mark.usefixtures("short_reach")
@pytest.mark.parametrize("budget_bytes", [1, 10_000, 2**20])
def test_neither_budget_nor_the_run_shows(budget_bytes: int) -> None:
    vectors = circles(400)
    one, other = (find_synonyms(names(400), vectors, CELLS, budget_bytes=b) for b in (2**29, budget_bytes))
    assert same(one, other)


def test_with_every_cell_in_reach_nothing_is_missed() -> None:
    assert same(find_synonyms(names(150), cloud(150), CELLS), by_definition(names(150), cloud(150), CELLS))


@pytest.mark.usefixtures("short_reach")
def test_an_earlier_search_leaves_no_trace() -> None:
    phrases, vectors = names(300), circles(300)
    known = KnownSynonyms(phrases[::2], vectors[::2], find_synonyms(phrases[::2], vectors[::2], CELLS))
    again = find_synonyms(phrases, vectors, CELLS, known=known)
    assert same(again, find_synonyms(phrases, vectors, CELLS))


def test_phrases_of_one_vector_fill_one_cell_in_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hippogpu.synonyms.cells.ROWS", 32)
    monkeypatch.setattr("hippogpu.synonyms.cells._CELL_ROWS", 64)
    vectors = np.concatenate([np.tile(units([[1, 2, 3, 4]]), (200, 1)), units(np.eye(4))])
    config = IndexConfig(synonym_search="cells", synonym_cap=7)
    assert same(find_synonyms(names(204), vectors, config), by_definition(names(204), vectors, config))


def test_every_phrase_looks_at_its_own_cell_and_at_no_cell_twice() -> None:
    cells = sort_into_cells(circles(700), reach=Reach(8, 6, 4))
    seen = [row[row >= 0].tolist() for row in cells.near]
    assert all(len(set(row)) == len(row) and row[0] == own for row, own in zip(seen, cells.own, strict=True))
    assert (cells.visits.sum(), cells.members.sum()) == (sum(map(len, seen)), 700)


def test_the_steps_cover_every_cell_once() -> None:
    cells = sort_into_cells(circles(700), reach=Reach(8, 6, 4))
    steps = cell_steps(cells, 128 * 300)
    assert len(steps) > 3
    assert [step.first for step in steps[1:]] == [step.last for step in steps[:-1]]
    assert (steps[0].first, steps[-1].last) == (0, len(cells.visits))
    assert sum(step.members for step in steps) == 700


def test_dense_places_have_more_cells() -> None:
    rng = np.random.default_rng(0)
    dense = units([[1, 0, 0, 0]] + 0.05 * rng.normal(size=(900, 4)))
    wide = units(rng.normal(size=(100, 4)))
    centres = find_centres(np.concatenate([dense, wide]), Reach(10, 4, 4))
    near = centres.cells @ units([[1, 0, 0, 0]])[0] > 0.95
    assert 0.5 < near.mean() < 1


def test_progress_rises_to_all_phrases() -> None:
    seen: list[tuple[int, int]] = []
    find_synonyms(names(300), circles(300), CELLS, budget_bytes=2**14, on_progress=lambda *at: seen.append(at))
    assert seen == sorted(seen)
    assert seen[-1] == (300, 300)
    assert len(seen) > 3


def test_the_nearest_cells_are_the_greatest_products_of_the_nearest_groups() -> None:
    vectors, reach = circles(700), Reach(8, 6, 4)
    centres = find_centres(vectors, reach)
    near = nearest_cells(vectors[:50], centres, reach)
    for row, found in zip(vectors[:50], near.tolist(), strict=True):
        groups = np.argsort(-(centres.groups @ row))[:4]
        seen = np.concatenate([np.arange(centres.starts[group], centres.starts[group + 1]) for group in groups])
        products = centres.cells[seen] @ row
        assert found[: len(seen)] == seen[np.argsort(-products)][:6].tolist()
        assert found[len(seen) :] == [-1] * (6 - len(seen))
