"""Where the walk restarts, on examples worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.methods.loaded import min_max
from hippogpu.methods.seeds import phrase_seeds, reset_vectors
from hippogpu.types import Facts

FACTS = Facts(
    np.array([0, 1, 2, 4, 6], np.int32),
    np.array([1, 2, 3, 5, 6], np.int32),
    ("p",) * 5,
    ("t",) * 5,
)
COUNTS = np.array([1, 2, 4, 1, 1, 1, 2], np.int32)


def seeds(*kept: tuple[int, float], top_phrases: int = 5) -> dict[int, float]:
    return phrase_seeds(kept, FACTS, COUNTS, top_phrases=top_phrases)


def test_a_fact_gives_each_phrase_its_score_over_the_passages_that_mention_it() -> None:
    assert seeds((0, 1.0)) == {0: 1.0, 1: 0.5}


def test_a_phrase_of_two_kept_facts_weighs_their_mean() -> None:
    assert seeds((0, 1.0), (1, 0.5)) == {0: 1.0, 1: (1.0 / 2 + 0.5 / 2) / 2, 2: 0.125}


def test_a_kept_fact_of_score_zero_pulls_a_shared_phrase_down() -> None:
    assert seeds((0, 1.0), (1, 0.0)) == {0: 1.0, 1: 0.25, 2: 0.0}


def test_a_phrase_that_is_subject_and_object_of_a_fact_weighs_its_share_once() -> None:
    assert seeds((4, 1.0)) == {6: 0.5}


def test_the_heaviest_phrases_stay_heaviest_first() -> None:
    assert list(seeds((0, 1.0), (1, 0.5), (3, 0.9), top_phrases=3)) == [0, 4, 5]


def test_a_tie_at_the_cut_goes_to_the_lower_number() -> None:
    assert list(seeds((3, 0.5), (0, 0.5), top_phrases=2)) == [0, 4]


def test_nothing_kept_gives_no_seeds() -> None:
    assert seeds() == {}


def test_the_reset_is_phrase_and_weighed_passage_seeds_over_their_sum() -> None:
    (row,) = reset_vectors([{1: 0.5}], np.array([[1.0, 0.0]]), passage_weight=0.5, nodes=5)
    assert row.tolist() == [0.5, 0, 0, 0.5, 0]


def test_every_reset_sums_to_one_or_holds_nothing() -> None:
    rows = reset_vectors([{0: 0.3}, {}, {0: 0.0}], np.array([[1, 0.2], [0, 0], [0, 0]]), passage_weight=0.05, nodes=3)
    assert rows.sum(axis=1).tolist() == pytest.approx([1, 0, 0])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_min_max_reaches_zero_and_one(kind: type) -> None:
    scores = np.array([[0.25, 0.5, 0.75]], kind)
    assert min_max(scores, scores.min(axis=1), scores.max(axis=1)).tolist() == [[0, 0.5, 1]]


@pytest.mark.parametrize(("kind", "noise"), [(np.float32, 0), (np.float32, 2.4e-7), (np.float64, 4e-16)])
def test_scores_equal_within_their_rounding_are_all_one(kind: type, noise: float) -> None:
    scores = np.array([[0.5, 0.5 + noise, 0.5]], kind)
    assert min_max(scores, scores.min(axis=1), scores.max(axis=1)).tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(("kind", "step"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_scores_that_differ_by_more_are_spread(kind: type, step: float) -> None:
    scores = np.array([[0.5, 0.5 + step]], kind)
    assert min_max(scores, scores.min(axis=1), scores.max(axis=1)).tolist() == [[0, 1]]
