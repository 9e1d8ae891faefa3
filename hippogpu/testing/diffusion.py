"""What every Backend must do with diffusion and certified rankings, held to the float64 reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.backends import Backend, Certified, PassagePart, SparseSeeds, load_backend, steps_for
from hippogpu.config import LinearSolver
from hippogpu.testing.graphs import random_seeds
from hippogpu.types import AnyFloats, Csr

SOLVERS: tuple[LinearSolver, ...] = ("power", "chebyshev")
SOLVER_TOLERANCE = 1e-8
# A column after some dozen float32 steps is off by a few units in the last place of its largest entry.
COLUMN_TOLERANCE = 1e-6
# A float32 score is off by some roundings; in float64 it is never over what it should be.
OVER_TOLERANCE = 1e-6
WIDTH = 24
DAMPINGS = (0.0, 0.5, 0.85)
K = 5


class Case(NamedTuple):
    """A certified ranking to ask for, and every passage's exact score (B, P)."""

    graph: Csr
    diffused: AnyFloats
    ones: AnyFloats
    queries: AnyFloats
    slope: AnyFloats
    offset: AnyFloats
    seeds: SparseSeeds
    damping: float
    exact: AnyFloats


def check_solvers(backend: Backend, graph: Csr, *, batch: int) -> None:
    """Both solvers come to the same masses as the reference, for some dampings."""
    reference, seeds = load_backend("reference"), random_seeds(batch, graph.nodes, seed=batch)
    exact, own = reference.put_graph(graph), backend.put_graph(graph)
    for damping in DAMPINGS:
        steps = steps_for("power", damping, 1e-12)
        wanted = reference.solve(exact, seeds, damping=damping, steps=steps)
        for solver in SOLVERS:
            steps = steps_for(solver, damping, SOLVER_TOLERANCE)
            mass = backend.get(backend.solve(own, backend.put(seeds), damping=damping, steps=steps, solver=solver))
            _assert_near(mass, wanted, COLUMN_TOLERANCE, f"a mass, {solver}, damping {damping}, {graph.nodes} nodes")


def check_diffuse(backend: Backend, graph: Csr, *, columns: int) -> None:
    """G·columns is the reference's for columns of either sign, by both solvers, and its residual says so."""
    reference = load_backend("reference")
    exact, own = reference.put_graph(graph), backend.put_graph(graph)
    right = np.random.default_rng(columns).uniform(-1, 1, (graph.nodes, columns))
    for damping in DAMPINGS:
        wanted = reference.diffuse(
            exact, right, damping=damping, steps=steps_for("power", damping, 1e-12), solver="power"
        )
        # Terms of both signs cancel, so a sum's rounding is measured by that of their sizes.
        sizes = reference.diffuse(exact, np.abs(right), damping=damping, steps=50, solver="power")
        scale = max(1.0, float(sizes.max()))
        for solver in SOLVERS:
            steps = steps_for(solver, damping, SOLVER_TOLERANCE)
            found = backend.diffuse(own, backend.put(right), damping=damping, steps=steps, solver=solver)
            where = f"{solver}, damping {damping}, {graph.nodes} nodes, {columns} columns"
            _assert_near(backend.get(found), wanted, COLUMN_TOLERANCE * scale, f"a diffused entry, {where}")
            left = backend.residual(own, backend.put(right), found, damping=damping)
            share = left.l1 / np.abs(right).sum(axis=0)
            assert share.max() <= COLUMN_TOLERANCE, f"the residual is {share.max():.3g} of the column: {where}"


def check_residual(backend: Backend, graph: Csr) -> None:
    """The residual of something that solves nothing is the reference's, in both norms."""
    random = np.random.default_rng(4)
    right, wrong = random.uniform(-1, 1, (2, graph.nodes, 3)).astype(np.float32)
    reference = load_backend("reference")
    wanted = reference.residual(reference.put_graph(graph), right, wrong, damping=0.5)
    found = backend.residual(backend.put_graph(graph), backend.put(right), backend.put(wrong), damping=0.5)
    for name in ("l1", "over_degree"):
        ours, theirs = np.asarray(getattr(found, name)), getattr(wanted, name)
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-6), f"{name} is {ours}, not {theirs}"


