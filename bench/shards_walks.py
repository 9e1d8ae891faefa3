"""Masses of passages where each shard walks a part of the graph: which part, from which seeds, how often they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hippogpu.methods.seeds import phrase_seeds
from hippogpu.precision import float_rows
from hippogpu.store import Snapshot
from hippogpu.tables import mention_counts
from hippogpu.types import AnyFloats, AnyInts, Floats, Ints

DAMPING, STEPS = 0.5, 21
TOP_FACTS, TOP_PHRASES, PASSAGE_WEIGHT = 5, 5, 0.05
_BLOCK = 1 << 15


class Scheme(NamedTuple):
    """What a shard knows beside its own passages.

    facts   : the five facts and the extremes of scores are those of all shards, or of its own alone
    degrees : of a phrase in the whole graph: then mass that leaves the shard is lost; or in its own part alone
    phrases : the whole graph of phrases, or only those that its passages mention
    rounds  : how often shards tell each other what their passages gave to phrases, and walk on from that
    diffused: the passages' part is of diffused vectors, made once over the whole graph; phrase seeds alone walk
    """

    name: str
    facts: bool = True
    degrees: bool = True
    phrases: bool = False
    rounds: int = 0
    diffused: bool = False


SCHEMES = (
    Scheme("each an index of its own", facts=False, degrees=False),
    Scheme("common facts", degrees=False),
    Scheme("common facts and degrees"),
    Scheme("every phrase everywhere", phrases=True),
    Scheme("every phrase everywhere, 1 exchange", phrases=True, rounds=1),
    Scheme("every phrase everywhere, 2 exchanges", phrases=True, rounds=2),
    Scheme("diffused vectors, own phrases", diffused=True),
    Scheme("diffused vectors, every phrase", phrases=True, diffused=True),
)


class Seeds(NamedTuple):
    """(n, B) each, not normalised: 0.05 · min–max on passages, weights on phrases."""

    passages: Floats
    phrases: Floats


class World(NamedTuple):
    """An index as the walks see it: adjacency (n, n), degrees, and the questions' products with passages and facts."""

    adjacency: csr_array
    degrees: AnyFloats
    passages: int
    counts: Ints
    subject: Ints
    object: Ints
    stated: csr_array
    dense: Floats
    facts: Floats


