"""How far a mean over questions, or the difference of two methods, may be chance: the paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.errors import UsageError
from hippogpu.evaluate.measures import Evaluation

RESAMPLES, CONFIDENCE, SEED = 10_000, 0.95, 0
# Rows of the count matrix held at once: 1,000 × 500 questions are 4 MB.
_BLOCK = 1000

Doubles = NDArray[np.float64]
Verdict = Literal["better", "tie", "worse"]


class Interval(NamedTuple):
    """A mean and the bounds within which it falls when the questions are drawn anew."""

    mean: float
    low: float
    high: float


class Difference(NamedTuple):
    """The mean of one method less that of another on the same questions, its interval, and the two-sided p value.

    verdict : "better" or "worse" when the interval lies on one side of 0, else "tie"
    """

    mean: float
    low: float
    high: float
    p: float
    verdict: Verdict


def bootstrap_means(values: Doubles, *, resamples: int = RESAMPLES, seed: int = SEED) -> Doubles:
    """Means of the columns over questions drawn with replacement: (resamples, M) for values of (B, M).

    The draws depend on B, resamples and seed alone: columns, and calls of equal B, see the same questions, which is
    what makes a comparison paired. UsageError when there is no question.
    """
    questions = len(values)
    if not questions or resamples < 1:
        raise UsageError(f"A bootstrap needs a question and a resample. Got {questions} and {resamples}.")
    draws = np.random.default_rng(seed)
    means = np.empty((resamples, values.shape[1]))
    for start in range(0, resamples, _BLOCK):
        rows = min(_BLOCK, resamples - start)
        drawn = draws.integers(questions, size=(rows, questions)) + questions * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * questions).reshape(rows, questions)
        means[start : start + rows] = counts @ values / questions
    return means


def mean_intervals(
    evaluation: Evaluation, *, resamples: int = RESAMPLES, confidence: float = CONFIDENCE, seed: int = SEED
) -> dict[str, Interval]:
    """The percentile interval of each of the evaluation's means. Resampled are the questions, not the passages."""
    names = list(evaluation.values)
    values = _matrix(evaluation.by_query, list(evaluation.by_query), names)
    low, high = _bounds(bootstrap_means(values, resamples=resamples, seed=seed), confidence)
    return {name: Interval(float(values[:, i].mean()), float(low[i]), float(high[i])) for i, name in enumerate(names)}


def paired_differences(
    first: Evaluation,
    second: Evaluation,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> dict[str, Difference]:
    """The first method's means less the second's, for the measures that both have, over the same draws of questions.

    p is twice the share of resampled differences on the far side of 0 (those at 0 count to both sides), at most 1 and
    never below 2 / (resamples + 1). UsageError when the two were not measured on the same questions and level.
    """
    if set(first.by_query) != set(second.by_query) or first.level != second.level:
        raise UsageError(
            f"Two methods are compared on the same questions and level. Got {len(first.by_query)} questions at "
            f"{first.level} level and {len(second.by_query)} at {second.level} level."
        )
    names = [name for name in first.values if name in second.values]
    queries = list(first.by_query)
    values = _matrix(first.by_query, queries, names) - _matrix(second.by_query, queries, names)
    means = bootstrap_means(values, resamples=resamples, seed=seed)
    low, high = _bounds(means, confidence)
    found: dict[str, Difference] = {}
    for i, name in enumerate(names):
        p = _two_sided(means[:, i])
        found[name] = Difference(
            float(values[:, i].mean()), float(low[i]), float(high[i]), p, _verdict(low[i], high[i])
        )
    return found


def _matrix(by_query: Mapping[str, Mapping[str, float]], queries: Sequence[str], names: Sequence[str]) -> Doubles:
    return np.array([[by_query[query][name] for name in names] for query in queries], np.float64)


def _bounds(means: Doubles, confidence: float) -> tuple[Doubles, Doubles]:
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"The confidence of an interval must be in (0, 1). Got {confidence}.")
    # A sum in another order leaves 1e-17 of a difference that is 0: rounded, so that it decides no verdict.
    low, high = np.round(np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0), 12)
    return low, high


def _two_sided(means: Doubles) -> float:
    rounded = np.round(means, 12)
    tail = min(int((rounded <= 0).sum()), int((rounded >= 0).sum()))
    return min(1.0, 2 * (tail + 1) / (len(means) + 1))


def _verdict(low: float, high: float) -> Verdict:
    return "better" if low > 0 else "worse" if high < 0 else "tie"
