"""What every Backend must do, held to the float64 reference: functions to call on yours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from hippogpu.backends import Backend, SparseSeeds, load_backend
from hippogpu.config import VectorType
from hippogpu.errors import UsageError
from hippogpu.precision import float_rows, part, rounded
from hippogpu.testing.diffusion import (
    Case,
    check_diffuse,
    check_no_seeds,
    check_push,
    check_rank_diffused,
    check_residual,
    check_solvers,
    check_stored_error,
    diffused_case,
    ranked,
)
from hippogpu.testing.graphs import hub_graph, pair_graph, random_seeds, small_graph
from hippogpu.types import AnyFloats, Csr, Floats

BATCHES = (1, 2, 7, 33)
SIZES = (1, 31, 32, 33, 1000)
DAMPINGS = (0.0, 0.5, 0.85)
STEPS = 30
# A node's mass after some dozen float32 steps is off by a few units in the last place of the row's largest.
MASS_TOLERANCE = 1e-6
# A float32 inner product of two unit rows of some dozen columns.
SCORE_TOLERANCE = 1e-6
WIDTH = 24
# No multiple of a vector register, and more than one.
STORED: tuple[VectorType, ...] = ("float16", "int8")
STORED_WIDTH = 37

MakeBackend = Callable[[int], Backend]
"""A backend that keeps its blocks under so many bytes."""


def check_backend(make: MakeBackend) -> None:
    """Nothing, or AssertionError naming the first promise of Backend that is broken."""
    check_signatures(make(2**20))
    for nodes in SIZES:
        for batch in BATCHES:
            check_solve(make(2**20), small_graph(nodes, seed=nodes), batch=batch)
            check_topk(make(2**20), keys=nodes, batch=batch)
            for kind in STORED:
                check_stored_keys(make(2**20), kind, keys=nodes, batch=batch)
    for graph in graphs_to_solve():
        check_solve(make(2**20), graph, batch=7)
        check_solvers(make(2**20), graph, batch=3)
        check_diffuse(make(2**20), graph, columns=5)
        check_residual(make(2**20), graph)
        check_push(make(2**20), graph, passages=graph.nodes // 2, batch=3)
        check_rank_diffused(make(2**20), graph, passages=graph.nodes // 2, batch=3)
    check_no_seeds(make(2**20), small_graph(1000), passages=300)
    check_stored_error(make(2**20), small_graph(1000), passages=300)
    check_one_step(make(2**20))
    check_batch_is_its_rows(make(2**20))
    check_select_ties(make(2**20))
    check_topk_ties_across_blocks(make)
    for kind in STORED:
        check_stored_keys_across_blocks(make, kind)
    check_equal_scores(make(2**20))
    check_refusals(make(2**20))


def graphs_to_solve() -> tuple[Csr, ...]:
    """A hub with half of all edges, components that stand apart, no edge at all, and something in between."""
    return hub_graph(1000), pair_graph(33), small_graph(33, isolated=1.0), small_graph(301, seed=2)


def check_signatures(backend: Backend) -> None:
    """Every public method of Backend is there with the parameters that Backend gives it, and nothing else is public."""
    asked, given = _signatures(Backend), _signatures(type(backend))
    assert given.keys() == asked.keys(), f"public methods are {sorted(given)}, not {sorted(asked)}"
    for name, parameters in asked.items():
        assert given[name] == parameters, f"{name}{given[name]} should be {name}{parameters}"
    assert isinstance(backend.name, str), "the name is no text"
    assert backend.name, "the name is empty"


def check_solve(backend: Backend, graph: Csr, *, batch: int) -> None:
    """Mass is the reference's within 1e-6 for some dampings, ≥ 0, and each row sums to 1."""
    seeds = random_seeds(batch, graph.nodes, seed=batch)
    for damping in DAMPINGS:
        wanted = solved(load_backend("reference"), graph, seeds, damping=damping)
        found = solved(backend, graph, seeds, damping=damping)
        where = f"{graph.nodes} nodes, batch of {batch}, damping {damping}"
        assert found.shape == seeds.shape, f"the shape is {found.shape}, not {seeds.shape}: {where}"
        assert found.min() >= 0, f"a mass is {found.min()}: {where}"
        _assert_close(found.sum(axis=1), np.ones(batch), MASS_TOLERANCE, f"a row's sum, {where}")
        _assert_close(found, wanted, MASS_TOLERANCE, f"a mass, {where}")


