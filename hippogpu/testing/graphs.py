"""Small seeded graphs in the shape of HippoRAG's: passages and phrases, a hub, nodes without edges."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from hippogpu.types import AnyFloats, Csr, Longs


def small_graph(nodes: int, *, seed: int = 0, edges_a_node: float = 3.0, isolated: float = 0.05) -> Csr:
    """A graph with about edges_a_node edges a node; that share of the nodes has none, node 0 among the others.

    Weights are of HippoRAG's kinds in about equal parts: 1 (mentions), cosines in [0.8, 1), counts from 1 to 5.
    Few nodes draw most edges, as phrases do.
    """
    random = np.random.default_rng(seed)
    joined = np.flatnonzero(random.random(nodes) >= isolated)
    if len(joined) < 2:
        return graph_of(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), nodes=nodes)
    count = int(edges_a_node * nodes / 2) + 1
    source = joined[random.integers(len(joined), size=count)]
    target = joined[(random.random(count) ** 3 * len(joined)).astype(np.int64)]
    return graph_of(source, target, _weights(random, count), nodes=nodes)


def hub_graph(nodes: int, *, seed: int = 0) -> Csr:
    """A graph in which node 0 has half of all edges: it touches every node that has any."""
    random = np.random.default_rng(seed)
    others = np.arange(1, max(nodes - 2, 1))
    source = np.concatenate([np.zeros(len(others), np.int64), others])
    target = np.concatenate([others, np.roll(others, 1)])
    return graph_of(source, target, _weights(random, len(source)), nodes=nodes)


def pair_graph(nodes: int) -> Csr:
    """A ring over all but the last three nodes, a pair apart from it, and a last node without edges; nodes ≥ 6."""
    ring = np.arange(nodes - 3)
    source = np.concatenate([ring, [nodes - 3]])
    target = np.concatenate([np.roll(ring, 1), [nodes - 2]])
    return graph_of(source, target, np.ones(len(source)), nodes=nodes)


def graph_of(source: Longs, target: Longs, weights: AnyFloats, *, nodes: int) -> Csr:
    """The checked symmetric graph of some undirected edges: self-loops are left out, the first of equal pairs stays."""
    low, high = np.minimum(source, target), np.maximum(source, target)
    _, first = np.unique(low * np.int64(max(nodes, 1)) + high, return_index=True)
    first = first[low[first] != high[first]]
    low, high, kept = low[first], high[first], weights[first].astype(np.float32)
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    matrix = coo_array((np.tile(kept, 2), (rows, columns)), shape=(nodes, nodes)).tocsr()
    matrix.sort_indices()
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data).check()


def random_seeds(rows: int, nodes: int, *, seed: int = 0, share: float = 0.3) -> AnyFloats:
    """Seeds (rows, nodes) float64, each row ≥ 0 and summing to 1: about that share of the nodes holds mass."""
    random = np.random.default_rng(seed)
    seeds = random.random((rows, nodes)) * (random.random((rows, nodes)) < share)
    seeds[np.arange(rows), random.integers(nodes, size=rows)] += 1.0
    normalised: AnyFloats = seeds / seeds.sum(axis=1, keepdims=True)
    return normalised


def _weights(random: np.random.Generator, count: int) -> AnyFloats:
    kinds = np.stack([np.ones(count), 0.8 + 0.2 * random.random(count), random.integers(1, 6, size=count)])
    chosen: AnyFloats = kinds[random.integers(3, size=count), np.arange(count)]
    return chosen
