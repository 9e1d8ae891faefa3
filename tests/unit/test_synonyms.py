"""Synonym edges: who searches, who is found, how many, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hippogpu.config import IndexConfig
from hippogpu.synonyms import KnownSynonyms, find_synonyms
from hippogpu.types import Edges, Floats


def units(rows: Any) -> Floats:
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def found(phrases: Sequence[str], vectors: Any, *, budget_bytes: int = 2**29, **values: Any) -> Edges:
    return find_synonyms(phrases, units(vectors), IndexConfig(**values), budget_bytes=budget_bytes)


def pairs(edges: Edges) -> list[tuple[int, int]]:
    return list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))


def cloud(count: int, *, seed: int = 0) -> Floats:
    """Vectors in a narrow cone: nearly all pairs are near 0.8."""
    rng = np.random.default_rng(seed)
    return units(rng.normal(1.0, 0.5, (count, 16)))


@pytest.mark.parametrize("name", ["AB", "X1", "北京", "a!b", ""])
def test_a_name_of_two_letters_finds_nothing(name: str) -> None:
    assert pairs(found([name, "long name"], [[1, 0], [1, 0]])) == ([(1, 0)] if name else [])


@pytest.mark.parametrize("name", ["ABC", "北京市", "a b c", "X1½"])
def test_a_name_of_three_letters_searches_and_is_found(name: str) -> None:
    assert pairs(found([name, "long name"], [[1, 0], [1, 0]])) == [(0, 1), (1, 0)]


def test_under_the_ascii_rule_other_letters_do_not_count() -> None:
    assert pairs(found(["北京市", "abc"], [[1, 0], [1, 0]], text_rule="ascii")) == [(1, 0)]


def test_the_empty_phrase_is_never_found() -> None:
    assert pairs(found(["", "one", "two"], [[1, 0]] * 3)) == [(1, 2), (2, 1)]


def test_no_phrase_finds_itself() -> None:
    edges = found([f"name {i}" for i in range(33)], cloud(33), synonym_threshold=0.01)
    assert not np.any(edges.source == edges.target)


def test_the_threshold_itself_is_near_enough() -> None:
    vectors = np.array([[1, 0], [0.5, 0.75**0.5]], np.float32)
    at, above = (find_synonyms(["one", "two"], vectors, IndexConfig(synonym_threshold=t)) for t in (0.5, 0.5000001))
    assert (pairs(at), pairs(above)) == ([(0, 1), (1, 0)], [])


def test_the_cosine_comes_with_the_edge() -> None:
    edges = found(["one", "two"], [[1, 0], [0.9, 0.19**0.5]])
    assert edges.weight.tolist() == pytest.approx([0.9, 0.9], abs=1e-7)
    assert [column.dtype for column in edges] == [np.int32, np.int32, np.float32]


def test_the_nearest_come_first_and_ties_go_to_the_lower_number() -> None:
    near, nearer = [0.9, 0.19**0.5], [0.99, 0.0199**0.5]
    edges = found(["aaa", "bb", "cc", "dd", "ee"], [[1, 0], near, nearer, near, nearer])
    assert [target for source, target in pairs(edges) if source == 0] == [2, 4, 1, 3]


@pytest.mark.parametrize("cap", [0, 1, 3])
def test_the_cap_keeps_the_first_of_each_phrase(cap: int) -> None:
    phrases, vectors = [f"name {i}" for i in range(33)], cloud(33)
    whole, capped = (found(phrases, vectors, synonym_cap=some) for some in (100, cap))
    expected = [pair for source in range(33) for pair in [p for p in pairs(whole) if p[0] == source][:cap]]
    assert pairs(capped) == expected


def test_a_hub_finds_no_more_than_the_cap_but_all_find_the_hub() -> None:
    rng = np.random.default_rng(1)
    spread = units(rng.normal(size=(150, 64)))
    hub = np.zeros((1, 64))
    hub[0, 0] = 1
    leaves = np.concatenate([np.full((150, 1), 0.85), 0.5268 * units(np.delete(spread, 0, 1))], axis=1)
    edges = found([f"name {i}" for i in range(151)], np.concatenate([hub, leaves]))
    assert (np.sum(edges.source == 0), np.sum(edges.target == 0)) == (100, 150)


def test_more_than_a_hundred_copies_keep_the_hundred_lowest_numbers() -> None:
    edges = found([f"name {i}" for i in range(120)], np.ones((120, 4)))
    assert [t for s, t in pairs(edges) if s == 119] == list(range(100))
    assert [t for s, t in pairs(edges) if s == 0] == list(range(1, 101))


@pytest.mark.parametrize("budget_bytes", [1, 8 * 101 * 7, 8 * 101 * 100])
def test_blocking_changes_nothing(budget_bytes: int) -> None:
    phrases, vectors = [f"name {i}" for i in range(101)], cloud(101)
    one, other = (found(phrases, vectors, budget_bytes=b, synonym_cap=20) for b in (2**29, budget_bytes))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_pair_above_the_threshold_is_found_from_both_ends() -> None:
    vectors = cloud(64, seed=3)
    cosines = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    np.fill_diagonal(cosines, 0)
    edges = found([f"name {i}" for i in range(64)], vectors)
    assert sorted(pairs(edges)) == list(zip(*(axis.tolist() for axis in np.nonzero(cosines >= 0.8)), strict=True))


def test_no_phrases_have_no_synonyms() -> None:
    edges = find_synonyms([], np.empty((0, 4), np.float32), IndexConfig())
    assert [len(column) for column in edges] == [0, 0, 0]


def test_progress_counts_the_searching_phrases_up_to_all() -> None:
    seen: list[tuple[int, int]] = []
    phrases = ["name 1", "ab", "name 2", "name 3"]
    find_synonyms(phrases, units(np.eye(4)), IndexConfig(), budget_bytes=1, on_progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def changed_corpus(seed: int) -> tuple[tuple[list[str], Floats], tuple[list[str], Floats]]:
    """Phrases before and after some came, some went and one was encoded anew; many vectors are equal, so that
    places at the cap are tied."""
    rng = np.random.default_rng(seed)
    names = sorted({f"{rng.integers(10**6)} name"[: rng.integers(1, 12)].strip() for _ in range(60)})
    some = cloud(7, seed=seed)
    vector = {
        name: some[rng.integers(7)] if rng.random() < 0.5 else cloud(1, seed=i)[0] for i, name in enumerate(names)
    }
    share = rng.choice([0.1, 0.5, 0.9])
    before, after = ([name for name in names if rng.random() < share] or names[:1] for _ in range(2))
    old = before, np.array([vector[name] for name in before])
    vector[before[0]] = -vector[before[0]]
    return old, (after, np.array([vector[name] for name in after]))


@pytest.mark.parametrize("cap", [0, 1, 3, 100])
@pytest.mark.parametrize("seed", range(25))
def test_a_search_that_knows_an_earlier_one_finds_what_a_whole_search_finds(seed: int, cap: int) -> None:
    old, (phrases, vectors) = changed_corpus(seed)
    config = IndexConfig(synonym_cap=cap)
    known = KnownSynonyms(*old, find_synonyms(*old, config))
    again = find_synonyms(phrases, vectors, config, known=known, budget_bytes=2**10)
    for one, other in zip(again, find_synonyms(phrases, vectors, config), strict=True):
        assert one.tobytes() == other.tobytes()


def test_only_new_phrases_and_short_lists_are_compared_with_all() -> None:
    names, vectors, config = [f"name {i:03}" for i in range(40)], cloud(40), IndexConfig(synonym_cap=5)
    keep = [i for i in range(40) if i not in (3, 8)]
    old = [names[i] for i in keep], vectors[keep]
    known = KnownSynonyms(*old, find_synonyms(*old, config))
    seen: list[int] = []
    find_synonyms(names, vectors, config, known=known, on_progress=lambda done, whole: seen.append(whole))
    assert seen == [2]