def check_one_step(backend: Backend) -> None:
    """A single step is the reference's: the error of more steps cannot hide it."""
    graph, seeds = small_graph(33, seed=5), random_seeds(7, 33, seed=5)
    wanted = solved(load_backend("reference"), graph, seeds, steps=1)
    _assert_close(solved(backend, graph, seeds, steps=1), wanted, MASS_TOLERANCE, "a mass after one step")


def check_batch_is_its_rows(backend: Backend) -> None:
    """A batch gives the rows that each of its rows gives alone."""
    graph, seeds = small_graph(33, seed=6), random_seeds(7, 33, seed=6)
    alone = np.concatenate([solved(backend, graph, row[None]) for row in seeds])
    _assert_close(solved(backend, graph, seeds), alone, MASS_TOLERANCE, "a mass in a batch and alone")


def check_topk(backend: Backend, *, keys: int, batch: int) -> None:
    """Ids in descending score, the scores and the extremes are the reference's; k beyond the keys gives them all."""
    rows, questions = _unit_rows(keys, seed=keys), _unit_rows(batch, seed=batch + 7)
    scores = questions.astype(np.float64) @ rows.astype(np.float64).T
    for k in (1, 5, keys, keys + 3):
        best = backend.topk(backend.put(questions), backend.put(rows), k)
        ids, found = np.asarray(backend.get(best.ids), np.int64), backend.get(best.scores)
        where = f"{keys} keys, batch of {batch}, k {k}"
        assert ids.shape == found.shape == (batch, min(k, keys)), f"the shape is {ids.shape}: {where}"
        assert all(len(set(row.tolist())) == len(row) for row in ids), f"a key comes twice: {where}"
        assert np.all(np.diff(found, axis=1) <= 0), f"scores do not descend: {where}"
        ideal = -np.sort(-scores, axis=1)[:, : ids.shape[1]]
        _assert_close(found, ideal, SCORE_TOLERANCE, f"a best score, {where}")
        _assert_close(np.take_along_axis(scores, ids, axis=1), found, SCORE_TOLERANCE, f"an id's score, {where}")
        _assert_close(backend.get(best.low), scores.min(axis=1), SCORE_TOLERANCE, f"the least score, {where}")
        _assert_close(backend.get(best.high), scores.max(axis=1), SCORE_TOLERANCE, f"the greatest score, {where}")


def check_stored_keys(backend: Backend, kind: VectorType, *, keys: int, batch: int, width: int = STORED_WIDTH) -> None:
    """Keys in fewer bytes give the scores, best keys and extremes of the rows that they stand for."""
    rows = rounded(_unit_rows(keys, seed=keys, width=width), kind)
    questions = _unit_rows(batch, seed=batch + 7, width=width)
    scores = questions.astype(np.float64) @ float_rows(rows, slice(None)).astype(np.float64).T
    put, where = backend.put(rows), f"{kind}, {keys} keys, batch of {batch}"
    _assert_close(backend.get(backend.scores(questions, put)), scores, SCORE_TOLERANCE, f"a score, {where}")
    for k in (1, 5, keys + 3):
        best = backend.topk(backend.put(questions), put, k)
        ids, found = np.asarray(backend.get(best.ids), np.int64), backend.get(best.scores)
        ideal = -np.sort(-scores, axis=1)[:, :k]
        assert ids.shape == ideal.shape, f"the shape is {ids.shape}: {where}, k {k}"
        _assert_close(found, ideal, SCORE_TOLERANCE, f"a best score, {where}, k {k}")
        _assert_close(np.take_along_axis(scores, ids, axis=1), found, SCORE_TOLERANCE, f"an id's score, {where}, k {k}")
        _assert_close(backend.get(best.low), scores.min(axis=1), SCORE_TOLERANCE, f"the least score, {where}, k {k}")
        _assert_close(backend.get(best.high), scores.max(axis=1), SCORE_TOLERANCE, f"the greatest, {where}, k {k}")


