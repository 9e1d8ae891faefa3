"""What each node order and each layout of the edges takes, beside the graph as it is in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench.locality_layouts import LAYOUTS, Coded, Layout, coded_step, gap_bits
from bench.locality_orders import ORDERS, SEED, Order
from bench.locality_timing import in_turns
from hippogpu import diffuse
from hippogpu.backends import load_backend
from hippogpu.backends.cpu_push import Left, Walk, clear, left_for, push_in_stages, sow
from hippogpu.backends.cpu_step import aligned_zeros, equal_parts, step
from hippogpu.backends.reference import row_sums
from hippogpu.backends.values import Graph
from hippogpu.graph.ordering import renumbered
from hippogpu.types import AnyFloats, Csr, Floats, Longs

DAMPING, EPSILON = 0.5, 1e-7
BATCHES = (1, 8, 32)
PUSHED, SEEDS = 32, 5
COLUMNS, BUDGET_BYTES = 64, 2**30
# Of the greatest entry of a step's result: other orders sum a row in another order.
TOLERANCE = 1e-5
BASE = "as is"


class Problem(NamedTuple):
    """A graph whose first `passages` nodes are passages."""

    name: str
    graph: Csr
    passages: int


class State(NamedTuple):
    """What a step reads and writes: y, r, out (n, B) float32, scale (n,) float32."""

    y: AnyFloats
    r: AnyFloats
    scale: Floats
    out: AnyFloats


def model_bytes(graph: Csr, batch: int, edge_bytes: float = 8.0) -> dict[str, float]:
    """Bytes of a step by docs/ppr.md: every row of y read once (lower), or anew for each edge (upper)."""
    nodes, edges, row = graph.nodes, graph.nonzeros, 4 * batch
    return {"lower": edges * edge_bytes + 3 * nodes * row, "upper": edges * (edge_bytes + row) + 2 * nodes * row}


def measure_orders(problem: Problem, names: Sequence[str], repeats: int) -> Iterator[dict[str, Any]]:
    """A row an order: how long it takes to find and apply, bits of its gaps, steps and a push."""
    for name in names:
        started = time.process_time()
        order = ORDERS[name](problem.graph, problem.passages)
        found_s, started = time.process_time() - started, time.process_time()
        other = renumbered(problem.graph, order.order)
        row: dict[str, Any] = {"order": name, "communities": order.communities, "found_s": round(found_s, 2)}
        row |= {"applied_s": round(time.process_time() - started, 2), "bits": gap_bits(other)}
        row["steps"] = {str(batch): _compared(problem.graph, other, order, batch, repeats) for batch in BATCHES}
        yield row | {"push": _pushes(problem, other, order, repeats)}


def measure_diffusion(problem: Problem, repeats: int) -> dict[str, Any]:
    """A diffusion of 64 columns, ordering and check of the result included, with the order and without."""
    random = np.random.default_rng(SEED)
    vectors = random.standard_normal((problem.passages, COLUMNS - 1), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    backend, found, usual = load_backend("cpu"), {}, diffuse.ORDERED_NODES

    def work(name: str, least: int) -> None:
        diffuse.ORDERED_NODES = least
        try:
            found[name] = diffuse.diffuse_passages(
                problem.graph, vectors, damping=DAMPING, backend=backend, budget_bytes=BUDGET_BYTES
            )
        finally:
            diffuse.ORDERED_NODES = usual

    works = {BASE: partial(work, BASE, problem.graph.nodes + 1), "ordered": partial(work, "ordered", 0)}
    timed = in_turns(works, BASE, repeats)
    off = float(np.abs(found["ordered"].vectors - found[BASE].vectors).max() / np.abs(found[BASE].vectors).max())
    row = {**timed["ordered"], "plain_ms": timed[BASE]["ms"], "columns": COLUMNS, "difference": float(f"{off:.2g}")}
    return {"what": "diffusion", **row}


def _compared(graph: Csr, other: Csr, order: Order, batch: int, repeats: int) -> dict[str, Any]:
    mine, theirs = _state(graph, batch), _state(other, batch)
    theirs.y[:], theirs.r[:] = mine.y[order.order], mine.r[order.order]
    works = {BASE: _plain(graph, mine), "other": _plain(other, theirs)}
    error = _error(works, lambda: (mine.out[order.order], theirs.out))
    return _rated(in_turns(works, BASE, repeats), "other", model_bytes(graph, batch)) | {"error": error}


def measure_layouts(problem: Problem, order: str, names: Sequence[str], repeats: int) -> Iterator[dict[str, Any]]:
    """A row a layout of the graph in an order, beside the plain step of the same order."""
    graph, passages = problem.graph, problem.passages
    if order != BASE:
        graph, passages = renumbered(graph, ORDERS[order](graph, passages).order), 0
    for name in names:
        layout = LAYOUTS[name]
        coded = layout.code(graph, passages)
        edge_bytes = coded.nbytes / graph.nonzeros
        row: dict[str, Any] = {"layout": name, "order": order, "bytes_a_nonzero": round(edge_bytes, 3), "steps": {}}
        for batch in BATCHES:
            state, again = _state(graph, batch), _state(graph, batch)
            works = {BASE: _plain(graph, state), "other": _coded(layout, coded, graph.indptr, again)}
            error = _error(works, lambda a=state, b=again: (a.out, b.out), 1.0)  # type: ignore[misc]
            timed = _rated(in_turns(works, BASE, repeats), "other", model_bytes(graph, batch, edge_bytes))
            row["steps"][str(batch)] = timed | {"error": error}
        yield row


def _state(graph: Csr, batch: int) -> State:
    random, shape = np.random.default_rng(SEED), (graph.nodes, batch, np.dtype(np.float32))
    y, r, out = (aligned_zeros(*shape) for _ in range(3))
    y[:], r[:] = random.random(y.shape, np.float32), random.random(r.shape, np.float32)
    degrees = row_sums(graph, graph.weights)
    scale = np.divide(DAMPING, degrees, out=np.zeros(graph.nodes), where=degrees > 0).astype(np.float32)
    return State(y, r, scale, out)


def _plain(graph: Csr, state: State) -> Callable[[], None]:
    parts, one, none = equal_parts(graph.indptr), np.float32(1), np.float32(0)
    y, r, scale, out = state
    return lambda: step(graph.indptr, graph.indices, graph.weights, parts, y, r, scale, one, none, out)


def _coded(layout: Layout, coded: Coded, indptr: Longs, state: State) -> Callable[[], None]:
    return lambda: coded_step(layout.read, coded, indptr, *state)


def _error(works: dict[str, Callable[[], None]], results: Any, tolerance: float = TOLERANCE) -> float:
    """The greatest difference of two results, as a share of the greatest entry; nothing wrong is timed."""
    for work in works.values():
        work()
    wanted, found = results()
    error = float(np.abs(wanted - found).max() / np.abs(wanted).max())
    if not error <= min(tolerance, 1e-2):
        raise ValueError(f"A step is off by {error:.2g} of its greatest entry. Do not time it; mend it.")
    return float(f"{error:.2g}")


def _rated(timed: dict[str, dict[str, Any]], name: str, moved: dict[str, float]) -> dict[str, Any]:
    """The timed work with GB/s by the model, and the plain one's median."""
    found = timed[name]
    gbs = {bound: round(moved[bound] / found["ms"]["median"] / 1e6, 2) for bound in moved}
    return {**found, "plain_ms": timed[BASE]["ms"], "gbs": gbs}


