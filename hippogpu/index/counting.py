"""The figures of an index by which people compare it with another."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hippogpu.resolve import NameEdges
from hippogpu.store import Passages
from hippogpu.tables import count_fact_pairs
from hippogpu.types import Csr, Edges, Ints, Tables

# Pairs that are sorted at once.
_PAIRS = 1 << 24


def counts_of(
    passages: Passages, tables: Tables, synonyms: Edges, graph: Csr, *, names: NameEdges | None
) -> dict[str, int]:
    """Passages, ids, phrases, … of an index; names by evidence, where the settings ask for them."""
    return {
        "passages": len(passages),
        "ids": len(passages.ids),
        "without_record": sum(not name for name in passages.extractors),
        "phrases": len(tables.phrases),
        "facts": len(tables.facts),
        "fact_pairs": count_fact_pairs(tables),
        "mentions": len(tables.mentions.values),
        "synonyms": count_pairs(synonyms, len(tables.phrases)),
        "nodes": graph.nodes,
        "edges": graph.nonzeros // 2,
        **({f"names_{kind}": count for kind, count in names.counts.items()} if names else {}),
    }


def count_pairs(edges: Edges, phrases: int, *, at_once: int = _PAIRS) -> int:
    """How many unordered pairs the directed edges join, of about so many edges at once."""
    stretches = max(1, -(-len(edges.source) // at_once))
    bounds = np.linspace(0, phrases, stretches + 1).astype(np.int64).tolist()
    return sum(_distinct(edges, low, high, at_once) for low, high in pairwise(bounds))


def _distinct(edges: Edges, low: int, high: int, at_once: int) -> int:
    """How many pairs have their lower end in [low, high)."""
    found = []
    for begin in range(0, len(edges.source), at_once):
        source, target = edges.source[begin : begin + at_once], edges.target[begin : begin + at_once]
        one: Ints = np.minimum(source, target)
        here = (one >= low) & (one < high)
        found.append(one[here].astype(np.int64) << 32 | np.maximum(source, target)[here])
    keys = np.concatenate(found) if found else np.empty(0, np.int64)
    keys.sort()
    return int(np.count_nonzero(np.diff(keys, prepend=-1)))
