"""The push, compiled for the host, and the certificate on top of it, against the float64 reference."""

from __future__ import annotations

import numpy as np
import pytest
from host import HostKernels, host_graph

from hippogpu.backends import Certified, PassagePart, SparseSeeds
from hippogpu.backends._kernels import Kernels
from hippogpu.backends.cuda_rank import Candidates, Device, choose, rank_in_blocks, unit_of
from hippogpu.backends.reference import ReferenceBackend
from hippogpu.testing.graphs import hub_graph, small_graph
from hippogpu.types import AnyFloats, Csr

GRAPHS = {
    "1000 nodes": small_graph(1000, seed=1, edges_a_node=8.0),
    "a hub with half the edges": hub_graph(2000),
    "33 nodes": small_graph(33, seed=2),
    "no edges": small_graph(31, isolated=1.0),
}
# What float64 sums of the reference itself are off by.
ROUNDING = 1e-13


def question(graph: Csr, *, queries: int = 7, seed: int = 0) -> tuple[PassagePart, SparseSeeds]:
    """A third of the nodes are passages with diffused vectors; each query has up to five seeds."""
    random, passages, backend = np.random.default_rng(seed), graph.nodes // 3, ReferenceBackend()
    columns = np.zeros((graph.nodes, 25))
    vectors = random.standard_normal((passages, 24))
    columns[:passages] = np.column_stack([vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.ones(passages)])
    diffused = backend.diffuse(backend.put_graph(graph), columns, damping=0.5, steps=40)[:passages].astype(np.float32)
    texts = random.standard_normal((queries, 24)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    slope, offset = random.uniform(0.03, 0.1, queries), random.uniform(0, 0.05, queries)
    part = PassagePart(np.ascontiguousarray(diffused[:, :-1]), diffused[:, -1].copy(), texts, slope, offset)
    counts = random.integers(0, 6, queries)
    nodes = np.concatenate([np.empty(0), *(random.choice(graph.nodes, c, replace=False) for c in counts)])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return part, SparseSeeds(indptr, nodes.astype(np.int32), random.random(len(nodes)))


def ranked(
    graph: Csr,
    part: PassagePart,
    seeds: SparseSeeds,
    k: int,
    epsilon: float,
    least: float,
    budget_bytes: int = 2**24,
    kernels: Kernels | None = None,
) -> Certified:
    device = Device(np, kernels or HostKernels(), np.asarray)
    return rank_in_blocks(
        device, host_graph(graph), part, seeds, k,
        damping=0.5, epsilon=epsilon, least_epsilon=least, budget_bytes=budget_bytes,
    )  # fmt: skip


def exact_scores(graph: Csr, part: PassagePart, seeds: SparseSeeds) -> AnyFloats:
    backend, start = ReferenceBackend(), np.zeros((graph.nodes, len(part.queries)))
    start[seeds.nodes, np.repeat(np.arange(len(part.queries)), np.diff(seeds.indptr))] = seeds.weights
    mass = backend.diffuse(backend.put_graph(graph), start, damping=0.5, steps=60)[: len(part.ones)].T
    products = part.queries.astype(np.float64) @ part.diffused.astype(np.float64).T
    return mass + part.slope[:, None] * products + part.offset[:, None] * part.ones


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_exact_score_lies_within_the_bounds(name: str, epsilon: float) -> None:
    part, seeds = question(GRAPHS[name])
    found = ranked(GRAPHS[name], part, seeds, 5, epsilon, epsilon)
    exact = np.take_along_axis(exact_scores(GRAPHS[name], part, seeds), found.ids, axis=1)
    assert (found.scores - exact).max() <= ROUNDING
    assert (exact - found.scores - found.bounds).max() <= ROUNDING


@pytest.mark.parametrize("name", GRAPHS)
def test_a_certified_ranking_is_the_exact_one(name: str) -> None:
    part, seeds = question(GRAPHS[name], seed=1)
    found = ranked(GRAPHS[name], part, seeds, 5, 1e-3, 1e-9)
    exact = exact_scores(GRAPHS[name], part, seeds)
    assert found.certified.any()
    for row in np.flatnonzero(found.certified):
        best = np.sort(exact[row])[::-1][: found.ids.shape[1]]
        assert np.abs(np.sort(exact[row][found.ids[row]])[::-1] - best).max() <= ROUNDING


@pytest.mark.parametrize("name", GRAPHS)
def test_rounds_are_those_of_the_reference(name: str) -> None:
    part, seeds = question(GRAPHS[name], seed=2)
    backend = ReferenceBackend()
    wanted = backend.rank_diffused(
        backend.put_graph(GRAPHS[name]), part, seeds, 5, damping=0.5, epsilon=1e-5, least_epsilon=1e-5
    )
    found = ranked(GRAPHS[name], part, seeds, 5, 1e-5, 1e-5)
    assert np.array_equal(found.edges, wanted.edges)
    assert np.all(found.epsilon <= wanted.epsilon)


def test_a_budget_of_a_question_at_a_time_changes_nothing() -> None:
    graph = GRAPHS["1000 nodes"]
    part, seeds = question(graph, seed=3)
    whole, alone = (ranked(graph, part, seeds, 5, 1e-4, 1e-8, budget) for budget in (2**24, 1))
    assert all(np.array_equal(a, b) for a, b in zip(whole, alone, strict=True))


def test_pushing_on_reaches_what_one_push_reaches() -> None:
    graph = GRAPHS["1000 nodes"]
    part, seeds = question(graph, seed=4)
    at_once = ranked(graph, part, seeds, 3, 1e-9, 1e-9)
    in_steps = ranked(graph, part, seeds, 3, 1e-2, 1e-9)
    sure = in_steps.certified & at_once.certified
    assert sure.any()
    assert np.array_equal(np.sort(in_steps.ids[sure], axis=1), np.sort(at_once.ids[sure], axis=1))


def test_an_error_of_the_diffused_vectors_widens_the_bounds() -> None:
    graph = GRAPHS["1000 nodes"]
    part, seeds = question(graph, seed=5)
    tight = ranked(graph, part, seeds, 5, 1e-4, 1e-4)
    loose = ranked(graph, part._replace(error=1e-3), seeds, 5, 1e-4, 1e-4)
    assert (loose.bounds > tight.bounds).all()


def test_a_passage_outside_the_candidates_can_still_withhold_the_certificate() -> None:
    """The hub scores least, so it is no candidate, but its degree is so great that it may yet reach the best."""
    graph = hub_graph(2000)
    ones = np.zeros(666, np.float32)
    ones[:2] = -5.0, 1.0
    part = PassagePart(np.zeros((666, 8), np.float32), ones, np.ones((1, 8), np.float32), np.zeros(1), np.ones(1))
    seeds = SparseSeeds(np.array([0, 1]), np.array([1500], np.int32), np.ones(1))
    coarse, fine = (ranked(graph, part, seeds, 1, epsilon, epsilon) for epsilon in (1e-2, 1e-7))
    assert (coarse.ids.tolist(), coarse.certified.tolist()) == ([[1]], [False])
    assert (fine.ids.tolist(), fine.certified.tolist()) == ([[1]], [True])


def certain(scores: list[float], *, short: float = 0.0, doubt: float = 0.0, outside: float = -np.inf) -> bool:
    """Whether the two best of these candidates are certain."""
    row = np.array([scores])
    candidates = Candidates(np.arange(len(scores))[None], row, np.full_like(row, short), np.full_like(row, doubt))
    return choose(candidates, 0, 2, outside, 0.0, 0).certified


def test_a_ranking_is_certain_only_when_no_other_passage_can_reach_it() -> None:
    assert certain([3.0, 2.0, 1.0], short=1.0)
    assert not certain([3.0, 2.0, 1.0], short=1.1)
    assert not certain([3.0, 2.0, 1.0], short=0.9, outside=2.1)
    assert certain([3.0, 2.0], short=9.0)
    assert not certain([3.0, 2.0], outside=2.1)


def test_doubt_counts_on_both_sides() -> None:
    assert certain([3.0, 2.0, 1.0], doubt=0.5)
    assert not certain([3.0, 2.0, 1.0], doubt=0.51)
    assert not certain([3.0, 2.0], doubt=0.2, outside=1.9)


def test_seeds_fit_in_their_units() -> None:
    totals = np.array([0.0, 1e-12, 0.75, 1.0, 5.0, 1e9])
    units = totals / unit_of(totals)
    assert units[0] == 0
    assert ((units[1:] >= 2.0**60) & (units[1:] <= 2.0**61)).all()
