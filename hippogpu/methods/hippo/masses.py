"""What a walk brings each passage from the facts, the names and the passages that match a question, each apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends import SparseSeeds, steps_for
from hippogpu.backends.values import seed_columns
from hippogpu.config import LinearSolver, SearchConfig, ServingSolver
from hippogpu.methods.diffused import passage_seed_line, solver_for, sparse_seeds
from hippogpu.methods.hippo.hubs import hub_damped_graph
from hippogpu.methods.loaded import Loaded, Queries
from hippogpu.methods.walks import walk_graph
from hippogpu.types import AnyFloats, Floats


class Starts(NamedTuple):
    """Where the walks of a batch begin.

    facts, names : weight by phrase, one mapping a question
    lexical      : weight by passage of the few passages that match best by words, one mapping a question
    low, high    : (B,) extremes of the questions' products with all passages, of which the passage seeds are made
    """

    facts: Sequence[Mapping[int, float]]
    names: Sequence[Mapping[int, float]]
    lexical: Sequence[Mapping[int, float]]
    low: AnyFloats
    high: AnyFloats


class Masses(NamedTuple):
    """G·seeds of each kind at every passage, (B, P) each, in the units of the seeds; as exact as they were found."""

    facts: AnyFloats
    names: AnyFloats
    passages: AnyFloats

    def total(self, config: SearchConfig) -> AnyFloats:
        """What the graph says of every passage: the order in which it would rank them, (B, P) float64."""
        whole: AnyFloats = np.multiply(self.names, config.name_weight, dtype=np.float64)
        whole += self.facts
        whole += self.passages
        return whole


def walk_from(loaded: Loaded, queries: Queries, starts: Starts, config: SearchConfig) -> Masses:
    """The masses of each kind. With the solver diffused, pushes and diffused vectors; else all columns walk together.

    Edges that a question weighs (focus) change the part of the facts alone.
    """
    solver, first = solver_of(loaded, config), len(loaded.snapshot.passages)
    seeds = Starting(
        sparse_seeds(starts.facts, first=first),
        sparse_seeds(starts.names, first=first),
        sparse_seeds(starts.lexical, first=0),
    )
    walked = (
        _pushed(loaded, queries.to_passages, seeds, starts, config)
        if solver == "diffused"
        else _walked(loaded, queries.to_passages, seeds, starts, config, solver)
    )
    if config.focus > 0:
        # Numba is loaded when something is ranked, not when a method is chosen.
        from hippogpu.methods.hippo.focus import focused_masses

        return walked._replace(facts=focused_masses(loaded, queries.to_facts, seeds.facts, config))
    return walked


def solver_of(loaded: Loaded, config: SearchConfig) -> ServingSolver:
    """The solver that serves; the diffused vectors are of the graph as it is, not of one with damped hubs."""
    if config.hubs > 0 and config.solver == "auto":
        return "power"
    return solver_for(loaded, config)


class Starting(NamedTuple):
    """The starts as seeds of nodes."""

    facts: SparseSeeds
    names: SparseSeeds
    lexical: SparseSeeds


def _pushed(loaded: Loaded, vectors: Floats, seeds: Starting, starts: Starts, config: SearchConfig) -> Masses:
    diffused, backend, passages = loaded.diffused, loaded.backend, len(loaded.snapshot.passages)
    assert diffused is not None
    facts, names, lexical = (
        backend.push(loaded.graph, some, passages=passages, damping=config.damping, epsilon=config.push_epsilon)
        for some in seeds
    )
    slope, offset = dense_line(loaded, starts, config)
    rest = slope[:, None] * backend.get(backend.scores(vectors, diffused.vectors))
    ones = backend.get(diffused.ones)
    for row, least in zip(rest, offset, strict=True):
        row += least * ones
    rest += lexical
    return Masses(facts, names, rest)


def _walked(
    loaded: Loaded, vectors: Floats, seeds: Starting, starts: Starts, config: SearchConfig, solver: LinearSolver
) -> Masses:
    """Three columns a question: its facts, its names, its passages."""
    backend, questions, passages = loaded.backend, len(vectors), len(loaded.snapshot.passages)
    graph = hub_damped_graph(loaded, config) if config.hubs > 0 else walk_graph(loaded, config)
    every = slice(0, questions)
    columns = np.concatenate([seed_columns(some, graph.nodes, every) for some in seeds], axis=1)
    slope, offset = dense_line(loaded, starts, config)
    products = backend.get(backend.scores(vectors, loaded.passages)).astype(np.float64)
    columns[:passages, 2 * questions :] += (slope[:, None] * products + offset[:, None]).T
    steps = steps_for(solver, config.damping, config.tolerance)
    walked = backend.get(
        backend.diffuse(graph, backend.put(columns), damping=config.damping, steps=steps, solver=solver)
    )
    facts, names, rest = np.split(np.asarray(walked[:passages], np.float64).T, 3)
    return Masses(facts, names, rest)


def dense_line(loaded: Loaded, starts: Starts, config: SearchConfig) -> tuple[AnyFloats, AnyFloats]:
    """Passage seed = slope · product + offset, the share that lexical seeds leave."""
    weight = config.passage_weight / (1 + config.lexical_weight * bool(config.lexical_passages))
    return passage_seed_line(starts.low, starts.high, weight, starts.low.dtype)
