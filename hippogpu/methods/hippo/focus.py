"""Edges that a question weighs: along facts that match it the walk from its facts goes further."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from hippogpu.backends import SparseSeeds
from hippogpu.backends.reference import row_sums
from hippogpu.backends.threads import run_together
from hippogpu.config import SearchConfig
from hippogpu.methods.hippo.hubs import walked_edges
from hippogpu.methods.loaded import Loaded
from hippogpu.types import AnyFloats, Bools, Csr, Floats, Ints, Longs, Tables

# Similarities of all facts that are held at once, for some questions together.
_BLOCK_BYTES = 2**28
# Beyond e^64 a factor says no more than that the walk goes there; it leaves room for float32 and for sums.
_MOST = 64.0


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
    most push_epsilon · degree (of the graph without factors) · the sum of the seeds. The edges are those of the
    settings synonyms and hubs.
    """
    snapshot, backend = loaded.snapshot, loaded.backend
    edges, behind = walked_edges(loaded, config), facts_behind(loaded, config)
    key = ("degrees of edges", config.synonyms, config.hubs)
    degrees = loaded.derived.once(key, lambda: row_sums(edges, edges.weights))
    plain = Focused(edges.indptr, edges.indices, edges.weights, degrees, behind.indptr, behind.facts, np.empty(0))
    facts, masses = len(snapshot.tables.facts), np.zeros((len(vectors), len(snapshot.passages)))
    at_once = max(1, _BLOCK_BYTES // max(4 * facts, 1))
    for start in range(0, len(vectors), at_once):
        rows = range(start, min(start + at_once, len(vectors)))
        cosines = backend.get(backend.scores(vectors[rows.start : rows.stop], loaded.facts))
        _push_block(plain, seeds, cosines, rows, masses, config)
    return masses


def fact_factors(cosines: AnyFloats, focus: float) -> AnyFloats:
    """exp(focus · (cosine − mean)) of each fact, (F,) float64; the exponent is cut off at ±64."""
    if not len(cosines):
        return np.empty(0)
    exponents = focus * (cosines - cosines.mean(dtype=float))
    factors: AnyFloats = np.exp(np.clip(exponents, -_MOST, _MOST))
    return factors


def _push_block(
    plain: Focused, seeds: SparseSeeds, cosines: AnyFloats, rows: range, masses: AnyFloats, config: SearchConfig
) -> None:
    def work(some: Iterator[int]) -> None:
        desk = _desk(len(plain.degrees))
        for row in some:
            here = slice(int(seeds.indptr[row]), int(seeds.indptr[row + 1]))
            push_focused(
                plain._replace(factors=fact_factors(cosines[row - rows.start], config.focus)),
                seeds.nodes[here],
                np.asarray(seeds.weights[here], np.float64),
                config.damping,
                config.push_epsilon,
                desk,
                masses[row],
            )

    run_together(rows, work)


def facts_behind(loaded: Loaded, config: SearchConfig) -> EdgeFacts:
    """The facts of each edge that is walked, made once; damped hubs change weights alone."""
    key = ("facts of edges", config.synonyms)
    return loaded.derived.once(key, lambda: edge_facts(loaded.snapshot.tables, walked_edges(loaded, config)))


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


class Desk(NamedTuple):
    """What a push works on, for one question: left (n,) float64, waits and seen (n,) are zeros before and after.

    queue (n,) of the nodes that wait, a ring · touched (n,) nodes that ever had mass
    """

    left: AnyFloats
    waits: Bools
    seen: Bools
    queue: Ints
    touched: Ints


def _desk(nodes: int) -> Desk:
    """Fresh working memory: 18 bytes a node."""
    flags = np.zeros((2, nodes), np.bool_)
    return Desk(np.zeros(nodes), flags[0], flags[1], np.empty(nodes, np.int32), np.empty(nodes, np.int32))


if TYPE_CHECKING:

    def push_focused(
        graph: Focused,
        nodes: Ints,
        seeds: AnyFloats,
        damping: float,
        epsilon: float,
        desk: Desk,
        masses: AnyFloats,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def push_focused(graph, nodes, seeds, damping, epsilon, desk, masses):
        """Writes the mass of each passage (P,)."""
        left, waits, queue, touched = desk.left, desk.waits, desk.queue, desk.touched
        head, waiting, count, whole = 0, 0, 0, seeds.sum()
        for place in range(len(nodes)):
            left[nodes[place]] += seeds[place]
            count = _touch(desk, count, nodes[place])
            queue[waiting], waits[nodes[place]] = nodes[place], True
            waiting += 1
        while waiting:
            node = queue[head]
            head = head + 1 if head + 1 < len(queue) else 0
            waiting -= 1
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
                other = graph.indices[j]
                count = _touch(desk, count, other)
                left[other] += damping * held * _weight(graph, j) / degree
                if not waits[other] and left[other] > epsilon * graph.degrees[other] * whole:
                    place = head + waiting
                    queue[place if place < len(queue) else place - len(queue)], waits[other] = other, True
                    waiting += 1
        for place in range(count):
            node = touched[place]
            if node < len(masses):
                masses[node] += (1 - damping) * left[node]
            left[node], desk.seen[node] = 0.0, False

    @numba.njit(nogil=True, cache=True)
    def _touch(desk, count, node):
        """Notes the node at its first time; how many are noted."""
        if desk.seen[node]:
            return count
        desk.seen[node], desk.touched[count] = True, node
        return count + 1

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
