"""Laws of Personalised PageRank and of the graph, on random graphs and records."""

from __future__ import annotations

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippogpu.backends import load_backend, power_steps
from hippogpu.config import PROFILES, BackendName, EdgeRule, IndexConfig
from hippogpu.graph import assemble
from hippogpu.tables import tabulate
from hippogpu.testing.graphs import random_seeds, small_graph
from hippogpu.types import AnyFloats, Csr, Edges, Record, Tables, Triple

# Against PRPACK and between orders of summation: float64 solved to 1e-12, float32 to its rounding.
TOLERANCE = {"reference": 1e-9, "cpu": 1e-6}
STEPS = {"reference": power_steps(0.85, 1e-12), "cpu": power_steps(0.85, 1e-7)}
BACKENDS: tuple[BackendName, ...] = ("reference", "cpu")

sizes = st.integers(1, 60)
numbers = st.integers(0, 10_000)
dampings = st.sampled_from([0.0, 0.3, 0.5, 0.85])
laws = settings(max_examples=40, deadline=None)
each_backend = pytest.mark.parametrize("name", BACKENDS)


def solve(name: BackendName, graph: Csr, seeds: AnyFloats, damping: float = 0.5) -> AnyFloats:
    backend = load_backend(name)
    mass = backend.solve(backend.put_graph(graph), backend.put(seeds), damping=damping, steps=STEPS[name])
    return np.asarray(backend.get(mass), np.float64)


def prpack(graph: Csr, seeds: AnyFloats, damping: float) -> AnyFloats:
    """igraph's answer, a row of seeds at a time."""
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    upper = rows < graph.indices
    edges = np.stack([rows[upper], graph.indices[upper]], axis=1).tolist()
    peer = igraph.Graph(n=graph.nodes, edges=edges, directed=False)
    weights = graph.weights[upper].astype(np.float64).tolist()
    answer = [
        peer.personalized_pagerank(
            reset=row.tolist(), weights=weights, damping=damping, directed=False, implementation="prpack"
        )
        for row in seeds
    ]
    return np.array(answer)


def permuted(graph: Csr, order: np.ndarray) -> Csr:
    """The same graph with node order[i] in place i."""
    dense = np.zeros((graph.nodes, graph.nodes), np.float32)
    dense[np.repeat(np.arange(graph.nodes), np.diff(graph.indptr)), graph.indices] = graph.weights
    moved = dense[np.ix_(order, order)]
    rows, columns = np.nonzero(moved)
    indptr = np.searchsorted(rows, np.arange(graph.nodes + 1)).astype(np.int64)
    return Csr(indptr, columns.astype(np.int32), moved[rows, columns])


@each_backend
@laws
@given(nodes=sizes, number=numbers, damping=dampings)
def test_mass_sums_to_one(name: BackendName, nodes: int, number: int, damping: float) -> None:
    mass = solve(name, small_graph(nodes, seed=number), random_seeds(3, nodes, seed=number), damping)
    assert np.abs(mass.sum(axis=1) - 1).max() <= TOLERANCE[name]


@each_backend
@laws
@given(nodes=sizes, number=numbers, share=st.floats(0, 1))
def test_mass_is_linear_in_the_seeds_without_isolated_nodes(
    name: BackendName, nodes: int, number: int, share: float
) -> None:
    graph, seeds = small_graph(nodes, seed=number), random_seeds(2, nodes, seed=number)
    # Mass on isolated nodes restarts at the seeds, so a row's own seeds scale it: linear only without such mass.
    joined = np.diff(graph.indptr) > 0
    if not joined.any():
        return
    seeds = (seeds + 1e-3) * joined
    seeds /= seeds.sum(axis=1, keepdims=True)
    mixed = np.array([share, 1 - share]) @ seeds
    apart = solve(name, graph, mixed[None])[0] - np.array([share, 1 - share]) @ solve(name, graph, seeds)
    assert np.abs(apart).max() <= TOLERANCE[name]


@each_backend
@laws
@given(nodes=sizes, number=numbers)
def test_mass_moves_with_the_nodes(name: BackendName, nodes: int, number: int) -> None:
    graph, seeds = small_graph(nodes, seed=number), random_seeds(2, nodes, seed=number)
    order = np.random.default_rng(number).permutation(nodes)
    apart = solve(name, permuted(graph, order), seeds[:, order]) - solve(name, graph, seeds)[:, order]
    assert np.abs(apart).max() <= TOLERANCE[name]


@each_backend
@laws
@given(nodes=sizes, number=numbers, batch=st.integers(1, 9))
def test_a_batch_is_its_rows(name: BackendName, nodes: int, number: int, batch: int) -> None:
    graph, seeds = small_graph(nodes, seed=number), random_seeds(batch, nodes, seed=number)
    alone = np.concatenate([solve(name, graph, row[None]) for row in seeds])
    assert np.abs(solve(name, graph, seeds) - alone).max() <= TOLERANCE[name]


@each_backend
@laws
@given(nodes=sizes, number=numbers, damping=dampings, isolated=st.sampled_from([0.0, 0.1, 0.6]))
def test_mass_is_that_of_prpack(name: BackendName, nodes: int, number: int, damping: float, isolated: float) -> None:
    graph, seeds = small_graph(nodes, seed=number, isolated=isolated), random_seeds(2, nodes, seed=number)
    apart = solve(name, graph, seeds, damping) - prpack(graph, seeds, damping)
    assert np.abs(apart).max() <= TOLERANCE[name]


words = st.sampled_from(["ada", "bob", "Bob!", "c d", "c  d", "$", "Émile", "eel", "fig"])
triples = st.builds(Triple, words, st.sampled_from(["is", "knows"]), words)
records = st.lists(st.none() | st.builds(Record, st.just("p"), st.lists(triples, max_size=6).map(tuple)), max_size=6)
profiles = st.sampled_from([PROFILES["default"], PROFILES["oracle"]])
rules = st.sampled_from(["max", "parallel"])


def random_synonyms(tables: Tables, number: int) -> Edges:
    """Distinct ordered pairs of different phrases with cosines in [0.8, 1)."""
    random, phrases = np.random.default_rng(number), len(tables.phrases)
    source, target = np.nonzero((random.random((phrases, phrases)) < 0.2) & ~np.eye(phrases, dtype=bool))
    weight = (0.8 + 0.19 * random.random(len(source))).astype(np.float32)
    return Edges(source.astype(np.int32), target.astype(np.int32), weight)


@laws
@given(rows=records, config=profiles, rule=rules, number=numbers)
def test_the_graph_is_symmetric_sorted_and_without_self_loops(
    rows: list[Record | None], config: IndexConfig, rule: EdgeRule, number: int
) -> None:
    tables = tabulate(rows, config).tables.check()
    graph = assemble(tables, random_synonyms(tables, number), rule).check()
    assert graph.nodes == len(rows) + len(tables.phrases)


@laws
@given(rows=records, config=profiles, number=numbers)
def test_both_edge_rules_join_the_same_pairs(rows: list[Record | None], config: IndexConfig, number: int) -> None:
    tables = tabulate(rows, config).tables
    synonyms = random_synonyms(tables, number)
    largest, parallel = assemble(tables, synonyms, "max"), assemble(tables, synonyms, "parallel")
    assert np.array_equal(largest.indptr, parallel.indptr)
    assert np.array_equal(largest.indices, parallel.indices)
