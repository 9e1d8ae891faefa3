"""The top-k kernel, compiled for the host, against a stable sort."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from host import HostKernels, host_library

from hippogpu.backends.cuda_topk import LEAST_CHUNK, MOST_CHOSEN, best_of_rows
from hippogpu.backends.values import TopK
from hippogpu.errors import UsageError
from hippogpu.types import AnyFloats, AnyInts


def best(scores: AnyFloats, k: int) -> TopK:
    return best_of_rows(np, HostKernels(), scores.astype(np.float32), k)


def stable(scores: AnyFloats, k: int) -> AnyInts:
    return np.argsort(-scores.astype(np.float32), axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("rows", [1, 7, 33])
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 1000])
def test_the_best_come_in_descending_order(rows: int, columns: int) -> None:
    scores = np.random.default_rng(columns).standard_normal((rows, columns))
    for k in {1, min(5, columns), columns}:
        found = best(scores, k)
        assert np.array_equal(found.ids, stable(scores, k))
        assert np.array_equal(found.scores, np.take_along_axis(scores.astype(np.float32), found.ids, axis=1))


@pytest.mark.parametrize("values", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 23, 300, 2048])
def test_among_equal_scores_the_lower_number_comes_first(values: int, k: int) -> None:
    scores = np.random.default_rng(k).integers(values, size=(3, 3000)) / 4
    assert np.array_equal(best(scores, k).ids, stable(scores, k))


def test_ties_survive_chunks_of_a_long_row() -> None:
    scores = np.random.default_rng(1).integers(50, size=(2, 5 * LEAST_CHUNK + 77))
    assert np.array_equal(best(scores, 100).ids, stable(scores, 100))


def test_a_chunk_with_fewer_scores_than_k_gives_what_it_has() -> None:
    scores = np.random.default_rng(2).standard_normal((1, 4 * LEAST_CHUNK + 1))
    assert np.array_equal(best(scores, 2048).ids, stable(scores, 2048))


def test_more_hits_than_a_block_sorts_come_in_the_same_order() -> None:
    scores = np.random.default_rng(3).integers(9, size=(2, 4000))
    assert np.array_equal(best(scores, MOST_CHOSEN + 1).ids, stable(scores, MOST_CHOSEN + 1))


def test_the_extremes_are_those_of_the_whole_row() -> None:
    scores = np.random.default_rng(4).standard_normal((7, 2 * LEAST_CHUNK)).astype(np.float32)
    found = best(scores, 3)
    assert np.array_equal(found.low, scores.min(axis=1))
    assert np.array_equal(found.high, scores.max(axis=1))


def test_infinities_and_zeros_of_either_sign_are_in_order() -> None:
    scores = np.array([[-0.0, 0.0, np.inf, -np.inf, -0.0, 1e-45, -1e-45, 3.4e38]])
    assert best(scores, 8).ids.tolist() == [[2, 7, 5, 0, 1, 4, 6, 3]]


@pytest.mark.parametrize("bad", [np.nan, -np.nan])
def test_a_score_that_is_not_a_number_is_refused(bad: float) -> None:
    scores = np.zeros((2, 50))
    scores[1, 17] = bad
    with pytest.raises(UsageError, match="NaN"):
        best(scores, 4)


def test_the_order_of_scores_can_be_undone() -> None:
    trip = host_library("host_kernels.cpp").order_round_trip
    trip.restype = ctypes.c_float
    scores = np.random.default_rng(5).standard_normal(200).astype(np.float32)
    assert [trip(ctypes.c_float(float(score))) for score in scores] == scores.tolist()
