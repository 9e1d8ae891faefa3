"""Places by 128-bit keys."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.store.text_keys import Keys, first_of_equal, keys_of, sorted_places


def random_keys(rows: int, *, halves: int, seed: int = 0) -> Keys:
    """Keys of few different halves, so that first halves coincide and keys do too."""
    return np.random.default_rng(seed).integers(0, halves, (rows, 2), dtype=np.uint64)


@pytest.mark.parametrize("rows", [0, 1, 31, 1000])
@pytest.mark.parametrize("halves", [1, 2, 40, 2**63])
def test_a_place_is_that_of_the_last_key_that_is_equal_in_both_halves(rows: int, halves: int) -> None:
    keys, asked = random_keys(rows, halves=halves), random_keys(77, halves=halves, seed=1)
    asked = np.concatenate([asked, keys[: rows // 2]])
    last = {(int(high), int(low)): place for place, (high, low) in enumerate(keys)}
    parts = [slice(0, rows // 3), slice(rows // 3, rows)]
    numbers = np.arange(rows)
    found = sorted_places([keys[part] for part in parts], [numbers[part] for part in parts]).find(asked)
    assert found.tolist() == [last.get((int(high), int(low)), -1) for high, low in asked]


def test_nothing_is_found_where_nothing_was_given() -> None:
    assert sorted_places([], []).find(random_keys(3, halves=9)).tolist() == [-1] * 3


@pytest.mark.parametrize("rows", [0, 1, 32, 1000])
def test_the_first_of_equal_keys_is_the_lowest_row(rows: int) -> None:
    keys = random_keys(rows, halves=12)
    first: dict[tuple[int, int], int] = {}
    wanted = [first.setdefault((int(high), int(low)), row) for row, (high, low) in enumerate(keys)]
    assert first_of_equal(keys).tolist() == wanted


def test_keys_are_those_of_the_texts_whatever_their_number_and_order() -> None:
    texts = ["", "a", "\ud800", "北京", "a"] * 20_000
    keys = keys_of(iter(texts), len(texts))
    assert np.array_equal(keys[:5], keys_of(texts[:5], 5))
    assert np.array_equal(keys[-5:], keys[:5])
    assert len(np.unique(keys, axis=0)) == 4