def world_of(snapshot: Snapshot, asked: Floats) -> World:
    """For questions (B, w)."""
    graph, tables = snapshot.graph, snapshot.tables
    adjacency = csr_array((graph.weights, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    rows = tables.statements
    ones = np.ones(len(rows.values), np.float32)
    return World(
        adjacency,
        np.asarray(adjacency.sum(axis=1)).ravel(),
        len(tables.mentions),
        mention_counts(tables),
        np.asarray(tables.facts.subject),
        np.asarray(tables.facts.object),
        csr_array((ones, rows.values, rows.indptr), shape=(len(rows), len(tables.facts))),
        _products(asked, snapshot.passage_vectors),
        _products(asked, snapshot.fact_vectors),
    )


def _products(asked: Floats, vectors: Any) -> Floats:
    blocks = [
        asked @ float_rows(vectors, slice(first, first + _BLOCK)).T for first in range(0, vectors.shape[0], _BLOCK)
    ]
    return np.concatenate(blocks, axis=1)


def seeds_of(
    world: World, *, facts: AnyInts | None = None, passages: AnyInts | None = None, counts: Ints | None = None
) -> Seeds:
    """Seeds of HippoRAG 2 (docs/method.md, section 3), of all facts and passages or of a shard's."""
    nodes, questions = len(world.degrees), len(world.dense)
    chosen = np.arange(world.facts.shape[1]) if facts is None else facts
    rows = np.arange(world.passages) if passages is None else passages
    found = Seeds(np.zeros((nodes, questions), np.float32), np.zeros((nodes, questions), np.float32))
    found.passages[rows] = PASSAGE_WEIGHT * _min_max(world.dense[:, rows]).T
    counts = world.counts if counts is None else counts
    for number, weights in enumerate(_phrase_weights(world, chosen, counts)):
        for phrase, weight in weights.items():
            found.phrases[world.passages + phrase, number] = weight
    return found


def _phrase_weights(world: World, chosen: AnyInts, counts: Ints) -> Sequence[Mapping[int, float]]:
    if not len(chosen):
        return [{}] * len(world.facts)
    scores = _min_max(world.facts[:, chosen])
    best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP_FACTS]
    ends = _Ends(world.subject, world.object)
    return [
        phrase_seeds([(int(chosen[i]), float(row[i])) for i in some], ends, counts, top_phrases=TOP_PHRASES)  # type: ignore[arg-type]
        for row, some in zip(scores, best, strict=True)
    ]


class _Ends(NamedTuple):
    subject: Ints
    object: Ints


def _min_max(scores: Floats) -> Floats:
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    return np.where(high > low, (scores - low) / np.maximum(high - low, 1e-12), 1.0).astype(np.float32)


def walked(adjacency: csr_array, degrees: AnyFloats, seeds: Floats) -> Floats:
    """G·seeds (n, B) by power steps, each a share 2⁻²¹ of what is left at most: G = (1 − d)·(I − d·A·D⁻¹)⁻¹."""
    scale = np.divide(DAMPING, degrees, out=np.zeros(len(degrees)), where=degrees > 0).astype(np.float32)[:, None]
    start = (1 - DAMPING) * seeds
    masses = start.copy()
    for _ in range(STEPS):
        masses = adjacency @ (scale * masses) + start
    return masses


def exact(world: World, seeds: Seeds) -> tuple[Floats, Floats]:
    """Masses of the passages (B, P) from the passages' seeds and from the phrases'."""
    parts = (walked(world.adjacency, world.degrees, part)[: world.passages].T for part in seeds)
    first, second = parts
    return first, second


def sharded(world: World, where: Ints, shards: int, scheme: Scheme, seeds: Seeds, from_passages: Floats) -> Floats:
    """Masses of all passages (B, P) when each shard works out those of its own."""
    parts = [_Shard(world, np.flatnonzero(where == shard), scheme) for shard in range(shards)]
    questions = seeds.phrases.shape[1]
    found = np.zeros((questions, world.passages), np.float32)
    starts = [part.start(seeds) for part in parts]
    given: Floats | None = None
    for _ in range(scheme.rounds + 1):
        told = np.zeros((len(world.degrees) - world.passages, questions), np.float32)
        for part, start in zip(parts, starts, strict=True):
            masses = part.walk(start if given is None else start + part.lifted(given))
            found[:, part.rows] = masses[: len(part.rows)].T
            part.tell(masses, told)
        given = told
    return found + from_passages if scheme.diffused else found


class _Shard:
    """The part of the graph that a shard walks."""

    def __init__(self, world: World, rows: AnyInts, scheme: Scheme) -> None:
        count = len(world.degrees) - world.passages
        self.rows, self._world, self._scheme = rows, world, scheme
        self._mentioned = np.unique(world.adjacency[rows][:, world.passages :].indices)
        self._phrases = np.arange(count) if scheme.phrases else self._mentioned
        self._nodes = np.concatenate([rows, world.passages + self._phrases])
        self._adjacency = world.adjacency[self._nodes][:, self._nodes]
        own: AnyFloats = np.asarray(self._adjacency.sum(axis=1), np.float32).ravel()
        self._degrees: AnyFloats = world.degrees[self._nodes] if scheme.degrees else own
        # What its passages gave to the phrases they mention when it last walked.
        self._gave: Any = None

    def start(self, seeds: Seeds) -> Floats:
        """Its seeds; an index of its own has its own, which sum to one as its masses do."""
        if self._scheme.facts:
            start = seeds.phrases if self._scheme.diffused else seeds.passages + seeds.phrases
            here: Floats = start[self._nodes]
            return here
        facts = np.unique(self._world.stated[self.rows].indices)
        mentions = self._world.adjacency[self.rows][:, self._world.passages :]
        counts = np.maximum(np.bincount(mentions.indices, minlength=mentions.shape[1]), 1).astype(np.int32)
        own = seeds_of(self._world, facts=facts, passages=self.rows, counts=counts)
        both = own.passages + own.phrases
        sums: Floats = both[self._nodes] / np.maximum(both.sum(axis=0), 1e-12)
        return sums

    def lifted(self, given: Floats) -> Floats:
        """What other shards' passages gave to the phrases here, as seeds."""
        others = given.copy()
        others[self._mentioned] -= self._gave
        seeds = np.zeros((len(self._nodes), given.shape[1]), np.float32)
        seeds[len(self.rows) :] = others[self._phrases] / (1 - DAMPING)
        return seeds

    def walk(self, start: Floats) -> Floats:
        return walked(self._adjacency, self._degrees, start)

    def tell(self, masses: Floats, told: Floats) -> None:
        """Adds to (E, B) what the passages here gave to phrases, over all steps."""
        count = len(self.rows)
        degrees = self._degrees[:count]
        scale = np.divide(DAMPING, degrees, out=np.zeros(count), where=degrees > 0).astype(np.float32)
        mentions = self._world.adjacency[self.rows][:, self._world.passages + self._mentioned]
        self._gave = mentions.T @ (scale[:, None] * masses[:count])
        told[self._mentioned] += self._gave
