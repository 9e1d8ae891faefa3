"""Records to tables: the distinct phrases and facts of a corpus, and which passage states what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.config import FactText, IndexConfig
from hippogpu.text import TextRule, normalise, readable
from hippogpu.types import Facts, Ints, Ragged, Record, Tables

Key = tuple[str, str, str]


class Tabulated(NamedTuple):
    """The tables of a corpus, and how many triples were left out, by reason."""

    tables: Tables
    dropped: Mapping[str, int]


def tabulate(records: Iterable[Record | None], config: IndexConfig) -> Tabulated:
    """The tables of a corpus: one record a passage, in passage order; None where there is none yet.

    Phrases and facts are sorted by code point, so the result depends on the records alone and not on their history.
    """
    rows, texts, dropped = _statements(records, config)
    facts = sorted(texts)
    phrases = sorted({phrase for subject, _, object_ in facts for phrase in (subject, object_)})
    phrase_id = {phrase: number for number, phrase in enumerate(phrases)}
    fact_id = {fact: number for number, fact in enumerate(facts)}
    subject = np.fromiter((phrase_id[fact[0]] for fact in facts), np.int32, len(facts))
    object_ = np.fromiter((phrase_id[fact[2]] for fact in facts), np.int32, len(facts))
    statements = _ragged([[fact_id[fact] for fact in row] for row in rows])
    table = Facts(subject, object_, tuple(fact[1] for fact in facts), tuple(texts[fact] for fact in facts))
    tables = Tables(tuple(phrases), table, _mentions(statements, subject, object_), statements)
    return Tabulated(tables, dropped)


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


def _mentions(statements: Ragged, subject: Ints, object_: Ints) -> Ragged:
    """The distinct phrases of each passage's statements, ascending."""
    passages = np.repeat(np.arange(len(statements)), np.diff(statements.indptr))
    width = int(max(subject.max(initial=0), object_.max(initial=0))) + 1
    ends = np.concatenate([subject[statements.values], object_[statements.values]])
    keys = np.unique(np.concatenate([passages, passages]) * np.int64(width) + ends)
    indptr = np.zeros(len(statements) + 1, np.int64)
    np.cumsum(np.bincount(keys // width, minlength=len(statements)), out=indptr[1:])
    return Ragged(indptr, (keys % width).astype(np.int32))


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
