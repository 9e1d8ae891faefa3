"""What backends take and hand back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hippogpu.types import AnyFloats, Bools, Ints, Longs

# Diffused vectors are stored in float32.
STORED_ROUNDOFF = 2.0**-24


class TopK(NamedTuple):
    """The k best keys of each query, descending, ties by lower number; and the extremes over all keys.

    ids (B, k) int32 · scores (B, k) · low (B,) · high (B,), all of the backend's own float type
    """

    ids: Ints
    scores: AnyFloats
    low: AnyFloats
    high: AnyFloats


class Graph(NamedTuple):
    """A checked graph on a backend: its CSR arrays and weighted degrees, (n,) in the backend's float type."""

    indptr: Any
    indices: Any
    weights: Any
    degrees: Any

    @property
    def nodes(self) -> int:
        return len(self.degrees)


class Residual(NamedTuple):
    """How far x is from solving its system, for each column: (1 − d)·s + d·P·x − x.

    l1 (c,) float64         its L1 norm; that of the error is at most l1 ÷ (1 − d)
    over_degree (c,) float64 its greatest share of a degree; the error of a node is at most that · degree ÷ (1 − d)
    """

    l1: AnyFloats
    over_degree: AnyFloats


class SparseSeeds(NamedTuple):
    """Seeds that few nodes hold: those of query b are nodes[indptr[b]:indptr[b+1]], each once, with their weights.

    indptr (B+1,) int64 · nodes int32 · weights ≥ 0, in any unit
    """

    indptr: Longs
    nodes: Ints
    weights: AnyFloats


def seed_columns(seeds: SparseSeeds, nodes: int, rows: slice, xp: Any = np) -> Any:
    """The seeds of some queries as columns (n, rows) float64 of the array module xp."""
    indptr = np.asarray(seeds.indptr)[rows.start : rows.stop + 1]
    here = slice(int(indptr[0]), int(indptr[-1]))
    columns = xp.zeros((nodes, len(indptr) - 1))
    numbers = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    columns[xp.asarray(seeds.nodes[here]), xp.asarray(numbers)] = xp.asarray(seeds.weights[here], dtype=np.float64)
    return columns


class PassagePart(NamedTuple):
    """What the passage seeds add to G·s at every passage: slope·(diffused·query) + offset·ones.

    diffused (P, w) G·V on passages and ones (P,) G·1 on passages, both put on the backend
    queries (B, w) · slope (B,) · offset (B,)
    error: diffused·query is off by at most error · |query| · degree, and ones by error · degree (Residual.error)
    """

    diffused: Any
    ones: Any
    queries: AnyFloats
    slope: AnyFloats
    offset: AnyFloats
    error: float = 0.0


class Certified(NamedTuple):
    """The k passages with the greatest G·s of each query, descending, ties by lower number, and how sure that is.

    ids (B, k) int32 · scores (B, k) float64, short of G·s by at most bounds (B, k), and over by roundings alone
    certified (B,) whether no other passage can reach the k-th score
    epsilon (B,) what no residual ÷ degree exceeds in the end · edges (B,) int64 edges touched, repeats counted
    """

    ids: Ints
    scores: AnyFloats
    bounds: AnyFloats
    certified: Bools
    epsilon: AnyFloats
    edges: Longs


def nothing_certified(queries: int, k: int) -> Certified:
    """Certified arrays of that shape, to be filled."""
    ids, scores, bounds = np.empty((queries, k), np.int32), np.empty((queries, k)), np.empty((queries, k))
    return Certified(ids, scores, bounds, np.zeros(queries, bool), np.zeros(queries), np.zeros(queries, np.int64))


def stored_rounding(part: PassagePart, degrees: AnyFloats) -> AnyFloats:
    """What diffused·query (for a unit query) and ones may be off by at each passage, (P,) float64.

    The diffusion's error, for rows of V that are up to a thousandth longer than 1, and some roundings of float32, in
    which they are stored whatever backend made them.
    """
    ones = np.asarray(part.ones, np.float64)
    off: AnyFloats = 1.001 * part.error * degrees + 4 * STORED_ROUNDOFF * ones
    return off
