"""Records to tables: the distinct phrases and facts of a corpus, and which passage states what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hippogpu.config import FactText, IndexConfig
from hippogpu.text import TextRule, normalise, readable
from hippogpu.types import AnyFloats, Bools, Edges, Facts, Ints, Longs, Ragged, Record, Tables, UserEdge

Key = tuple[str, str, str]


class Tabulated(NamedTuple):
    """The tables of a corpus, and how many triples were left out, by reason."""

    tables: Tables
    dropped: Mapping[str, int]


def tabulate(
    records: Iterable[Record | None],
    config: IndexConfig,
    *,
    edges: Sequence[UserEdge] = (),
    rows: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Tabulated:
    """The tables of a corpus: one record a passage, in passage order; None where there is none yet.

    edges : user edges whose phrases are normalised and not empty · rows: the passages each of their ids stands for
    Phrases and facts are sorted by code point, so the result depends on the records alone and not on their history.
    """
    stated, texts, dropped = _statements(records, config)
    facts = sorted(texts)
    named = {phrase for edge in edges for phrase in edge.phrases}
    phrases = sorted(named.union(phrase for subject, _, object_ in facts for phrase in (subject, object_)))
    phrase_id = {phrase: number for number, phrase in enumerate(phrases)}
    fact_id = {fact: number for number, fact in enumerate(facts)}
    subject = np.fromiter((phrase_id[fact[0]] for fact in facts), np.int32, len(facts))
    object_ = np.fromiter((phrase_id[fact[2]] for fact in facts), np.int32, len(facts))
    statements = _ragged([[fact_id[fact] for fact in row] for row in stated])
    table = Facts(subject, object_, tuple(fact[1] for fact in facts), tuple(texts[fact] for fact in facts))
    user_edges = _placed(edges, rows, {phrase: len(stated) + number for phrase, number in phrase_id.items()})
    mentions = _mentions(statements, table, user_edges, width=max(len(phrases), 1))
    return Tabulated(Tables(tuple(phrases), table, mentions, statements, user_edges), dropped)


def _statements(
    records: Iterable[Record | None], config: IndexConfig
) -> tuple[list[list[Key]], dict[Key, str], Counter[str]]:
    """The normalised triples of each passage, the text to encode for each distinct one, and what was dropped."""
    rows: list[list[Key]] = []
    texts: dict[Key, str] = {}
    dropped: Counter[str] = Counter()
    seen = _Normaliser(config.text_rule)
    for record in records:
        row: list[Key] = []
        for triple in record.triples if record else ():
            key = (seen[triple.subject], seen[triple.predicate], seen[triple.object])
            if not config.keep_empty and not (key[0] and key[2]):
                dropped["subject or object has no letter or number"] += 1
                continue
            row.append(key)
            if key not in texts:
                texts[key] = fact_text(key, config.fact_text) if triple.text is None else readable(triple.text)
        rows.append(row)
    return rows, texts, dropped


class _Normaliser(dict[str, str]):
    """Normalised texts, each worked out once."""

    def __init__(self, rule: TextRule) -> None:
        self.rule: TextRule = rule

    def __missing__(self, text: str) -> str:
        self[text] = value = normalise(text, self.rule)
        return value


def fact_text(fact: Key, rule: FactText) -> str:
    """What is encoded for a normalised triple: its three fields in a row, or the text of the Python tuple."""
    return str(fact) if rule == "tuple" else " ".join(fact)


def _ragged(rows: Sequence[Sequence[int]]) -> Ragged:
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    values = np.fromiter((value for row in rows for value in row), np.int32, int(indptr[-1]))
    return Ragged(indptr, values)


def _placed(edges: Sequence[UserEdge], rows: Mapping[str, Sequence[int]], nodes: Mapping[str, int]) -> Edges:
    """User edges as pairs of nodes, sorted: every passage that one end stands for with every one of the other.

    A passage that would be joined with itself (under two of its ids, or as a chunk with its own whole) is not.
    """
    found: list[tuple[int, int, float]] = []
    for edge in edges:
        ends: list[Sequence[int]] = [rows[id_] for id_ in edge.passages]
        ends.extend([nodes[phrase]] for phrase in edge.phrases)
        first, second = ends
        pairs = {(min(one, other), max(one, other)) for one in first for other in second if one != other}
        found.extend((low, high, edge.weight) for low, high in pairs)
    low, high, weight = np.array(sorted(found), np.float64).reshape(-1, 3).T
    return Edges(low.astype(np.int32), high.astype(np.int32), weight.astype(np.float32))


def _mentions(statements: Ragged, facts: Facts, user_edges: Edges, *, width: int) -> Ragged:
    """The distinct phrases of each passage's statements and user edges, ascending."""
    passages = len(statements)
    own = user_pairs(user_edges, passages).mentions
    keys = np.union1d(_stated(statements, facts, width), own.low * width + own.high)
    indptr = np.zeros(passages + 1, np.int64)
    np.cumsum(np.bincount(keys // width, minlength=passages), out=indptr[1:])
    return Ragged(indptr, (keys % width).astype(np.int32))


def _stated(statements: Ragged, facts: Facts, width: int) -> Longs:
    """passage · width + phrase, for both phrases of each statement."""
    passages = np.repeat(np.arange(len(statements), dtype=np.int64), np.diff(statements.indptr))
    ends = np.concatenate([facts.subject[statements.values], facts.object[statements.values]])
    keys: Longs = np.concatenate([passages, passages]) * width + ends
    return keys


def stated_mentions(tables: Tables) -> Bools:
    """Which mentions a statement makes; the others come of user edges alone."""
    width = max(len(tables.phrases), 1)
    passages = np.repeat(np.arange(len(tables.mentions), dtype=np.int64), np.diff(tables.mentions.indptr))
    return np.isin(passages * width + tables.mentions.values, _stated(tables.statements, tables.facts, width))


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
