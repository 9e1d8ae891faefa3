"""Edges that a question weighs: along facts that match it the walk from its facts goes further."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from hippogpu.backends import SparseSeeds
from hippogpu.backends.threads import run_together
from hippogpu.config import SearchConfig
from hippogpu.methods.loaded import Loaded
from hippogpu.types import AnyFloats, Csr, Floats, Ints, Longs, Tables

# Similarities of all facts that are held at once, for some questions together.
_BLOCK_BYTES = 2**28


class EdgeFacts(NamedTuple):
    """The facts behind each entry of the CSR arrays: those of entry j are facts[indptr[j]:indptr[j+1]].

    Between phrases all facts that join the pair, either way; between a passage and a phrase the facts of the passage
    that hold the phrase. Synonym edges and edges of one's own have none.
    """

    indptr: Longs
    facts: Ints


def focused_masses(loaded: Loaded, vectors: Floats, seeds: SparseSeeds, config: SearchConfig) -> AnyFloats:
    """What the seeds bring each passage on a graph of the question's own, (B, P) float64.

    An edge weighs exp(focus · (c − m)) times its weight, where c is the greatest cosine of its facts with the question
    and m the mean over all facts: one fact that matches is reason enough to go that way, whatever else joins the pair,
    as an edge weighs the greatest of its evidence. Without a fact the factor is 1. Pushed until every residual is at
    most push_epsilon · degree (of the graph without factors) · the sum of the seeds.
    """
    snapshot, backend = loaded.snapshot, loaded.backend
    behind = loaded.derived.once("facts of edges", lambda: edge_facts(snapshot.tables, snapshot.graph))
    passages, facts = len(snapshot.passages), len(snapshot.tables.facts)
    masses = np.zeros((len(vectors), passages))
    at_once = max(1, _BLOCK_BYTES // max(4 * facts, 1))
    for start in range(0, len(vectors), at_once):
        rows = range(start, min(start + at_once, len(vectors)))
        cosines = backend.get(backend.scores(vectors[rows.start : rows.stop], loaded.facts))
        _push_block(snapshot.graph, behind, seeds, cosines, rows, masses, config)
    return masses


def _push_block(
    graph: Csr,
    behind: EdgeFacts,
    seeds: SparseSeeds,
    cosines: AnyFloats,
    rows: range,
    masses: AnyFloats,
    config: SearchConfig,
) -> None:
    degrees = np.bincount(
        np.repeat(np.arange(graph.nodes), np.diff(graph.indptr)), weights=graph.weights, minlength=graph.nodes
    )

    def work(some: Iterator[int]) -> None:
        left, waits = np.zeros(graph.nodes), np.zeros(graph.nodes, np.bool_)
        for row in some:
            here = slice(int(seeds.indptr[row]), int(seeds.indptr[row + 1]))
            similar = np.exp(config.focus * (cosines[row - rows.start] - cosines[row - rows.start].mean(dtype=float)))
            push_focused(
                Focused(graph.indptr, graph.indices, graph.weights, degrees, behind.indptr, behind.facts, similar),
                seeds.nodes[here],
                np.asarray(seeds.weights[here], np.float64),
                config.damping,
                config.push_epsilon,
                left,
                waits,
                masses[row],
            )

    run_together(rows, work)


def edge_facts(tables: Tables, graph: Csr) -> EdgeFacts:
    """The facts of each edge, from the tables."""
    passages, n = len(tables.mentions), graph.nodes
    facts, stated = tables.facts, tables.statements.values
    subjects, objects = facts.subject.astype(np.int64) + passages, facts.object.astype(np.int64) + passages
    stating = np.repeat(np.arange(passages, dtype=np.int64), np.diff(tables.statements.indptr))
    numbers = np.arange(len(facts), dtype=np.int32)
    ends = [
        (subjects, objects, numbers),
        (objects, subjects, numbers),
        *(
            (a, b, stated)
            for phrase in (subjects[stated], objects[stated])
            for a, b in ((stating, phrase), (phrase, stating))
        ),
    ]
    source, target, fact = (np.concatenate(column) for column in zip(*ends, strict=True))
    apart = source != target
    keys = np.repeat(np.arange(n, dtype=np.int64), np.diff(graph.indptr)) * n + graph.indices
    places = np.searchsorted(keys, source[apart] * n + target[apart])
    order = np.argsort(places, kind="stable")
    indptr = np.zeros(graph.nonzeros + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=graph.nonzeros), out=indptr[1:])
    return EdgeFacts(indptr, fact[apart][order].astype(np.int32))


class Focused(NamedTuple):
    """A graph (indptr, indices, weights, degrees), the facts of its edges, and the factor of each fact (F,)."""

    indptr: Longs
    indices: Ints
    weights: Floats
    degrees: AnyFloats
    fact_indptr: Longs
    facts: Ints
    factors: AnyFloats


if TYPE_CHECKING:

    def push_focused(
        graph: Focused,
        nodes: Ints,
        seeds: AnyFloats,
        damping: float,
        epsilon: float,
        left: AnyFloats,
        waits: AnyFloats,
        masses: AnyFloats,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def push_focused(graph, nodes, seeds, damping, epsilon, left, waits, masses):
        """Writes the mass of each passage (P,); left (n,) and waits (n,) are zeros before and after."""
        queue, whole = [np.int64(0) for _ in range(0)], seeds.sum()
        touched = [np.int64(0) for _ in range(0)]
        for place in range(len(nodes)):
            left[nodes[place]] += seeds[place]
            queue.append(np.int64(nodes[place]))
            touched.append(np.int64(nodes[place]))
            waits[nodes[place]] = True
        head = 0
        while head < len(queue):
            node = queue[head]
            head += 1
            waits[node] = False
            held = left[node]
            first, last = graph.indptr[node], graph.indptr[node + 1]
            if held <= epsilon * graph.degrees[node] * whole or first == last:
                continue
            left[node] = 0.0
            if node < len(masses):
                masses[node] += (1 - damping) * held
            degree = 0.0
            for j in range(first, last):
                degree += _weight(graph, j)
            for j in range(first, last):
                other = np.int64(graph.indices[j])
                if left[other] == 0.0:
                    touched.append(other)
                left[other] += damping * held * _weight(graph, j) / degree
                if not waits[other] and left[other] > epsilon * graph.degrees[other] * whole:
                    waits[other] = True
                    queue.append(other)
        for node in touched:
            if node < len(masses):
                masses[node] += (1 - damping) * left[node]
            left[node] = 0.0

    @numba.njit(nogil=True, cache=True)
    def _weight(graph, j):
        """The weight of an edge for this question."""
        first, last = graph.fact_indptr[j], graph.fact_indptr[j + 1]
        if first == last:
            return np.float64(graph.weights[j])
        most = graph.factors[graph.facts[first]]
        for place in range(first + 1, last):
            most = max(most, graph.factors[graph.facts[place]])
        return np.float64(graph.weights[j]) * most
