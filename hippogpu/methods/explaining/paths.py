"""The strongest paths from seeds to a passage, found best first."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from hippogpu.methods.explaining.carried import Source, Target
from hippogpu.types import AnyFloats, AnyInts, Bools, Ints, Longs

PATHS = 3
LONGEST = 6
"""Steps of a path at most. With d = 0.5 each step at least halves what arrives."""
EDGES = 500_000
"""Edges looked at for one passage at most; the nodes that give most come first."""
_TRIED = 5_000
# Products of the same factors in another order differ by some roundings.
_ROUNDING = 1 - 1e-9


class WalkPath(NamedTuple):
    """Nodes from a seed to a node of the target, each once, and the mass that walked exactly them.

    mass = seed · (1 − d) · Π d·weight ÷ degree of the node before · weight of the last node in the target
    """

    nodes: tuple[int, ...]
    mass: float


class Reach(NamedTuple):
    """What arrives at the target of a unit at each node, by the best walk of LONGEST steps at most; 0 where unknown.

    best (n,) · nodes (m,) with best > 0, ascending · enough: what the last path worth listing gives at least
    """

    best: AnyFloats
    nodes: Ints
    enough: float


def strongest_paths(
    source: Source,
    target: Target,
    *,
    damping: float,
    own: int,
    count: int = PATHS,
    longest: int = LONGEST,
    edges: int = EDGES,
) -> list[WalkPath]:
    """The count paths that carry most, descending, ties by their nodes; no path of `own` (the passage) alone.

    First the best product from every near node to the target is worked out, a layer of steps at a time; then paths
    grow from the seeds, always the one that can still give most.
    """
    reach = reached(source, target, damping=damping, own=own, count=count, longest=longest, edges=edges)
    found = _grown(source, target, reach, damping, own, count, longest)
    return sorted((path._replace(mass=(1 - damping) * path.mass) for path in found), key=lambda p: (-p.mass, p.nodes))


def reached(source: Source, target: Target, *, damping: float, own: int, count: int, longest: int, edges: int) -> Reach:
    """Best products towards the target, from all nodes that may lie on one of the count strongest paths."""
    graph, seeds = source.graph, source.seeds
    best: AnyFloats = np.zeros(graph.nodes)
    best[target.nodes] = target.weights
    heaviest, enough = float(seeds.max(initial=0.0)), 0.0
    nodes = frontier = np.unique(target.nodes)
    for _ in range(longest):
        # One more step gives at most d, and the best seed of the count strongest is a path already.
        frontier = frontier[best[frontier] * damping * heaviest >= enough * _ROUNDING]
        frontier = _within_budget(graph.indptr, frontier, best, edges)
        before, places = _rows(graph.indptr, frontier)
        edges -= len(places)
        others = graph.indices[places]
        arrives = best[before] * damping * graph.weights[places] / graph.degrees[others]
        better = arrives > best[others]
        if not better.any():
            break
        np.maximum.at(best, others[better], arrives[better])
        frontier = np.unique(others[better])
        nodes = np.union1d(nodes, frontier)
        given = seeds[nodes] * best[nodes] * (nodes != own)
        enough = float(np.partition(given, -count)[-count]) if len(given) >= count else 0.0
    return Reach(best, nodes.astype(np.int32), enough)


def _within_budget(indptr: Longs, frontier: Ints, best: AnyFloats, edges: int) -> Ints:
    """The nodes of the frontier that give most and have no more edges than that together."""
    ordered = frontier[np.argsort(-best[frontier], kind="stable")]
    return ordered[np.cumsum(indptr[ordered + 1] - indptr[ordered]) <= edges]


def _rows(indptr: Longs, nodes: Ints) -> tuple[Ints, Longs]:
    """Of each edge of the nodes: the node, and its place in the graph's arrays."""
    first, counts = indptr[nodes], indptr[nodes + 1] - indptr[nodes]
    ends = np.cumsum(counts)
    places: Longs = np.repeat(first - ends + counts, counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    return np.repeat(nodes, counts), places


def _grown(
    source: Source, target: Target, reach: Reach, damping: float, own: int, count: int, longest: int
) -> list[WalkPath]:
    """The strongest paths, without the factor 1 − d, in the order they are finished."""
    ends = dict(zip(target.nodes.tolist(), target.weights.tolist(), strict=True))
    found: list[WalkPath] = []
    # (−what it can give, its nodes, whether it is finished, its product so far)
    open_: list[tuple[float, tuple[int, ...], bool, float]] = []
    for node, can_give in _starts(source, reach, own):
        open_.append((-can_give, (node,), False, float(source.seeds[node])))
    heapq.heapify(open_)
    for _ in range(_TRIED):
        if not open_ or len(found) == count:
            break
        _, nodes, finished, product = heapq.heappop(open_)
        if finished:
            found.append(WalkPath(nodes, product))
            continue
        last = nodes[-1]
        if last in ends:
            heapq.heappush(open_, (-product * ends[last], nodes, True, product * ends[last]))
        if len(nodes) <= longest and not (last in ends and len(ends) == 1):
            for other, walked, can_give in _next(source, reach, nodes, product, damping):
                heapq.heappush(open_, (-can_give, (*nodes, other), False, walked))
    return found


def _starts(source: Source, reach: Reach, own: int) -> list[tuple[int, float]]:
    """Seeds that can give enough, and what each can give at most."""
    gives = source.seeds[reach.nodes] * reach.best[reach.nodes]
    worth = _worth(gives, reach.enough) & (reach.nodes != own)
    return list(zip(reach.nodes[worth].tolist(), gives[worth].tolist(), strict=True))


def _next(
    source: Source, reach: Reach, nodes: tuple[int, ...], product: float, damping: float
) -> list[tuple[int, float, float]]:
    """Nodes that may come next, with the product up to each and what it can give at most."""
    graph = source.graph
    here = slice(int(graph.indptr[nodes[-1]]), int(graph.indptr[nodes[-1] + 1]))
    others: AnyInts = graph.indices[here]
    # A Python number times float32 would stay float32 and fall below what float64 has found.
    walked = product * damping / graph.degrees[nodes[-1]] * graph.weights[here].astype(np.float64)
    gives = walked * reach.best[others]
    worth = _worth(gives, reach.enough) & ~np.isin(others, nodes)
    return list(zip(others[worth].tolist(), walked[worth].tolist(), gives[worth].tolist(), strict=True))


def _worth(gives: AnyFloats, enough: float) -> Bools:
    worth: Bools = (gives > 0) & (gives >= enough * _ROUNDING)
    return worth
