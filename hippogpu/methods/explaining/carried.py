"""Which seeds carried mass to a passage: one push from the passage finds what every seed carried."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.backends import Graph
from hippogpu.backends.cpu_push import Left, Walk, clear, left_for, push, sow
from hippogpu.types import AnyFloats, Ints

TOLERANCE = 0.001
"""What is not followed any further is at most this share of the target's mass."""
# Where the first push stops, and the last one at the latest: what is missing then tells nobody anything.
_FIRST_EPSILON, _LEAST_EPSILON = 1e-3, 1e-8
# Large residuals go first, so that small ones gather before they move.
_FALL = 4.0
# Then the next push takes some milliseconds.
_CHEAP_EDGES = 20_000


class Source(NamedTuple):
    """Seeds and the graph they walk: the mass of every node is G·seeds, G = (1 − d)·(I − d·A·D⁻¹)⁻¹.

    graph : NumPy arrays. Its weights may carry a question's own factors, alike in both directions of an edge; the
            degrees are the sums of those weights
    seeds : (n,) float64 ≥ 0, in any unit
    """

    graph: Graph
    seeds: AnyFloats


class Target(NamedTuple):
    """What a passage's score sums: weights · masses of nodes. HippoRAG 2: its own node, once."""

    nodes: Ints
    weights: AnyFloats


class Carried(NamedTuple):
    """What the seeds of some nodes carried to a target, in the unit of the seeds.

    nodes (m,) ascending · masses (m,) float64, each short of the truth and never over
    missing: a seed of weight s, listed or not, carried at most missing · s more · edges touched, repeats counted
    """

    nodes: Ints
    masses: AnyFloats
    missing: float
    edges: int


def carried(
    source: Source,
    target: Target,
    *,
    damping: float,
    named: float | None = None,
    tolerance: float = TOLERANCE,
    desk: Left | None = None,
) -> Carried:
    """What each seed carried to the target, until at most that share of it is missing, or 1e-8 of each seed.

    named : sum of the seeds that must not miss more; the others are followed only as long as that is cheap
    desk  : working memory of cpu_push.left_for(graph, graph.nodes), zeros as it must be left
    The graph is undirected, so D·Gᵀ = G·D: what each seed gives to the target t is Gᵀ·t = D⁻¹·G·D·t, one push from the
    target, local for the same reason as that of the seeds. Where every residual is at most epsilon · degree, a seed of
    weight s misses at most d · epsilon · s.
    """
    graph, seeds = source.graph, source.seeds
    at = desk if desk is not None else left_for(graph, graph.nodes)
    walk = Walk(graph.indptr, graph.indices, graph.weights, damping)
    whole, epsilon, edges = float(seeds.sum()), _FIRST_EPSILON, 0
    # A node without edges stands for itself: any degree does.
    starts = target.weights * np.where(graph.degrees[target.nodes] > 0, graph.degrees[target.nodes], 1.0)
    count = sow(target.nodes, starts, damping, at)
    while True:
        count, more = push(walk, at, count, epsilon)
        edges += more
        found = _gathered(graph, seeds, at, count, damping)
        missing = damping * epsilon if at.left[at.touched[:count], 0].any() else 0.0
        enough = tolerance * found[1].sum()
        must = whole if named is None or edges < _CHEAP_EDGES else named
        if missing * must <= enough or epsilon <= _LEAST_EPSILON:
            break
        epsilon = max(_LEAST_EPSILON, epsilon / _FALL, min(epsilon / 2, enough / (damping * must)))
    clear(at, count)
    return Carried(*found, missing, edges)


def _gathered(graph: Graph, seeds: AnyFloats, at: Left, count: int, damping: float) -> tuple[Ints, AnyFloats]:
    """The touched nodes that have seeds, ascending, with seed · share."""
    nodes = np.sort(at.touched[:count])
    nodes = nodes[seeds[nodes] > 0]
    degrees = graph.degrees[nodes]
    reached = at.mass[nodes] + (1 - damping) * at.left[nodes, 0]
    masses: AnyFloats = seeds[nodes] * reached / np.where(degrees > 0, degrees, 1.0)
    return nodes, masses
