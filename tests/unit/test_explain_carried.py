"""What each seed carried to a passage, against a dense solve in float64."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.backends import Graph
from hippogpu.backends.cpu_push import left_for
from hippogpu.backends.reference import row_sums
from hippogpu.methods.explaining import Source, Target, carried
from hippogpu.testing.graphs import hub_graph, pair_graph, random_seeds, small_graph
from hippogpu.types import AnyFloats, Csr

DAMPING = 0.5
# The push works in float64; a dense inverse of so few nodes is good to this.
ROUNDING = 1e-12


def graph_with_degrees(graph: Csr) -> Graph:
    return Graph(graph.indptr, graph.indices, graph.weights, row_sums(graph, graph.weights))


def dense_walk(graph: Csr, damping: float = DAMPING) -> AnyFloats:
    """G = (1 − d)·(I − d·A·D⁻¹)⁻¹, a zero column in A·D⁻¹ for a node without edges."""
    adjacency = np.zeros((graph.nodes, graph.nodes))
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    adjacency[rows, graph.indices] = graph.weights
    sums = adjacency.sum(axis=0)
    step = np.divide(adjacency, sums, out=np.zeros_like(adjacency), where=sums > 0)
    inverse: AnyFloats = (1 - damping) * np.linalg.inv(np.eye(graph.nodes) - damping * step)
    return inverse


def source_of(graph: Csr, seed: int = 0) -> Source:
    return Source(graph_with_degrees(graph), random_seeds(1, graph.nodes, seed=seed)[0])


def only(node: int) -> Target:
    return Target(np.array([node], np.int32), np.ones(1))


GRAPHS = [
    *(small_graph(nodes, seed=nodes) for nodes in (1, 31, 32, 33, 200)),
    hub_graph(33, seed=1),
    pair_graph(9),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph.nodes))
@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85])
def test_every_seeds_mass_is_that_of_a_dense_solve_within_what_is_said_to_be_missing(
    graph: Csr, damping: float
) -> None:
    source = source_of(graph)
    truth = dense_walk(graph, damping) * source.seeds
    for node in range(graph.nodes):
        found = carried(source, only(node), damping=damping)
        masses = np.zeros(graph.nodes)
        masses[found.nodes] = found.masses
        short = truth[node] - masses
        assert short.min() >= -ROUNDING
        assert np.all(short <= found.missing * source.seeds + ROUNDING)


@pytest.mark.parametrize("tolerance", [0.1, 0.005, 1e-4])
def test_no_more_than_the_tolerance_is_missing(tolerance: float) -> None:
    source, truth = source_of(small_graph(200, seed=3)), dense_walk(small_graph(200, seed=3))
    for node in (1, 5, 77):
        found = carried(source, only(node), damping=DAMPING, tolerance=tolerance)
        whole = float(truth[node] @ source.seeds)
        assert whole - found.masses.sum() <= found.missing * source.seeds.sum() + ROUNDING
        assert found.missing * source.seeds.sum() <= tolerance * whole


def test_the_seeds_that_are_named_miss_no_more_though_the_others_may() -> None:
    graph = hub_graph(20_000, seed=3)
    seeds = np.full(graph.nodes, 0.05)
    seeds[7] = 1e-3
    source = Source(graph_with_degrees(graph), seeds)
    found = carried(source, only(5), damping=DAMPING, named=1e-3)
    everything = carried(source, only(5), damping=DAMPING)
    assert found.missing * 1e-3 <= 0.001 * found.masses.sum()
    assert found.edges < everything.edges
    assert everything.missing * seeds.sum() <= 0.001 * everything.masses.sum()


def test_a_passage_without_edges_keeps_its_own_seed_alone() -> None:
    graph = pair_graph(9)
    found = carried(source_of(graph), only(8), damping=DAMPING)
    assert found.nodes.tolist() in ([], [8])
    seeds = np.ones(9)
    alone = carried(Source(graph_with_degrees(graph), seeds), only(8), damping=DAMPING)
    assert (alone.nodes.tolist(), alone.masses.tolist(), alone.missing) == ([8], [0.5], 0.0)


def test_a_target_of_several_nodes_is_the_weighted_sum_of_them() -> None:
    graph = small_graph(33, seed=5)
    source, nodes = source_of(graph), np.array([2, 3, 11], np.int32)
    weights = np.array([1.0, 2.0, 0.5])
    found = carried(source, Target(nodes, weights), damping=DAMPING, tolerance=1e-9)
    truth = (weights @ dense_walk(graph)[nodes]) * source.seeds
    assert found.masses == pytest.approx(truth[found.nodes], abs=1e-8)


def test_the_desk_is_left_as_it_was_found() -> None:
    graph = small_graph(33, seed=6)
    source = source_of(graph)
    desk = left_for(source.graph, graph.nodes)
    first = carried(source, only(1), damping=DAMPING, desk=desk)
    assert not desk.left[:, 0].any()
    assert not desk.mass.any()
    assert not desk.seen.any()
    again = carried(source, only(1), damping=DAMPING, desk=desk)
    assert np.array_equal(first.masses, again.masses)


def test_seeds_that_weigh_nothing_carry_nothing() -> None:
    graph = small_graph(33, seed=7)
    found = carried(Source(graph_with_degrees(graph), np.zeros(33)), only(1), damping=DAMPING)
    assert len(found.nodes) == 0


def test_factors_of_a_question_on_the_edges_are_walked() -> None:
    graph = small_graph(33, seed=8)
    rows = np.repeat(np.arange(33), np.diff(graph.indptr))
    factors = np.exp(np.cos(rows) + np.cos(graph.indices)).astype(np.float32)
    weighed = Csr(graph.indptr, graph.indices, graph.weights * factors).check()
    source = source_of(weighed)
    found = carried(source, only(4), damping=DAMPING, tolerance=1e-9)
    assert found.masses == pytest.approx((dense_walk(weighed)[4] * source.seeds)[found.nodes], abs=1e-8)