def _pushes(problem: Problem, other: Csr, order: Order, repeats: int) -> dict[str, Any]:
    """Milliseconds of a question's push, seeds at five phrases of a passage, masses of no node kept."""
    ranks = np.empty(len(order.order), np.int32)
    ranks[order.order] = np.arange(len(ranks), dtype=np.int32)
    seeds = _seeds(problem)
    moved = [ranks[nodes] for nodes in seeds]
    edges: dict[str, int] = {}
    works = {BASE: _push(problem.graph, seeds, edges, BASE), "other": _push(other, moved, edges, "other")}
    timed = in_turns(works, BASE, repeats)
    return {**timed["other"], "plain_ms": timed[BASE]["ms"], "questions": len(seeds), "edges": edges}


def _seeds(problem: Problem) -> list[Any]:
    random, indptr, indices = np.random.default_rng(SEED), problem.graph.indptr, problem.graph.indices
    stating = np.flatnonzero(np.diff(indptr[: problem.passages + 1]) >= SEEDS)
    chosen = random.choice(stating, PUSHED)
    return [indices[indptr[passage] : indptr[passage] + SEEDS] for passage in chosen.tolist()]


def _push(graph: Csr, seeds: Sequence[Any], edges: dict[str, int], name: str) -> Callable[[], None]:
    walk = Walk(graph.indptr, graph.indices, graph.weights, DAMPING)
    at = left_for(Graph(graph.indptr, graph.indices, graph.weights, row_sums(graph, graph.weights)), 0)

    def work() -> None:
        edges[name] = sum(_pushed(walk, at, nodes) for nodes in seeds)

    return work


def _pushed(walk: Walk, at: Left, nodes: Any) -> int:
    count = sow(nodes, np.full(len(nodes), 1 / len(nodes)), DAMPING, at)
    count, edges = push_in_stages(walk, at, count, EPSILON)
    clear(at, count)
    return edges
