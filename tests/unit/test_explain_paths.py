"""The strongest paths to a passage, against all paths of small graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from test_explain_carried import DAMPING, dense_walk, graph_with_degrees, only, source_of

from hippogpu.methods.explaining import Source, Target, strongest_paths
from hippogpu.methods.explaining.paths import reached
from hippogpu.testing.graphs import graph_of, hub_graph, small_graph
from hippogpu.types import Csr

GRAPHS = [*(small_graph(nodes, seed=nodes) for nodes in (7, 12, 31)), hub_graph(12, seed=2)]


def walks_from(source: Source, node: int, steps: int, *, simple: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every walk of so many steps at most, with seed · (1 − d) · Π d·weight ÷ degree; simple: no node twice."""
    graph = source.graph
    open_ = [((node,), (1 - DAMPING) * float(source.seeds[node]))]
    while open_:
        nodes, mass = open_.pop()
        yield nodes, mass
        if len(nodes) <= steps:
            for place in range(int(graph.indptr[nodes[-1]]), int(graph.indptr[nodes[-1] + 1])):
                other = int(graph.indices[place])
                if not (simple and other in nodes):
                    passed = DAMPING * float(graph.weights[place]) / float(graph.degrees[nodes[-1]])
                    open_.append(((*nodes, other), mass * passed))


def all_paths(source: Source, target: Target, steps: int) -> list[tuple[float, tuple[int, ...]]]:
    """Paths from every other node to the target, strongest first."""
    ends = dict(zip(target.nodes.tolist(), target.weights.tolist(), strict=True))
    found = [
        (mass * ends[nodes[-1]], nodes)
        for start in range(source.graph.nodes)
        for nodes, mass in walks_from(source, start, steps, simple=True)
        if nodes[-1] in ends and mass > 0
    ]
    return sorted(found, key=lambda one: (-one[0], one[1]))


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph.nodes))
@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_strongest_paths_are_those_of_a_search_through_all(graph: Csr, count: int) -> None:
    source = source_of(graph)
    for node in range(0, graph.nodes, 3):
        found = strongest_paths(source, only(node), damping=DAMPING, own=node, count=count, longest=4)
        truth = [one for one in all_paths(source, only(node), 4) if one[1] != (node,)][:count]
        assert [path.mass for path in found] == pytest.approx([mass for mass, _ in truth])
        masses = {nodes: mass for mass, nodes in all_paths(source, only(node), 4)}
        assert [path.mass for path in found] == pytest.approx([masses[path.nodes] for path in found])


def test_all_walks_together_carry_what_the_seed_carries() -> None:
    graph = small_graph(7, seed=7, edges_a_node=1.5)
    source = source_of(graph)
    truth = dense_walk(graph) * source.seeds
    for start in range(7):
        sums = np.zeros(7)
        for nodes, mass in walks_from(source, start, 12, simple=False):
            sums[nodes[-1]] += mass
        # Walks of more than 12 steps hold no more than d^13 of the seed.
        assert sums == pytest.approx(truth[:, start], abs=DAMPING**13)


def test_paths_to_a_target_of_several_nodes_end_at_any_of_them_with_its_weight() -> None:
    source = source_of(small_graph(12, seed=4))
    target = Target(np.array([1, 4, 7], np.int32), np.array([1.0, 3.0, 0.5]))
    found = strongest_paths(source, target, damping=DAMPING, own=-1, count=8, longest=4)
    truth = all_paths(source, target, 4)[:8]
    assert [path.mass for path in found] == pytest.approx([mass for mass, _ in truth])


def test_no_path_is_longer_than_allowed_or_visits_a_node_twice() -> None:
    source = source_of(small_graph(33, seed=9))
    for path in strongest_paths(source, only(2), damping=DAMPING, own=2, count=50, longest=3):
        assert len(path.nodes) <= 4
        assert len(set(path.nodes)) == len(path.nodes)


def test_ties_come_in_the_order_of_their_nodes_and_the_same_each_time() -> None:
    star = graph_of(np.zeros(6, np.int64), np.arange(1, 7), np.ones(6), nodes=7)
    source = Source(graph_with_degrees(star), np.ones(7))
    found = [strongest_paths(source, only(0), damping=DAMPING, own=0, count=3) for _ in range(2)]
    assert [path.nodes for path in found[0]] == [(1, 0), (2, 0), (3, 0)]
    assert found[0] == found[1]


def test_a_node_without_edges_has_no_path() -> None:
    graph = graph_of(np.array([0]), np.array([1]), np.ones(1), nodes=3)
    source = Source(graph_with_degrees(graph), np.ones(3))
    assert strongest_paths(source, only(2), damping=DAMPING, own=2) == []


def test_without_damping_nothing_has_walked() -> None:
    source = source_of(small_graph(12, seed=4))
    assert strongest_paths(source, only(1), damping=0.0, own=1) == []


def test_a_hub_beyond_the_budget_of_edges_is_not_opened_and_the_other_paths_are_found() -> None:
    count = 5000
    spokes = np.arange(3, count)
    source, target = np.concatenate([[0, 0], np.ones(len(spokes), np.int64)]), np.concatenate([[1, 2], spokes])
    graph = graph_of(source, target, np.ones(len(source)), nodes=count)
    walked = Source(graph_with_degrees(graph), np.ones(count))
    reach = reached(walked, only(0), damping=DAMPING, own=0, count=10, longest=6, edges=1000)
    assert reach.nodes.tolist() == [0, 1, 2]
    found = strongest_paths(walked, only(0), damping=DAMPING, own=0, edges=1000)
    assert [path.nodes for path in found] == [(2, 0), (1, 0)]


def test_what_a_hub_dilutes_is_not_opened() -> None:
    """Passage 0 has a phrase with four seeds beside it and a fifth that is linked to a hub of thousands."""
    count = 5000
    far = np.arange(8, count)
    source = np.concatenate([[0, 2, 2, 2, 2, 2, 3], np.ones(len(far), np.int64)])
    target = np.concatenate([[2, 3, 4, 5, 6, 7, 1], far])
    graph = graph_of(source, target, np.ones(len(source)), nodes=count)
    walked = Source(graph_with_degrees(graph), np.ones(count))
    reach = reached(walked, only(0), damping=DAMPING, own=0, count=3, longest=6, edges=10**6)
    assert reach.nodes.tolist() == [0, 2, 3, 4, 5, 6, 7]
