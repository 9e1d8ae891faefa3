"""Phrases, facts and their counts under both profiles, and where the two differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.checks import Check, equal
from bench.oracle.data import Oracle, Source
from hippogpu.config import PROFILES, IndexConfig
from hippogpu.openie import ReplayExtractor
from hippogpu.tables import fact_pairs, tabulate
from hippogpu.text import normalise
from hippogpu.types import Record, Tables

COUNTED = ("phrases", "facts", "pairs", "pairs_again", "mentions")
EXPECTED = {
    "oracle": (16235, 17036, 16509, 582, 19755),
    "default": (16228, 17033, 16505, 585, 19754),
    "default, empty phrase kept": (16229, 17034, 16506, 585, 19755),
}
CONFIGS: Mapping[str, IndexConfig] = {
    "oracle": PROFILES["oracle"],
    "default": PROFILES["default"],
    "default, empty phrase kept": replace(PROFILES["default"], keep_empty=True),
}


def compare_tables(oracle: Oracle, source: Source) -> tuple[list[Check], dict[str, Any]]:
    """Counts of each profile against those expected; phrases and facts of the oracle profile text for text."""
    records = list(ReplayExtractor(source.openie).extract(source.passages))
    tables = {name: tabulate(records, config).tables for name, config in CONFIGS.items()}
    checks = [equal(f"{name}: {', '.join(COUNTED)}", counts(tables[name]), EXPECTED[name]) for name in CONFIGS]
    ours = tables["oracle"]
    checks.append(equal("phrases equal to the oracle's, in order", list(ours.phrases) == oracle.phrases, True))
    checks.append(equal("facts equal to the oracle's, in order", facts_of(ours) == oracle.facts, True))
    measured = {name: dict(zip(COUNTED, counts(tables[name]), strict=True)) for name in CONFIGS}
    return checks, {"counts": measured, "differences": differences(records)}


def counts(tables: Tables) -> tuple[int, ...]:
    """Phrases, facts, unordered fact pairs, those stated more than once, mentions."""
    low, _, stated = fact_pairs(tables)
    again = int(np.count_nonzero(stated > 1))
    return len(tables.phrases), len(tables.facts), len(low), again, len(tables.mentions.values)


def facts_of(tables: Tables) -> list[tuple[str, str, str]]:
    """The normalised triples in the table's order."""
    rows = zip(tables.facts.subject, tables.facts.predicate, tables.facts.object, strict=True)
    return [(tables.phrases[subject], predicate, tables.phrases[object_]) for subject, predicate, object_ in rows]


def differences(records: Sequence[Record]) -> dict[str, Any]:
    """What the default text rule merges, splits and drops of what the oracle's keeps, and how many texts it changes."""
    raw = {text for record in records for triple in record.triples for text in (triple.subject, triple.object)}
    phrases = {(normalise(text, "ascii"), normalise(text, "unicode")) for text in raw}
    triples = {triple[:3] for record in records for triple in record.triples}
    facts = {
        (tuple(normalise(part, "ascii") for part in triple), tuple(normalise(part, "unicode") for part in triple))
        for triple in triples
    }
    return {
        "phrases_merged": _merged((new, old) for old, new in phrases),
        "phrases_split": _merged(phrases),
        "phrases_spelled_otherwise": len({old for old, new in phrases if old != new}),
        "phrases_with_letters_beyond_ascii": len({new for _, new in phrases if not new.isascii()}),
        "facts_merged": _merged((" | ".join(new), " | ".join(old)) for old, new in facts),
        "facts_split": _merged((" | ".join(old), " | ".join(new)) for old, new in facts),
        "facts_dropped": sorted(" | ".join(old) for old, new in facts if not (new[0] and new[2])),
    }


def _merged(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The keys that stand with several values, and those values."""
    groups: dict[str, set[str]] = defaultdict(set)
    for key, value in pairs:
        groups[key].add(value)
    return {key: sorted(values) for key, values in sorted(groups.items()) if len(values) > 1}
