"""Ways to split the passages of an index into shards, and what a split cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hippogpu.types import AnyFloats, AnyInts, Csr, Ints, Ragged

PARTS = ("random", "order", "near")
ROUNDS, ROOM = 8, 1.1


class Cut(NamedTuple):
    """What a split does to the graph, each phrase with the shard that mentions it most.

    copies   : phrases of all shards ÷ phrases, where each shard has those that its passages mention
    mentions : share of mention edges whose phrase is another shard's · between: the same of edges between phrases
    held     : share of the edges between phrases that some shard has both ends of
    """

    copies: float
    mentions: float
    between: float
    held: float


def split(kind: str, mentions: Ragged, phrases: int, shards: int, *, seed: int = 0) -> Ints:
    """The shard of each passage, (P,) int32, as many passages in each to within a tenth.

    random : by chance · order: as the passages came, which is by source · near: each where the passages are that share
    its phrases, rare ones counting most; from `order`, in eight rounds
    """
    passages = len(mentions)
    if kind == "random":
        return np.random.default_rng(seed).permutation(passages).astype(np.int32) % np.int32(shards)
    ordered = (np.arange(passages) * shards // max(passages, 1)).astype(np.int32)
    return ordered if kind == "order" else _near(ordered, incidence(mentions, phrases), shards)


def incidence(mentions: Ragged, phrases: int) -> csr_array:
    """(P, E) ones where a passage mentions a phrase."""
    ones = np.ones(len(mentions.values), np.float32)
    return csr_array((ones, mentions.values, mentions.indptr), shape=(len(mentions), phrases))


def _near(where: Ints, mentions: csr_array, shards: int) -> Ints:
    counts = np.asarray(mentions.sum(axis=0)).ravel()
    told = mentions.multiply(1.0 / np.maximum(counts, 1.0)[None, :]).tocsr()
    for _ in range(ROUNDS):
        # What a passage shares with each shard, itself left out.
        held = np.zeros((mentions.shape[0], shards), np.float32)
        held[np.arange(len(where)), where] = 1.0
        shared = told @ (mentions.T @ held)
        own = np.asarray(told.sum(axis=1)).ravel()
        shared[np.arange(len(where)), where] -= own
        moved = _within_room(shared, where, shards)
        if np.array_equal(moved, where):
            break
        where = moved
    return where


def _within_room(shared: AnyFloats, where: Ints, shards: int) -> Ints:
    """Each passage where it shares most and there is room; those that gain most by it choose first."""
    room = np.full(shards, int(np.ceil(ROOM * len(where) / shards)))
    gain = shared.max(axis=1) - shared[np.arange(len(where)), where]
    chosen = np.empty_like(where)
    preferred = np.argsort(-shared, axis=1, kind="stable")
    for passage in np.argsort(-gain, kind="stable"):
        shard = next(one for one in preferred[passage] if room[one])
        chosen[passage] = shard
        room[shard] -= 1
    return chosen


def cut_of(where: Ints, mentions: Ragged, graph: Csr, shards: int) -> Cut:
    """What the split does to the graph."""
    passages, phrases = len(mentions), graph.nodes - len(mentions)
    rows = np.repeat(where, np.diff(mentions.indptr))
    mentioned = np.zeros((phrases, shards), np.int32)
    np.add.at(mentioned, (mentions.values, rows), 1)
    home = mentioned.argmax(axis=1)
    ends = np.repeat(np.arange(phrases), np.diff(graph.indptr[passages:]))
    other = graph.indices[graph.indptr[passages] :] - passages
    ends, other = ends[other >= 0], other[other >= 0]
    has = mentioned > 0
    return Cut(
        float(has.sum() / max(phrases, 1)),
        float(np.mean(home[mentions.values] != rows)),
        float(np.mean(home[ends] != home[other])),
        float(np.mean([bool((has[a] & has[b]).any()) for a, b in _some_pairs(ends, other)])),
    )


def _some_pairs(ends: AnyInts, other: AnyInts, most: int = 100_000) -> zip[tuple[int, int]]:
    """At most so many pairs at even spaces."""
    step = max(1, len(ends) // most)
    return zip(ends[::step].tolist(), other[::step].tolist(), strict=True)