def check_stored_keys_across_blocks(make: MakeBackend, kind: VectorType) -> None:
    """Equal keys in fewer bytes come in ascending order whatever the budget, and k may be beyond any heap."""
    rows = rounded(np.repeat(_unit_rows(1, seed=3), 3001, axis=0), kind)
    question = _unit_rows(2, seed=4)
    for budget_bytes, k in ((1, 4), (2**12, 33), (2**20, 2500)):
        backend = make(budget_bytes)
        best = backend.topk(backend.put(question), backend.put(part(rows, slice(0, 50 if k < 50 else None))), k)
        assert np.array_equal(backend.get(best.low), backend.get(best.high)), f"equal {kind} keys have other scores"
        assert backend.get(best.ids).tolist() == [list(range(k))] * 2, f"equal {kind} keys came in another order"


def check_select_ties(backend: Backend) -> None:
    """Among equal scores the lower number comes first, at the cut and above it; k beyond the columns gives them all."""
    scores = backend.put(np.array([[1.0, 3.0, 2.0, 3.0, 2.0, 2.0], [0.0] * 6]))
    for k, first in ((1, [1]), (3, [1, 3, 2]), (4, [1, 3, 2, 4]), (6, [1, 3, 2, 4, 5, 0]), (9, [1, 3, 2, 4, 5, 0])):
        found = backend.get(backend.select(scores, k)).tolist()
        wanted = [first, list(range(min(k, 6)))]
        assert found == wanted, f"select of {k} gave {found}, not {wanted}"


def check_topk_ties_across_blocks(make: MakeBackend) -> None:
    """Whatever the budget, equal keys in different blocks come in ascending order."""
    keys = np.zeros((50, WIDTH), np.float32)
    keys[:, 0] = np.tile([0.5, 1.0, 0.5, 0.25, 1.0], 10)
    question = np.eye(2, WIDTH, dtype=np.float32)
    for budget_bytes in (1, 16 * 7, 2**20):
        backend = make(budget_bytes)
        found = backend.get(backend.topk(backend.put(question), backend.put(keys), 23).ids)
        equal = np.argsort(-keys[:, 0], kind="stable")[:23]
        assert found[0].tolist() == equal.tolist(), f"ties under a budget of {budget_bytes} bytes gave {found[0]}"
        assert found[1].tolist() == list(range(23)), f"equal scores under {budget_bytes} bytes gave {found[1]}"


def check_equal_scores(backend: Backend) -> None:
    """Keys that are all alike have a zero range: low equals high exactly."""
    keys = np.repeat(_unit_rows(1, seed=3), 9, axis=0)
    best = backend.topk(backend.put(_unit_rows(2, seed=4)), backend.put(keys), 4)
    assert np.array_equal(backend.get(best.low), backend.get(best.high)), "equal keys have different scores"
    assert backend.get(best.ids).tolist() == [[0, 1, 2, 3]] * 2, f"equal keys came as {backend.get(best.ids)}"


def check_refusals(backend: Backend) -> None:
    """Calls that mean nothing are refused with the reference's words."""
    reference = load_backend("reference")
    for name, call in refused_calls().items():
        wanted, found = refusal(reference, call), refusal(backend, call)
        assert wanted is not None, f"the reference takes the call '{name}'"
        assert found == wanted, f"'{name}' gave {found!r}, not {wanted!r}"


