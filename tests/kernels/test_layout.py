"""The compressed graph holds what the graph holds."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.backends.cuda_layout import BOOK, compress, cut, expand
from hippogpu.testing.graphs import graph_of, hub_graph, small_graph
from hippogpu.types import Csr


def edges_of(graph: Csr) -> set[tuple[int, int, float]]:
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    return set(zip(rows.tolist(), graph.indices.tolist(), graph.weights.tolist(), strict=True))


def many_weights(nodes: int) -> Csr:
    """A graph with more distinct weights than the book has room for."""
    random = np.random.default_rng(nodes)
    ends = random.integers(nodes, size=(2, 6 * nodes))
    return graph_of(ends[0], ends[1], random.uniform(0.8, 1.0, 6 * nodes), nodes=nodes)


@pytest.mark.parametrize(
    "graph", [small_graph(1), small_graph(1000), hub_graph(1000), many_weights(1000), small_graph(31, isolated=1.0)]
)
def test_compression_loses_nothing(graph: Csr) -> None:
    assert edges_of(expand(compress(graph))) == edges_of(graph)


def test_weights_that_repeat_take_a_byte() -> None:
    graph = many_weights(1000)
    counted = Csr(graph.indptr, graph.indices, np.round(graph.weights * 5))
    assert len(compress(counted).exact) == 0
    assert len(compress(graph).codes) <= BOOK * 4 < len(compress(graph).exact)


def test_long_rows_are_cut_into_parts_that_cover_them() -> None:
    parts = cut(np.array([0, 3, 13, 13, 17, 29]), longest=5)
    assert parts.long_rows.tolist() == [1, 4]
    assert parts.part_ptr.tolist() == [0, 2, 5]
    assert parts.part_first.tolist() == [3, 8, 17, 22, 27]
    assert parts.part_last.tolist() == [8, 13, 22, 27, 29]


def test_a_graph_without_long_rows_has_no_parts() -> None:
    parts = cut(np.array([0, 2, 4]))
    assert [len(array) for array in parts] == [0, 1, 0, 0, 0]
