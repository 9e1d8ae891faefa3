"""Node orders: each a permutation of a graph's nodes, by which neighbours may come to lie side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from hippogpu.graph.ordering import breadth_first, communities, neighbours_together
from hippogpu.types import Csr, Longs

SEED = 7


class Order(NamedTuple):
    """order (n,) the nodes in their new order · communities of the walk that made it, 0 where there are none."""

    order: Longs
    communities: int = 0


def as_is(graph: Csr, passages: int) -> Order:
    """Passages in their order, then phrases in theirs."""
    return Order(np.arange(graph.nodes))


def at_random(graph: Csr, passages: int) -> Order:
    """The worst: neighbours lie anywhere."""
    return Order(np.random.default_rng(SEED).permutation(graph.nodes))


def by_degree(graph: Csr, passages: int) -> Order:
    """Nodes of many edges first: what is read most often lies together."""
    return Order(np.argsort(-np.diff(graph.indptr), kind="stable"))


def cuthill_mckee(graph: Csr, passages: int) -> Order:
    """SciPy's reverse Cuthill-McKee: breadth-first from a node of few edges."""
    matrix = csr_array((graph.weights, graph.indices, graph.indptr.astype(np.int32)), shape=(graph.nodes, graph.nodes))
    return Order(reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64))


def by_first_passage(graph: Csr, passages: int) -> Order:
    """Phrases stand behind the first passage that mentions them, beside its other phrases."""
    first = np.arange(graph.nodes)
    has = graph.indptr[passages:-1] < graph.indptr[passages + 1 :]
    rows = passages + np.flatnonzero(has)
    # A row's columns ascend, so its first one is the first passage, if it has any.
    first[rows] = graph.indices[graph.indptr[rows]]
    return Order(np.argsort(first, kind="stable"))


def by_label(graph: Csr, passages: int) -> Order:
    """The order that a diffusion works in."""
    return Order(neighbours_together(graph), len(np.unique(communities(graph))))


def by_leiden(graph: Csr, passages: int) -> Order:
    """The same with the communities of igraph's Leiden."""
    import igraph

    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    once = rows < graph.indices
    made = igraph.Graph(n=graph.nodes, edges=np.column_stack([rows[once], graph.indices[once]]))
    found = made.community_leiden("modularity", weights=graph.weights[once].tolist(), n_iterations=2)
    return _by_communities(graph, np.asarray(found.membership))


ORDERS: dict[str, Callable[[Csr, int], Order]] = {
    "as is": as_is,
    "random": at_random,
    "degree": by_degree,
    "first passage": by_first_passage,
    "Cuthill-McKee": cuthill_mckee,
    "labels": by_label,
    "Leiden": by_leiden,
}


def _by_communities(graph: Csr, labels: Any) -> Order:
    walked = breadth_first(graph.indptr, graph.indices)
    met = np.full(int(labels.max()) + 1, graph.nodes)
    np.minimum.at(met, labels[walked], np.arange(graph.nodes))
    return Order(walked[np.argsort(met[labels[walked]], kind="stable")], len(np.unique(labels)))
