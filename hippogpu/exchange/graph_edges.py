"""The graph as nodes with names and edges with kinds, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.index.edges import EdgeHoldings
from hippogpu.index.holdings import Holdings
from hippogpu.resolve import names_for
from hippogpu.store import Snapshot
from hippogpu.tables import fact_pairs, stated_mentions
from hippogpu.types import AnyInts, Bools, Ints, Longs

BLOCK_EDGES = 1 << 20
_MENTION, _FACT, _SYNONYM, _NAME = 1, 2, 4, 8
_NAMES = {_MENTION: "mention", _FACT: "fact", _SYNONYM: "synonym", _NAME: "name"}
USER = "user:"
"""Stands before the kind of an edge of one's own."""


class GraphEdge(NamedTuple):
    """An undirected edge, source below target; kind lists what it comes of, with ";" between."""

    source: int
    target: int
    weight: float
    kind: str


class Triangle(NamedTuple):
    """The edges of a block of the graph's rows, each once."""

    source: Longs
    target: Ints
    weight: NDArray[np.float32]


def triangles(snapshot: Snapshot) -> Iterator[Triangle]:
    """Each edge of the graph once, source below target, ascending, in blocks of about a million places."""
    indptr, graph = np.asarray(snapshot.graph.indptr), snapshot.graph
    begin = 0
    while begin < graph.nodes:
        end = int(np.searchsorted(indptr, indptr[begin] + BLOCK_EDGES, side="right")) - 1
        end = min(max(end, begin + 1), graph.nodes)
        places = slice(int(indptr[begin]), int(indptr[end]))
        source = np.repeat(np.arange(begin, end, dtype=np.int64), np.diff(indptr[begin : end + 1]))
        above = graph.indices[places] > source
        yield Triangle(source[above], graph.indices[places][above], graph.weights[places][above])
        begin = end


def graph_edges(snapshot: Snapshot) -> Iterator[list[GraphEdge]]:
    """The edges of the graph with their kinds, in blocks, in the order of triangles."""
    families = {family: np.unique(keys) for family, keys in _families(snapshot).items()}
    own = _user_kinds(snapshot)
    own_keys = np.array(sorted(own), np.int64)
    for block in triangles(snapshot):
        keys = block.source * snapshot.graph.nodes + block.target
        kinds = [_NAME_OF[mask] for mask in _masks(keys, families).tolist()]
        for place in np.flatnonzero(_within(keys, own_keys)).tolist():
            names = sorted(own[int(keys[place])])
            kinds[place] = ";".join([*([kinds[place]] if kinds[place] else []), *(USER + name for name in names)])
        columns = (block.source.tolist(), block.target.tolist(), block.weight.tolist())
        yield list(map(GraphEdge, *columns, kinds))


def _names_of(mask: int) -> str:
    return ";".join(name for family, name in _NAMES.items() if mask & family)


_NAME_OF = [_names_of(mask) for mask in range(16)]


def _masks(keys: Longs, families: Mapping[int, Longs]) -> NDArray[np.uint8]:
    """Which families each key belongs to."""
    masks = np.zeros(len(keys), np.uint8)
    for family, members in families.items():
        masks[_within(keys, members)] |= family
    return masks


def _within(keys: Longs, members: Longs) -> Bools:
    """Which keys are among the ascending members."""
    if not len(members):
        return np.zeros(len(keys), np.bool_)
    found: Bools = members[np.minimum(np.searchsorted(members, keys), len(members) - 1)] == keys
    return found


def _families(snapshot: Snapshot) -> dict[int, Longs]:
    """The keys source · n + target of the edges that mentions, facts, synonyms and names make."""
    tables, nodes = snapshot.tables, snapshot.graph.nodes
    passages = len(tables.mentions)
    rows = np.repeat(np.arange(passages, dtype=np.int64), np.diff(tables.mentions.indptr))
    stated = stated_mentions(tables)
    mentions = rows[stated] * nodes + passages + tables.mentions.values[stated]
    low, high, _ = fact_pairs(tables)
    source, target = snapshot.synonyms.source.astype(np.int64), snapshot.synonyms.target.astype(np.int64)
    names = names_for(tables, snapshot.passages.wholes, snapshot.manifest.config)
    named = _key(names.edges.source, names.edges.target, passages, nodes) if names else np.empty(0, np.int64)
    return {
        _MENTION: mentions,
        _FACT: _key(low, high, passages, nodes),
        _SYNONYM: _key(np.minimum(source, target), np.maximum(source, target), passages, nodes),
        _NAME: named,
    }


def _key(low: AnyInts, high: AnyInts, passages: int, nodes: int) -> Longs:
    return (low.astype(np.int64) + passages) * nodes + high + passages


def _user_kinds(snapshot: Snapshot) -> dict[int, set[str]]:
    """The kinds of the edges of one's own, by the key of the pair of nodes they join."""
    passages, kinds = snapshot.passages, dict[int, set[str]]()
    if not len(snapshot.tables.user_edges.source):
        return kinds
    config = snapshot.manifest.config
    holdings = Holdings(passages, chunked=config.chunk_tokens > 0)
    placed = EdgeHoldings(snapshot.user_edges, holdings, rule=config.text_rule).placed(holdings, passages)
    phrase = {text: len(passages) + number for number, text in enumerate(snapshot.tables.phrases)}
    for edge in placed.edges:
        ends: list[Sequence[int]] = [placed.rows[id_] for id_ in edge.passages]
        ends.extend([phrase[text]] for text in edge.phrases)
        first, second = ends
        for one in first:
            for other in second:
                if one != other:
                    kinds.setdefault(min(one, other) * snapshot.graph.nodes + max(one, other), set()).add(edge.kind)
    return kinds
