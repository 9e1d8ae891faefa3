"""The encoder without a model."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ConfigError
from hippogpu.testing.embedders import check_embedder


@pytest.mark.parametrize("width", [2, 31, 256, 1000])
def test_hashing_keeps_the_promises_of_an_embedder(width: int) -> None:
    check_embedder(HashingEmbedder(width))


def test_a_vector_is_its_stored_whole_numbers_to_the_last_bit() -> None:
    row = HashingEmbedder(8).encode(["Oliver Badman"])[0]
    sums = np.array([-6, -1, -2, -4, -3, 1, 0, 3])
    assert np.array_equal(row, (sums / np.sqrt(76.0)).astype(np.float32))


def test_near_identical_texts_are_near_and_others_far() -> None:
    near, one, far = HashingEmbedder().encode(["Oliver Badmann", "oliver  badman", "Marie Curie"])
    assert near @ one > 0.6
    assert abs(far @ one) < 0.25


def test_case_and_runs_of_spaces_do_not_matter() -> None:
    rows = HashingEmbedder().encode(["Oliver Badman", "  oliver\tBADMAN "])
    assert np.array_equal(rows[0], rows[1])


def test_the_name_holds_the_width() -> None:
    assert HashingEmbedder(64).name == "hashing-64"


def test_a_width_of_nothing_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="Got 0"):
        HashingEmbedder(0)
