"""The exact search gives what the definition gives, however it is blocked and whatever vectors are stored as."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from synonym_cases import by_definition, circles, cloud, demo_phrases, names, same, units

from hippogpu.backends.cuda_near import HALF_MARGIN, near_products
from hippogpu.backends.devices import find_device
from hippogpu.config import IndexConfig
from hippogpu.config.retrieval import VectorType
from hippogpu.errors import HippoError
from hippogpu.precision import rounded
from hippogpu.synonyms import KnownSynonyms, find_synonyms, tiles
from hippogpu.types import Floats, Longs

BUDGETS = [1, 40_000, 1_000_000, 2**29]


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of 32 rows, so that few phrases make many."""
    for module in ("tiles", "cells"):
        monkeypatch.setattr(f"hippogpu.synonyms.{module}.ROWS", 32)


@pytest.mark.parametrize("kind", get_args(VectorType))
def test_real_phrases_get_the_edges_of_the_definition(kind: VectorType) -> None:
    phrases, rows = demo_phrases()
    vectors, config = rounded(rows, kind), IndexConfig(synonym_threshold=0.6)
    expected = by_definition(phrases, vectors, config)
    assert len(expected.source) > 1000
    assert same(find_synonyms(phrases, vectors, config, budget_bytes=2**21), expected)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("budget_bytes", BUDGETS[1:])
@pytest.mark.parametrize("cap", [0, 1, 5, 100])
@pytest.mark.parametrize("kind", get_args(VectorType))
def test_no_budget_shows_in_crowded_lists(kind: VectorType, cap: int, budget_bytes: int) -> None:
    vectors, config = rounded(cloud(150), kind), IndexConfig(synonym_cap=cap)
    expected = by_definition(names(150), vectors, config)
    assert same(find_synonyms(names(150), vectors, config, budget_bytes=budget_bytes), expected)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("cap", [1, 20])
def test_ties_go_to_the_lower_number_across_tiles(cap: int) -> None:
    vectors = units(np.tile(np.eye(3, 8) + 0.01, (40, 1)))
    config = IndexConfig(synonym_cap=cap)
    assert same(find_synonyms(names(120), vectors, config), by_definition(names(120), vectors, config))


@pytest.mark.parametrize("count", [0, 1, 2, 31, 33])
@pytest.mark.parametrize("search", ["exact", "cells"])
def test_few_phrases_are_no_special_case(count: int, search: Any) -> None:
    vectors, config = circles(count), IndexConfig(synonym_search=search)
    assert same(find_synonyms(names(count), vectors, config), by_definition(names(count), vectors, config))


@pytest.mark.parametrize("search", ["exact", "cells"])
@pytest.mark.parametrize("budget_bytes", BUDGETS[:2])
def test_short_phrases_are_found_and_the_empty_one_is_not(budget_bytes: int, search: Any) -> None:
    phrases = ["", "ab", "b", *names(40), "zz"]
    config = IndexConfig(synonym_search=search, keep_empty=True)
    edges = find_synonyms(phrases, cloud(44), config, budget_bytes=budget_bytes)
    assert same(edges, by_definition(phrases, cloud(44), config))
    assert not np.any(edges.target == 0)
    assert {1, 43} <= set(edges.target.tolist()) - set(edges.source.tolist())


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", get_args(VectorType))
def test_what_an_earlier_search_spares_changes_nothing_in_any_storage(kind: VectorType) -> None:
    phrases, rows, config = names(90), circles(90), IndexConfig(synonym_cap=3)
    before = np.flatnonzero(np.random.default_rng(0).random(90) < 0.6)
    old = [phrases[i] for i in before], rounded(rows[before], kind)
    known = KnownSynonyms(*old, find_synonyms(*old, config))
    again = find_synonyms(phrases, rounded(rows, kind), config, known=known, budget_bytes=40_000)
    assert same(again, by_definition(phrases, rounded(rows, kind), config))


def test_vectors_that_are_now_stored_otherwise_are_all_compared_again() -> None:
    phrases, rows, config = names(40), circles(40), IndexConfig()
    known = KnownSynonyms(phrases, rows, find_synonyms(phrases, rows, config))
    vectors = rounded(rows, "int8")
    assert same(find_synonyms(phrases, vectors, config, known=known), by_definition(phrases, vectors, config))


def test_the_margin_covers_the_rounding_of_a_long_product() -> None:
    rows = units(np.random.default_rng(5).normal(1, 1, (256, 4096)))
    exact = rows.astype(np.float64) @ rows.astype(np.float64).T
    assert np.abs(rows @ rows.T - exact).max() < tiles.MARGIN / 10


def halved(left: Floats, right: Floats, least: float) -> tuple[Longs, Floats]:
    """What the device does, by NumPy."""
    flat, scores = near_products(np, left, right, least)
    return flat, scores


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_pairs_found_in_float16_are_those_found_in_float32(monkeypatch: pytest.MonkeyPatch, threshold: float) -> None:
    phrases, vectors = demo_phrases()
    vectors, config = vectors[:400], IndexConfig(synonym_threshold=threshold)
    vectors[1::7] = vectors[::7][: len(vectors[1::7])]
    expected = find_synonyms(phrases[:400], vectors, config)
    monkeypatch.setattr("hippogpu.synonyms.searching.products_on", lambda *_: tiles.Products(halved, 100))
    assert same(find_synonyms(phrases[:400], vectors, config), expected)
    assert len(expected.source) > 100


def test_float16_products_err_by_less_than_their_margin() -> None:
    rows = units(np.random.default_rng(5).normal(1, 1, (64, 1024)))
    halves = (rows.astype(np.float16) @ rows.astype(np.float16).T).astype(np.float64)
    exact = rows.astype(np.float64) @ rows.astype(np.float64).T
    rounding = (rows.astype(np.float16).astype(np.float64) @ rows.astype(np.float16).astype(np.float64).T) - exact
    assert np.abs(rounding).max() < HALF_MARGIN / 8
    assert np.abs(halves - exact).max() < 8 * HALF_MARGIN


@pytest.mark.skipif(find_device().device is None, reason="no CUDA device answers")
def test_a_device_finds_what_the_host_finds() -> None:
    phrases, vectors = demo_phrases()
    config = IndexConfig(synonym_threshold=0.6)
    expected = find_synonyms(phrases, vectors, config)
    assert same(find_synonyms(phrases, vectors, config, backend="cuda", budget_bytes=2**22), expected)


def test_without_a_device_cuda_is_refused_and_auto_is_the_host() -> None:
    if find_device().device is not None:
        pytest.skip("a CUDA device answers")
    vectors = circles(40)
    with pytest.raises(HippoError):
        find_synonyms(names(40), vectors, IndexConfig(), backend="cuda")
    one, other = (find_synonyms(names(40), vectors, IndexConfig(), backend=b) for b in ("auto", "cpu"))
    assert same(one, other)
