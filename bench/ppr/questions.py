"""Vectors of passages, and questions with the seeds that HippoRAG 2 would give them.

What is imitated, and from where:

- Vectors share a direction (cosine about 0.1 between any two, as MiniLM gives) and topics of some 40 passages (about
  0.65 inside one). A question lies near one passage: its best cosine is 0.65 to 0.93, others of the topic about 0.5.
- Five phrase seeds a question, each a fact's score in [0.5, 1] ÷ the passages that mention the phrase (docs/method.md,
  step 4). Two are phrases of the passage that the question is near, three are drawn as mentions are, so that popular
  phrases come up as often as they are mentioned.
- Passage seeds are 0.05 · min–max of the inner products, as in the method: a question's row has mass at every passage.

Not imitated: that passages near in vectors are near in the graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.methods.seeds import reset_vectors
from hippogpu.types import AnyFloats, Csr, Floats, Ints

Random = np.random.Generator

PASSAGES_A_TOPIC = 40
COMMON, TOPIC, OWN = 0.3, 0.75, 0.6
QUESTION_NOISE = (0.4, 1.15)
SEEDS, SEEDS_NEAR = 5, 2
PASSAGE_WEIGHT = 0.05
_BLOCK = 65536


class Questions(NamedTuple):
    """B questions over one graph.

    vectors (B, w) float32 unit rows · near (B,) the passage each lies near
    phrases (B, 5) int32 phrase numbers, distinct in a row · weights (B, 5) float64
    scores (B, P) float32 min–max inner products with all passages
    """

    vectors: Floats
    near: Ints
    phrases: Ints
    weights: AnyFloats
    scores: Floats

    def rows(self, start: int, count: int) -> Questions:
        """Some of the questions."""
        here = slice(start, start + count)
        return Questions(self.vectors[here], self.near[here], self.phrases[here], self.weights[here], self.scores[here])


def passage_vectors(passages: int, width: int, *, seed: int = 0, out: Floats | None = None) -> Floats:
    """Unit vectors in topics, (P, w) float32; written into `out`, a memory map for instance, when it is given."""
    random = np.random.default_rng([seed, 3])
    topics = _unit(random.standard_normal((max(passages // PASSAGES_A_TOPIC, 8), width), np.float32))
    common = _unit(random.standard_normal((1, width), np.float32))
    vectors = np.empty((passages, width), np.float32) if out is None else out
    for start in range(0, passages, _BLOCK):
        rows = min(_BLOCK, passages - start)
        own = _unit(random.standard_normal((rows, width), np.float32))
        topic = topics[random.integers(len(topics), size=rows)]
        vectors[start : start + rows] = _unit(COMMON * common + TOPIC * topic + OWN * own)
    return vectors


def questions_near(vectors: Floats, graph: Csr, count: int, *, seed: int = 0) -> Questions:
    """Questions over a graph whose first P nodes are the passages of the vectors."""
    random = np.random.default_rng([seed, 4])
    near = random.integers(len(vectors), size=count).astype(np.int32)
    noise = random.uniform(*QUESTION_NOISE, size=(count, 1)).astype(np.float32)
    asked = _unit(vectors[near] + noise * _unit(random.standard_normal((count, vectors.shape[1]), np.float32)))
    phrases, weights = _phrase_seeds(graph, near, len(vectors), random)
    return Questions(asked, near, phrases, weights, min_max_scores(asked, vectors))


def _phrase_seeds(graph: Csr, near: Ints, passages: int, random: Random) -> tuple[Ints, AnyFloats]:
    ends = graph.indptr[: passages + 1]
    mentioned = graph.indices[: int(ends[-1])] - passages
    counts = np.bincount(mentioned, minlength=graph.nodes - passages)
    phrases = np.empty((len(near), SEEDS), np.int32)
    for row, passage in zip(phrases, near, strict=True):
        own = random.permutation(mentioned[ends[passage] : ends[passage + 1]])[:SEEDS_NEAR]
        drawn = np.concatenate([own, mentioned[random.integers(len(mentioned), size=20 * SEEDS)]])
        _, first = np.unique(drawn, return_index=True)
        row[:] = drawn[np.sort(first)[:SEEDS]]
    return phrases, random.uniform(0.5, 1.0, size=phrases.shape) / counts[phrases]


def min_max_scores(asked: Floats, vectors: Floats) -> Floats:
    """Inner products scaled to [0, 1] over all passages, (B, P) float32, worked out in blocks of passages."""
    scores = np.empty((len(asked), len(vectors)), np.float32)
    for start in range(0, len(vectors), _BLOCK):
        scores[:, start : start + _BLOCK] = asked @ vectors[start : start + _BLOCK].T
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    scores -= low
    scores /= np.maximum(high - low, np.finfo(np.float32).tiny)
    return scores


def seed_rows(questions: Questions, nodes: int, *, rows: int | None = None) -> Floats:
    """Restart mass of the first `rows` questions over all nodes, (rows, n) float32, each row summing to 1."""
    count = len(questions.near) if rows is None else rows
    filled = np.empty((count, nodes), np.float32)
    for number, row in enumerate(filled):
        pairs = zip(questions.phrases[number].tolist(), questions.weights[number].tolist(), strict=True)
        score = questions.scores[number : number + 1]
        row[:] = reset_vectors([dict(pairs)], score, passage_weight=PASSAGE_WEIGHT, nodes=nodes)[0]
    return filled


def _unit(rows: Floats) -> Floats:
    scaled: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled
