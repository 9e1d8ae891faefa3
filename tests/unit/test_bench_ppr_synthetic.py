"""The synthetic graphs of the PPR bench have the shape of the real ones."""

from __future__ import annotations

import numpy as np
import pytest

from bench.ppr.questions import Questions, min_max_scores, passage_vectors, questions_near, seed_rows
from bench.ppr.synthetic import (
    SYNONYM_REACH,
    Shape,
    Synthetic,
    _circle_pairs,
    circle_sizes,
    distinct,
    synthetic_graph,
)
from hippogpu.types import Csr, Floats

# MuSiQue-train with the default encoder, counted: passages; phrases, fact pairs, mentions, synonym pairs; phrases
# mentioned once; mentions of the most popular phrase; median and 90th percentile of the cosines.
TRAIN, TRAIN_COUNTS = 1890, (16235, 16509, 19755, 6931)
ONCE, MOST_MENTIONS, COSINES = 0.912, 169, (0.844, 0.921)


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return synthetic_graph(1000)


@pytest.fixture(scope="module")
def vectors() -> Floats:
    return passage_vectors(1000, 64)


@pytest.fixture(scope="module")
def asked(made: Synthetic, vectors: Floats) -> Questions:
    return questions_near(vectors, made.graph, 64)


def mention_counts(made: Synthetic) -> np.ndarray:
    graph = made.graph
    return np.bincount(graph.indices[: graph.indptr[made.passages]] - made.passages, minlength=made.phrases)


@pytest.mark.parametrize("passages", [20, 333, 1000])
def test_the_graph_keeps_the_promises_of_a_csr(passages: int) -> None:
    synthetic_graph(passages).graph.check()


def test_the_counts_are_those_of_the_shape(made: Synthetic) -> None:
    assert made[1:] == (1000, 7300, 12100, 11400, 97000)
    # Pairs that are a fact and a synonym are one edge: few are.
    edges = made.graph.nonzeros // 2
    assert 0.998 * (12100 + 11400 + 97000) < edges <= 12100 + 11400 + 97000


def test_passages_are_joined_to_phrases_alone(made: Synthetic) -> None:
    graph = made.graph
    of_passages = slice(0, int(graph.indptr[made.passages]))
    assert graph.indices[of_passages].min() >= made.passages
    assert set(graph.weights[of_passages].tolist()) == {1.0}
    assert int(graph.indptr[made.passages]) == made.mentions


def test_every_phrase_is_mentioned_and_popularity_has_a_heavy_tail(made: Synthetic) -> None:
    counts = np.sort(mention_counts(made))[::-1]
    assert counts[-1] >= 1
    assert counts[0] > 100
    assert counts[0] > 2 * counts[1] > 2 * counts[100]


def test_the_shape_of_musique_train_is_met() -> None:
    made = synthetic_graph(TRAIN, shape=Shape(*(count / TRAIN for count in TRAIN_COUNTS)))
    counts, weights = mention_counts(made), made.graph.weights
    assert made[2:] == TRAIN_COUNTS
    assert np.mean(counts == 1) == pytest.approx(ONCE, abs=0.08)
    assert counts.max() == pytest.approx(MOST_MENTIONS, rel=0.35)
    assert np.percentile(weights[weights < 1], [50, 90]) == pytest.approx(COSINES, abs=0.01)


def test_synonyms_are_capped_and_their_weights_are_cosines(made: Synthetic) -> None:
    graph = made.graph
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    synonyms = np.bincount(rows[graph.weights < 1], minlength=graph.nodes)
    assert 100 < synonyms.max() <= 125
    assert graph.weights.min() >= 0.8


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 99, 100, 101, 102, 103, 400])
def test_each_member_of_a_circle_has_all_others_up_to_the_cap(size: int) -> None:
    keys = _circle_pairs(np.array([size]), np.arange(size))
    degrees = np.bincount(np.concatenate([keys // size, keys % size]), minlength=size)
    assert len(np.unique(keys)) == len(keys)
    assert set(degrees.tolist()) == {min(size - 1, 2 * SYNONYM_REACH)}


@pytest.mark.parametrize("phrases", [1, 146, 7300])
def test_circles_hold_every_phrase(phrases: int) -> None:
    sizes = circle_sizes(phrases)
    assert (int(sizes.sum()), int(sizes.min())) == (phrases, 1)


def test_distinct_draws_until_the_count_is_reached() -> None:
    random = np.random.default_rng(0)
    keys = distinct(np.array([5]), 60, lambda size: random.integers(-1, 64, size=size), random)
    assert len(np.unique(keys)) == len(keys) == 60
    assert 5 in keys
    assert keys.min() >= 0


def arrays_of(graph: Csr) -> list[bytes]:
    return [graph.indptr.tobytes(), graph.indices.tobytes(), graph.weights.tobytes()]


def test_the_seed_decides_the_graph(made: Synthetic) -> None:
    assert arrays_of(synthetic_graph(1000, seed=0).graph) == arrays_of(made.graph)
    assert arrays_of(synthetic_graph(1000, seed=1).graph) != arrays_of(made.graph)


def test_vectors_are_unit_and_lie_in_topics(vectors: Floats) -> None:
    cosines = vectors @ vectors.T
    assert np.diag(cosines) == pytest.approx(1.0, abs=1e-5)
    np.fill_diagonal(cosines, -1)
    assert 0.6 < np.median(cosines.max(axis=1)) < 0.9


def test_a_question_is_nearest_to_its_passage(asked: Questions, vectors: Floats) -> None:
    cosines = asked.vectors @ vectors.T
    best = cosines[np.arange(64), asked.near]
    assert np.percentile(best, [0, 100]) == pytest.approx([0.75, 0.85], abs=0.15)
    assert np.mean(cosines.argmax(axis=1) == asked.near) > 0.9


def test_the_seeds_of_phrases_are_distinct_and_weighed_by_their_mentions(asked: Questions, made: Synthetic) -> None:
    scores = asked.weights * mention_counts(made)[asked.phrases]
    assert scores.min() >= 0.5 - 1e-12
    assert scores.max() <= 1
    assert all(len(set(row)) == 5 for row in asked.phrases.tolist())


def test_rows_of_seeds_hold_mass_at_passages_and_five_phrases(asked: Questions, made: Synthetic) -> None:
    rows = seed_rows(asked, made.graph.nodes, rows=7)
    assert rows.sum(axis=1, dtype=np.float64) == pytest.approx(1.0, abs=1e-6)
    assert np.count_nonzero(rows[:, 1000:], axis=1).tolist() == [5] * 7
    assert np.count_nonzero(rows[:, :1000], axis=1).min() > 990


def test_scores_in_blocks_are_the_scores_at_once(
    asked: Questions, vectors: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.ppr.questions._BLOCK", 333)
    scores = min_max_scores(asked.vectors, vectors)
    assert scores == pytest.approx(asked.scores, abs=1e-6)
    assert (set(scores.min(axis=1).tolist()), set(scores.max(axis=1).tolist())) == ({0.0}, {1.0})