def check_push(backend: Backend, graph: Csr, *, passages: int, batch: int) -> None:
    """What sparse seeds bring each passage is the reference's within epsilon, of one query and of several."""
    reference, random = load_backend("reference"), np.random.default_rng(batch)
    exact, own = reference.put_graph(graph), backend.put_graph(graph)
    counts = [min(count, graph.nodes) for count in (3, 0, *[5] * (batch - 2))]
    nodes = [random.choice(graph.nodes, count, replace=False) for count in counts]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    seeds = SparseSeeds(indptr, np.concatenate(nodes).astype(np.int32), random.uniform(0.1, 9.0, int(indptr[-1])))
    sums = np.array([seeds.weights[indptr[row] : indptr[row + 1]].sum() for row in range(batch)])
    degrees = np.maximum(exact.degrees[:passages], 1.0)
    for damping in DAMPINGS:
        wanted = reference.push(exact, seeds, passages=passages, damping=damping, epsilon=1e-9)
        for epsilon in (1e-3, 1e-6):
            found = backend.push(own, seeds, passages=passages, damping=damping, epsilon=epsilon)
            where = f"damping {damping}, epsilon {epsilon:g}, {graph.nodes} nodes"
            assert found.shape == (batch, passages), f"the shape is {found.shape}: {where}"
            room = epsilon * degrees * sums[:, None] + OVER_TOLERANCE * sums[:, None]
            assert np.all(np.abs(found - wanted) <= room), f"a mass is off by more than its bound: {where}"


def check_rank_diffused(backend: Backend, graph: Csr, *, passages: int, batch: int) -> None:
    """Scores keep their bounds, a certified set is the exact one, and tightening certifies almost everything."""
    for damping in (0.5, 0.85):
        case = diffused_case(graph, passages=passages, batch=batch, damping=damping)
        for k in (1, K, passages + 3):
            for epsilon, least in ((1e-3, 1e-3), (1e-4, 1e-9)):
                found = ranked(backend, case, k, epsilon=epsilon, least_epsilon=least)
                assert_sound(found, case, min(k, passages), f"k {k}, epsilon {epsilon:g} to {least:g}")
        fine = ranked(backend, case, K, epsilon=1e-5, least_epsilon=1e-9)
        assert fine.certified.mean() >= 0.9, f"only {fine.certified.mean():.0%} of {batch} queries are certified"


def assert_sound(found: Certified, case: Case, k: int, where: str) -> None:
    """Nothing, or AssertionError naming the promise of Certified that is broken."""
    batch = len(case.queries)
    assert found.ids.shape == found.scores.shape == found.bounds.shape == (batch, k), (
        f"shape {found.ids.shape}: {where}"
    )
    assert all(len(set(row.tolist())) == k for row in found.ids), f"a passage comes twice: {where}"
    assert np.all(np.diff(found.scores, axis=1) <= 0), f"scores do not descend: {where}"
    exact = np.take_along_axis(case.exact, found.ids.astype(np.int64), axis=1)
    scale = np.abs(case.exact).max(initial=1e-30)
    assert np.all(found.scores - exact <= OVER_TOLERANCE * scale), f"a score is over the exact one: {where}"
    assert np.all(exact - found.scores <= found.bounds + OVER_TOLERANCE * scale), f"a bound is broken: {where}"
    best = -np.sort(-case.exact, axis=1)[:, :k]
    worst_kept = exact.min(axis=1, initial=np.inf)
    missed = best[:, -1] - worst_kept if k else np.zeros(batch)
    assert np.all(missed[found.certified] <= OVER_TOLERANCE * scale), f"a certified set is not the exact one: {where}"


def check_stored_error(backend: Backend, graph: Csr, *, passages: int) -> None:
    """Diffused vectors that are off by as much as their stated error make no list certified that is not exact.

    Vectors are moved by up to the error · degree of each passage, in favour of others than the exact ones.
    """
    case, error = diffused_case(graph, passages=passages, batch=7, damping=0.5), 1e-3
    degrees = load_backend("reference").put_graph(graph).degrees[:passages]
    random = np.random.default_rng(2)
    moved = random.standard_normal(case.diffused.shape)
    moved *= (error * degrees / np.linalg.norm(moved, axis=1))[:, None]
    found = ranked(
        backend, case._replace(diffused=case.diffused + moved), K, epsilon=1e-5, least_epsilon=1e-9, error=error
    )
    exact = np.take_along_axis(case.exact, found.ids.astype(np.int64), axis=1)
    missed = -np.sort(-case.exact, axis=1)[:, K - 1] - exact.min(axis=1)
    scale = np.abs(case.exact).max()
    assert np.all(missed[found.certified] <= OVER_TOLERANCE * scale), "a certificate ignores the stored error"
    assert not found.certified.all(), "the error is too small to show"


