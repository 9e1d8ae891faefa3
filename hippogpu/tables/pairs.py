"""What tables say in pairs: user edges, mentions and statements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.types import AnyFloats, Bools, Edges, Facts, Ints, Longs, Ragged, Tables


class Pairs(NamedTuple):
    """Pairs (low, high) of int64 numbers with one float64 weight each."""

    low: Longs
    high: Longs
    weight: AnyFloats


class UserPairs(NamedTuple):
    """User edges by what they join, phrases counted from 0; a pair is there once for each of its edges."""

    passages: Pairs
    mentions: Pairs
    phrases: Pairs


def user_pairs(edges: Edges, passages: int) -> UserPairs:
    """The user edges between passages, from passages to phrases, and between phrases."""
    ends = edges.source.astype(np.int64), edges.target.astype(np.int64)
    is_phrase = [end >= passages for end in ends]
    low, high = (np.where(beyond, end - passages, end) for end, beyond in zip(ends, is_phrase, strict=True))
    family = is_phrase[0].astype(np.int8) + is_phrase[1]
    weight = edges.weight.astype(np.float64)
    return UserPairs(*(Pairs(low[family == one], high[family == one], weight[family == one]) for one in range(3)))


def mention_counts(tables: Tables) -> Ints:
    """In how many passages each phrase stands, (E,) int32."""
    return np.bincount(tables.mentions.values, minlength=len(tables.phrases)).astype(np.int32)


def fact_pairs(tables: Tables) -> tuple[Ints, Ints, Ints]:
    """Unordered phrase pairs that a fact joins, and how many statements do, in either order: (low, high, count)."""
    low = np.minimum(tables.facts.subject, tables.facts.object)[tables.statements.values]
    high = np.maximum(tables.facts.subject, tables.facts.object)[tables.statements.values]
    keep = low != high
    width = max(len(tables.phrases), 1)
    keys, counts = np.unique(low[keep].astype(np.int64) * width + high[keep], return_counts=True)
    return (keys // width).astype(np.int32), (keys % width).astype(np.int32), counts.astype(np.int32)


def stated_mentions(tables: Tables) -> Bools:
    """Which mentions a statement makes; the others come of user edges alone."""
    width = max(len(tables.phrases), 1)
    passages = np.repeat(np.arange(len(tables.mentions), dtype=np.int64), np.diff(tables.mentions.indptr))
    return np.isin(passages * width + tables.mentions.values, stated_pairs(tables.statements, tables.facts, width))


def stated_pairs(statements: Ragged, facts: Facts, width: int) -> Longs:
    """passage · width + phrase, for both phrases of each statement."""
    passages = np.repeat(np.arange(len(statements), dtype=np.int64), np.diff(statements.indptr))
    ends = np.concatenate([facts.subject[statements.values], facts.object[statements.values]])
    keys: Longs = np.concatenate([passages, passages]) * width + ends
    return keys


def count_fact_pairs(tables: Tables) -> int:
    """How many unordered pairs of two phrases a fact joins: the length of fact_pairs."""
    low = np.minimum(tables.facts.subject, tables.facts.object).astype(np.int64)
    keys = low * max(len(tables.phrases), 1) + np.maximum(tables.facts.subject, tables.facts.object)
    keys = keys[tables.facts.subject != tables.facts.object]
    keys.sort()
    return int(np.count_nonzero(np.diff(keys, prepend=-1)))
