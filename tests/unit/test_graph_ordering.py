"""The order that a diffusion works in: every node once, neighbours side by side, the same graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from hippogpu.graph.ordering import communities, neighbours_together, renumbered
from hippogpu.testing.graphs import small_graph
from hippogpu.types import Csr


def cliques(count: int, size: int) -> Csr:
    """Cliques whose nodes are dealt out in turn, so that no two of one lie side by side."""
    clique = np.arange(count * size) % count
    joined = clique[:, None] == clique[None, :]
    np.fill_diagonal(joined, False)
    matrix = csr_array(joined.astype(np.float32))
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


@pytest.mark.parametrize("nodes", [1, 31, 33, 1000])
def test_every_node_stands_in_the_order_once(nodes: int) -> None:
    assert sorted(neighbours_together(small_graph(nodes, seed=nodes)).tolist()) == list(range(nodes))


def test_a_graph_without_nodes_has_an_empty_order() -> None:
    nothing = Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert renumbered(nothing, neighbours_together(nothing)).nodes == 0


def test_nodes_of_a_clique_lie_side_by_side() -> None:
    count, size = 7, 13
    clique = neighbours_together(cliques(count, size)) % count
    assert np.sum(clique[1:] != clique[:-1]) == count - 1


def test_a_node_joins_the_community_that_most_of_its_weight_is_in() -> None:
    # Two triangles; node 6 has a heavy edge to the second and two light ones to the first.
    weights = np.zeros((7, 7), np.float32)
    for one, other in [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]:
        weights[one, other] = weights[other, one] = 5
    for other, weight in [(0, 1), (1, 1), (3, 3)]:
        weights[6, other] = weights[other, 6] = weight
    matrix = csr_array(weights)
    labels = communities(Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data))
    assert labels[6] == labels[3] != labels[0]


@pytest.mark.parametrize("nodes", [1, 33, 301])
def test_a_renumbered_graph_is_the_same_graph_and_keeps_its_laws(nodes: int) -> None:
    graph, order = small_graph(nodes, seed=3), np.random.default_rng(nodes).permutation(nodes)
    other = renumbered(graph, order)
    other.check()
    wanted = csr_array((graph.weights, graph.indices, graph.indptr), shape=(nodes, nodes)).toarray()
    found = csr_array((other.weights, other.indices, other.indptr), shape=(nodes, nodes)).toarray()
    np.testing.assert_array_equal(found, wanted[np.ix_(order, order)])
