"""What the comparison with the authors' library takes for equal."""

from __future__ import annotations

import numpy as np
import pytest

from bench.checks import at_most
from bench.oracle.graph import places_apart
from bench.oracle.questions import seeds_agree
from hippogpu.types import Ranking, Seed

THEIRS = {"phrase_seeds": [{"phrase": "a", "weight": 1.0}, {"phrase": "b", "weight": 0.5}]}


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ((Seed("b", 0.5), Seed("a", 1.0)), "same"),
        ((Seed("a", 1.0), Seed("c", 0.5)), "tie"),
        ((Seed("c", 1.0), Seed("b", 0.5)), "other"),
        ((Seed("a", 0.5), Seed("b", 1.0)), "other"),
        ((Seed("a", 1.0),), "other"),
        ((Seed("a", 1.0), Seed("b", 0.4)), "other"),
    ],
)
def test_seeds_may_differ_only_in_phrases_of_the_lightest_weight(ours: tuple[Seed, ...], verdict: str) -> None:
    assert seeds_agree(Ranking("q", (), "hippo2", seeds=ours), THEIRS) == verdict


def test_equal_passages_in_another_order_are_not_apart() -> None:
    scores = np.array([[0.1, 0.5, 0.5, 0.3]])
    assert places_apart(np.array([[2, 1]]), np.array([[1, 2]]), scores).tolist() == [0.0]
    assert places_apart(np.array([[1, 3]]), np.array([[1, 2]]), scores) == pytest.approx([0.2])


def test_a_difference_that_is_no_number_fails() -> None:
    assert not at_most("difference", float("nan"), 1.0).passed
