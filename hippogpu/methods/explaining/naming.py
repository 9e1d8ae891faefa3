"""Nodes and edges of a path in words: which phrase, which passage, which facts, and who states them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.backends import Graph
from hippogpu.methods.explaining.paths import WalkPath
from hippogpu.store import Snapshot
from hippogpu.types import Ints, MassPath, PathNode, PathStep, StatedFact


def named_path(snapshot: Snapshot, graph: Graph, path: WalkPath, *, shift: int, unit: float) -> MassPath:
    """The path with its nodes and steps named; its mass divided by the unit.

    graph : that was walked, for the weights of the steps · shift : makes its nodes those of the index's graph
    """
    steps = tuple(
        step_between(snapshot, one + shift, other + shift, weight=weight_between(graph, one, other))
        for one, other in pairwise(path.nodes)
    )
    return MassPath(tuple(named(snapshot, node + shift) for node in path.nodes), steps, path.mass / unit)


def named(snapshot: Snapshot, node: int) -> PathNode:
    """A node by what it is: passages come first."""
    passages = snapshot.passages
    if node >= len(passages):
        return PathNode("phrase", snapshot.tables.phrases[node - len(passages)])
    passage = passages.passage(node)
    return PathNode("passage", passage.id, passage.title)


def step_between(snapshot: Snapshot, one: int, other: int, *, weight: float) -> PathStep:
    """The edge that joins two nodes, and what it comes of."""
    passages = len(snapshot.passages)
    low, high = min(one, other), max(one, other)
    if low < passages:
        stated = high >= passages and _states(snapshot, low, high - passages)
        return PathStep("mention" if stated else "own", weight)
    facts = facts_between(snapshot, low - passages, high - passages)
    cosine = synonymy(snapshot, low - passages, high - passages)
    if facts or cosine is not None:
        return PathStep("fact" if facts else "synonym", weight, facts, cosine)
    # What else joins two phrases is an edge of the user's, or that they name one thing.
    return PathStep("own" if _joined_by_user(snapshot, low, high) else "name", weight)


def facts_between(snapshot: Snapshot, one: int, other: int) -> tuple[StatedFact, ...]:
    """The triples that hold both phrases, in the order of the facts, each with the passages that state it."""
    facts, phrases = snapshot.tables.facts, snapshot.tables.phrases
    numbers = sorted({*_with_ends(snapshot, one, other), *_with_ends(snapshot, other, one)})
    return tuple(
        StatedFact(
            phrases[facts.subject[number]],
            facts.predicate[number],
            phrases[facts.object[number]],
            _stating(snapshot, number, one, other),
        )
        for number in numbers
    )


def phrase_number(phrases: Sequence[str], text: str) -> int | None:
    """The number of a phrase in the sorted table, None when it is not there."""
    low, high = 0, len(phrases)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if phrases[middle] < text else (low, middle)
    return low if low < len(phrases) and phrases[low] == text else None


def synonymy(snapshot: Snapshot, one: int, other: int) -> float | None:
    """The cosine that makes two phrases synonyms, whichever of them found the other; None when neither did."""
    synonyms = snapshot.synonyms
    for source, target in ((one, other), (other, one)):
        here = _equal_range(synonyms.source, source)
        place = np.flatnonzero(synonyms.target[here] == target)
        if len(place):
            return float(synonyms.weight[here][place[0]])
    return None


def _joined_by_user(snapshot: Snapshot, low: int, high: int) -> bool:
    edges = snapshot.tables.user_edges
    return bool(np.any(edges.target[_equal_range(edges.source, low)] == high))


def _with_ends(snapshot: Snapshot, subject: int, object_: int) -> list[int]:
    """Facts are sorted by subject, so those of one lie together."""
    facts = snapshot.tables.facts
    here = _equal_range(facts.subject, subject)
    return [int(here.start + place) for place in np.flatnonzero(facts.object[here] == object_)]


def _stating(snapshot: Snapshot, fact: int, one: int, other: int) -> tuple[str, ...]:
    """The first ids of the passages that state a fact: each of them mentions both phrases."""
    passages = snapshot.passages
    few, many = sorted((_mentioning(snapshot, one), _mentioning(snapshot, other)), key=len)
    both = few[np.isin(few, many)] if len(many) < 64 * max(len(few), 1) else few
    rows = [int(row) for row in both if fact in snapshot.tables.statements.row(int(row))]
    return tuple(passages.ids[int(passages.first[row])] for row in rows)


def _mentioning(snapshot: Snapshot, phrase: int) -> Ints:
    """The passages among a phrase's neighbours: the first of its row."""
    graph, passages = snapshot.graph, len(snapshot.passages)
    row = graph.indices[graph.indptr[passages + phrase] : graph.indptr[passages + phrase + 1]]
    return row[: int(np.searchsorted(row, np.int32(passages)))]


def _states(snapshot: Snapshot, passage: int, phrase: int) -> bool:
    """Whether a statement of the passage holds the phrase."""
    facts, stated = snapshot.tables.facts, snapshot.tables.statements.row(passage)
    return bool(np.any(facts.subject[stated] == phrase) or np.any(facts.object[stated] == phrase))


def weight_between(graph: Graph, one: int, other: int) -> float:
    """The weight of the edge between two nodes that are joined."""
    here = slice(int(graph.indptr[one]), int(graph.indptr[one + 1]))
    place = int(np.searchsorted(graph.indices[here], np.int32(other)))
    return float(graph.weights[here][place])


def _equal_range(ascending: NDArray[np.integer[Any]], value: int) -> slice:
    """The places of a value. It is cast, as NumPy would otherwise cast the whole array."""
    key = ascending.dtype.type(value)
    return slice(int(np.searchsorted(ascending, key, "left")), int(np.searchsorted(ascending, key, "right")))