def check_no_seeds(backend: Backend, graph: Csr, *, passages: int) -> None:
    """Without phrase seeds nothing is pushed: the passage part alone ranks, certified, with no edge touched."""
    case = diffused_case(graph, passages=passages, batch=2, damping=0.5, seeds_a_query=0)
    found = ranked(backend, case, K, epsilon=1e-4, least_epsilon=1e-8)
    assert found.edges.tolist() == [0, 0], f"{found.edges} edges were touched"
    assert found.certified.all(), "a ranking without seeds is not certified"
    assert_sound(found, case, min(K, passages), "no seeds")


def ranked(
    backend: Backend, case: Case, k: int, *, epsilon: float, least_epsilon: float, error: float = 1e-9
) -> Certified:
    """The backend's answer to a case."""
    part = PassagePart(
        backend.put(case.diffused), backend.put(case.ones), case.queries, case.slope, case.offset, error=error
    )
    own = backend.put_graph(case.graph)
    return backend.rank_diffused(
        own, part, case.seeds, k, damping=case.damping, epsilon=epsilon, least_epsilon=least_epsilon
    )


def diffused_case(
    graph: Csr, *, passages: int, batch: int, damping: float, seeds_a_query: int = 3, seed: int = 0
) -> Case:
    """Random unit vectors on the first nodes, some of which stand alone, and a few seeds anywhere."""
    random, n = np.random.default_rng(seed), graph.nodes
    vectors = random.standard_normal((passages, WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    right = np.zeros((n, WIDTH + 1))
    right[:passages, :WIDTH], right[:passages, WIDTH] = vectors, 1.0
    reference = load_backend("reference")
    exact_graph, steps = reference.put_graph(graph), steps_for("power", damping, 1e-13)
    diffused = reference.diffuse(exact_graph, right, damping=damping, steps=steps, solver="power")[:passages]
    queries = vectors[random.integers(passages, size=batch)] + 0.1 * random.standard_normal((batch, WIDTH))
    queries = (queries / np.linalg.norm(queries, axis=1, keepdims=True)).astype(np.float32)
    slope, offset = random.uniform(0.02, 0.06, batch), random.uniform(0.0, 0.05, batch)
    seeds = _sparse(random, n, batch, min(seeds_a_query, n))
    s = np.zeros((batch, n))
    s[:, :passages] = slope[:, None] * (queries @ vectors.T) + offset[:, None]
    for row in range(batch):
        here = slice(seeds.indptr[row], seeds.indptr[row + 1])
        s[row, seeds.nodes[here]] += seeds.weights[here]
    exact = reference.diffuse(exact_graph, s.T, damping=damping, steps=steps, solver="power").T[:, :passages]
    return Case(graph, diffused[:, :WIDTH], diffused[:, WIDTH], queries, slope, offset, seeds, damping, exact)


def _sparse(random: np.random.Generator, nodes: int, batch: int, each: int) -> SparseSeeds:
    chosen = [np.sort(random.permutation(nodes)[:each]) for _ in range(batch)]
    weights = random.uniform(0.0, 0.5, batch * each)
    return SparseSeeds(np.arange(batch + 1, dtype=np.int64) * each, np.concatenate(chosen).astype(np.int32), weights)


def _assert_near(found: AnyFloats, wanted: AnyFloats, tolerance: float, what: str) -> None:
    assert found.shape == wanted.shape, f"{what}: the shape is {found.shape}, not {wanted.shape}"
    worst = float(np.abs(np.asarray(found, np.float64) - wanted).max(initial=0.0))
    assert worst <= tolerance, f"{what}: off by {worst:.3g}, more than {tolerance:g}"
