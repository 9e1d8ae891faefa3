"""Bootstrap intervals, against cases whose answer is known."""

import math

import numpy as np
import pytest

from hippogpu.errors import UsageError
from hippogpu.evaluate import Evaluation, Level, mean_intervals, paired_differences
from hippogpu.evaluate.intervals import bootstrap_means

# Of 300 intervals at 95 % between 92 and 98 % hold the truth; the bootstrap of 40 questions is a little narrow.
LEAST_COVERAGE, MOST_COVERAGE = 0.90, 0.985


def evaluation(values: list[float], *, level: Level = "passage", prefix: str = "q") -> Evaluation:
    by_query = {f"{prefix}{number}": {"recall@5": value} for number, value in enumerate(values)}
    return Evaluation(len(values), {"recall@5": sum(values) / len(values)}, by_query, (), (), level)


def draws(seed: int, count: int) -> list[float]:
    return [
        float(value) for value in np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=count, p=[0.2, 0.3, 0.5])
    ]


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert mean_intervals(evaluation([0.25] * 7))["recall@5"] == (0.25, 0.25, 0.25)


def test_the_interval_is_that_of_the_normal_law_for_many_questions() -> None:
    values = draws(1, 400)
    found = mean_intervals(evaluation(values))["recall@5"]
    half = 1.96 * np.std(values) / np.sqrt(len(values))
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half), abs=0.004)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    truth, held = 0.65, 0
    for seed in range(300):
        found = mean_intervals(evaluation(draws(seed, 40)), resamples=500)["recall@5"]
        held += found.low <= truth <= found.high
    assert LEAST_COVERAGE <= held / 300 <= MOST_COVERAGE


def test_a_constant_difference_is_known_exactly() -> None:
    first, second = draws(2, 33), draws(2, 33)
    found = paired_differences(evaluation([value + 0.125 for value in first]), evaluation(second))["recall@5"]
    assert (found.mean, found.low, found.high, found.verdict) == (0.125, 0.125, 0.125, "better")


def test_a_method_against_itself_is_a_tie_with_p_1() -> None:
    values = [0.1, 0.2, 0.7, 1 / 3]
    found = paired_differences(evaluation(values), evaluation(values))["recall@5"]
    assert (found.mean, found.p, found.verdict) == (0.0, 1.0, "tie")


def test_p_is_twice_the_smaller_tail() -> None:
    # For many questions the tails are those of the normal law.
    first, second = draws(7, 200), draws(8, 200)
    found = paired_differences(evaluation(first), evaluation(second))["recall@5"]
    apart = np.array(first) - np.array(second)
    z = abs(found.mean) / (apart.std() / np.sqrt(len(apart)))
    assert 0.2 < found.p < 0.95
    assert found.p == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.04)


def test_pairing_finds_a_small_gain_that_two_intervals_hide() -> None:
    low = draws(3, 60)
    high = [value + 0.02 * (number % 2) for number, value in enumerate(low)]
    first, second = evaluation(high), evaluation(low)
    overlap = mean_intervals(first)["recall@5"].low < mean_intervals(second)["recall@5"].high
    assert (overlap, paired_differences(first, second)["recall@5"].verdict) == (True, "better")


def test_swapping_the_sides_mirrors_the_difference() -> None:
    first, second = evaluation(draws(4, 31)), evaluation(draws(5, 31))
    one, other = (paired_differences(*pair)["recall@5"] for pair in ((first, second), (second, first)))
    assert (one.low, one.high, one.p) == pytest.approx((-other.high, -other.low, other.p))


def test_questions_are_paired_by_id_and_not_by_place() -> None:
    first = evaluation([0.0, 1.0, 0.5])
    turned = Evaluation(3, first.values, dict(reversed(first.by_query.items())), (), ())
    assert paired_differences(first, turned)["recall@5"].high == 0.0


def test_the_same_seed_draws_the_same_questions_for_every_column() -> None:
    column = np.arange(10.0)[:, None]
    assert np.array_equal(
        bootstrap_means(column, resamples=50), bootstrap_means(np.hstack([column] * 2), resamples=50)[:, :1]
    )


def test_a_block_more_changes_no_draw_before_it() -> None:
    column = np.arange(10.0)[:, None]
    assert np.array_equal(bootstrap_means(column, resamples=1500)[:1000], bootstrap_means(column, resamples=1000))


@pytest.mark.parametrize(
    "other", [evaluation([1.0]), evaluation([1.0, 0.0], prefix="x"), evaluation([1.0, 0.0], level="title")]
)
def test_other_questions_or_another_level_are_not_compared(other: Evaluation) -> None:
    with pytest.raises(UsageError, match="same questions and level"):
        paired_differences(evaluation([1.0, 0.0]), other)