def refused_calls() -> dict[str, Callable[[Backend], object]]:
    """Calls that every backend refuses, by what is wrong with them."""
    spoiled = {
        "not a number": np.nan,
        "infinite": np.inf,
        "negative": -0.25,
    }
    calls: dict[str, Callable[[Backend], object]] = {
        f"seeds {name}": _solve_call(_spoiled_seeds(value)) for name, value in spoiled.items()
    }
    calls["seeds without mass"] = _solve_call(np.zeros((2, 33)))
    calls["seeds that sum to 2"] = _solve_call(2 * random_seeds(2, 33))
    calls["seeds of another size"] = _solve_call(random_seeds(2, 32))
    calls["seeds as one vector"] = _solve_call(random_seeds(1, 33)[0])
    for damping in (-0.1, 1.0, 1.5, float("nan")):
        calls[f"damping {damping}"] = _solve_call(random_seeds(2, 33), damping=damping)
    calls["no steps"] = _solve_call(random_seeds(2, 33), steps=0)
    calls["select of 0"] = lambda backend: backend.select(backend.put(np.ones((2, 3))), 0)
    calls["select among NaN"] = lambda backend: backend.select(backend.put(np.array([[1.0, np.nan]])), 1)
    calls["topk of 0"] = lambda backend: backend.topk(backend.put(np.ones((2, 3))), backend.put(np.ones((4, 3))), 0)
    calls["widths apart"] = lambda backend: backend.topk(backend.put(np.ones((2, 3))), backend.put(np.ones((4, 5))), 1)
    calls["a query as one vector"] = lambda backend: backend.topk(
        backend.put(np.ones(3)), backend.put(np.ones((4, 3))), 1
    )
    return calls | _refused_diffusions()


def _refused_diffusions() -> dict[str, Callable[[Backend], object]]:
    """Calls to diffuse, residual and rank_diffused that mean nothing."""
    columns = np.ones((33, 2))
    spoiled = columns.copy()
    spoiled[3, 1] = np.nan
    calls: dict[str, Callable[[Backend], object]] = {
        "columns that are not finite": _diffuse_call(spoiled),
        "columns of another size": _diffuse_call(columns[:32]),
        "one column as a vector": _diffuse_call(columns[:, 0]),
        "diffusion by a damping of 1": _diffuse_call(columns, damping=1.0),
        "diffusion in no steps": _diffuse_call(columns, steps=0),
        "a residual of columns of another size": lambda backend: backend.residual(
            backend.put_graph(small_graph(33)), backend.put(columns[:32]), backend.put(columns[:32]), damping=0.5
        ),
        "a residual of fewer answers than columns": lambda backend: backend.residual(
            backend.put_graph(small_graph(33)), backend.put(columns), backend.put(columns[:, :1]), damping=0.5
        ),
    }
    calls |= _refused_pushes()
    case = diffused_case(small_graph(33), passages=12, batch=2, damping=0.5)
    far, sunk = case.seeds.nodes.copy(), case.seeds.weights.copy()
    far[0], sunk[0] = 33, -0.5
    for name, broken in {
        "a seed outside the graph": case._replace(seeds=case.seeds._replace(nodes=far)),
        "a seed that weighs less than nothing": case._replace(seeds=case.seeds._replace(weights=sunk)),
        "a seed that weighs no number": case._replace(seeds=case.seeds._replace(weights=sunk * np.nan)),
        "seeds of other queries": case._replace(seeds=case.seeds._replace(indptr=case.seeds.indptr[:2])),
        "queries of another width": case._replace(queries=case.queries[:, 1:]),
        "queries that are no numbers": case._replace(queries=case.queries * np.nan),
        "a ranking by a damping of 1": case._replace(damping=1.0),
        "one slope for two queries": case._replace(slope=case.slope[:1]),
        "ones of fewer passages": case._replace(ones=case.ones[:-1]),
    }.items():
        calls[name] = _rank_call(broken)
    calls["a ranking of 0"] = _rank_call(case, k=0)
    calls["an epsilon of 0"] = _rank_call(case, epsilon=0.0)
    calls["an epsilon above 1"] = _rank_call(case, epsilon=2.0)
    calls["a least epsilon above epsilon"] = _rank_call(case, least_epsilon=1e-2)
    return calls


def _refused_pushes() -> dict[str, Callable[[Backend], object]]:
    """Calls to push that mean nothing."""
    fine = SparseSeeds(np.array([0, 2]), np.array([1, 2], np.int32), np.ones(2))
    return {
        "a push from a node outside the graph": _push_call(fine._replace(nodes=np.array([1, 33], np.int32))),
        "a push of less than nothing": _push_call(fine._replace(weights=np.array([1.0, -1.0]))),
        "a push of one weight for two nodes": _push_call(fine._replace(weights=np.ones(1))),
        "a push by a damping of 1": _push_call(fine, damping=1.0),
        "a push to an epsilon of 0": _push_call(fine, epsilon=0.0),
        "a push to more passages than nodes": _push_call(fine, passages=34),
    }


def _push_call(
    seeds: SparseSeeds, *, passages: int = 12, damping: float = 0.5, epsilon: float = 1e-3
) -> Callable[[Backend], object]:
    return lambda backend: backend.push(
        backend.put_graph(small_graph(33)), seeds, passages=passages, damping=damping, epsilon=epsilon
    )


def _diffuse_call(columns: AnyFloats, *, damping: float = 0.5, steps: int = 3) -> Callable[[Backend], object]:
    return lambda backend: backend.diffuse(
        backend.put_graph(small_graph(33)), backend.put(columns), damping=damping, steps=steps
    )


def _rank_call(
    case: Case, *, k: int = 3, epsilon: float = 1e-3, least_epsilon: float = 1e-6
) -> Callable[[Backend], object]:
    return lambda backend: ranked(backend, case, k, epsilon=epsilon, least_epsilon=least_epsilon)


def refusal(backend: Backend, call: Callable[[Backend], object]) -> str | None:
    """The words of the UsageError that the call ends in, None when it is taken."""
    try:
        call(backend)
    except UsageError as error:
        return str(error)
    return None


def solved(backend: Backend, graph: Csr, seeds: AnyFloats, *, damping: float = 0.5, steps: int = STEPS) -> AnyFloats:
    """The backend's mass as a float64 NumPy array."""
    mass = backend.solve(backend.put_graph(graph), backend.put(seeds), damping=damping, steps=steps)
    return np.asarray(backend.get(mass), np.float64)


def _solve_call(seeds: AnyFloats, *, damping: float = 0.5, steps: int = 3) -> Callable[[Backend], object]:
    return lambda backend: solved(backend, small_graph(33), seeds, damping=damping, steps=steps)


def _spoiled_seeds(value: float) -> AnyFloats:
    """Seeds whose second row has the value in one place; a finite row still sums to 1."""
    seeds = random_seeds(3, 33)
    seeds[1, 4] = value
    if np.isfinite(value):
        seeds[1, 5] += 1 - seeds[1].sum()
    return seeds


def _unit_rows(rows: int, *, seed: int, width: int = WIDTH) -> Floats:
    data = np.random.default_rng(seed).standard_normal((rows, width))
    unit: Floats = (data / np.linalg.norm(data, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _assert_close(found: AnyFloats, wanted: AnyFloats, tolerance: float, what: str) -> None:
    worst = float(np.abs(np.asarray(found, np.float64) - wanted).max(initial=0.0))
    assert worst <= tolerance, f"{what}: off by {worst:.3g}, more than {tolerance:g}"


def _signatures(type_: Any) -> dict[str, list[tuple[str, Any, Any]]]:
    """Public functions of a class: name, kind and default of each parameter."""
    return {
        name: [(p.name, p.kind, p.default) for p in inspect.signature(member).parameters.values()]
        for name, member in inspect.getmembers(type_, inspect.isfunction)
        if not name.startswith("_")
    }
