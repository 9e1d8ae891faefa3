"""Phrases with vectors, and the synonyms by the definition: every pair in float64."""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from hippogpu.config import IndexConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.precision import Vectors, float_rows
from hippogpu.text import alphanumerics, normalise
from hippogpu.types import Edges, Floats


def units(rows: Any) -> Floats:
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def cloud(count: int, *, seed: int = 0) -> Floats:
    """Vectors in a narrow cone: nearly all pairs are near 0.8."""
    rng = np.random.default_rng(seed)
    return units(rng.normal(1.0, 0.5, (count, 16)))


def circles(count: int, *, of: int = 8, seed: int = 0, width: int = 24) -> Floats:
    """Vectors in circles of a few that are near to one another, in any order."""
    rng = np.random.default_rng(seed)
    middles = units(rng.normal(size=(-(-count // of), width)))
    return units(np.repeat(middles, of, axis=0)[rng.permutation(count)] + 0.08 * rng.normal(size=(count, width)))


def names(count: int) -> list[str]:
    return [f"name {i:05}" for i in range(count)]


@cache
def demo_phrases() -> tuple[list[str], Floats]:
    """The distinct subjects and objects of the shipped example, with vectors of their letters."""
    raw = (files("hippogpu.demo") / "data" / "openie.jsonl.gz").read_bytes()
    records = [json.loads(line) for line in gzip.decompress(raw).splitlines()]
    texts = {normalise(str(term)) for r in records for triple in r["triples"] for term in (triple[0], triple[-1])}
    phrases = sorted(texts - {""})
    return phrases, HashingEmbedder(96).encode(phrases)


def by_definition(phrases: list[str], vectors: Vectors, config: IndexConfig) -> Edges:
    """The edges from all cosines in float64, pair by pair."""
    rows = float_rows(vectors, slice(None)).astype(np.float64)
    parts = []
    for source, phrase in enumerate(phrases):
        if alphanumerics(phrase, config.text_rule) < 3:
            continue
        cosine = np.einsum("ij,ij->i", np.broadcast_to(rows[source], rows.shape), rows)
        there = [t for t in np.flatnonzero(cosine >= config.synonym_threshold) if t != source and phrases[t]]
        best = sorted(there, key=lambda t: (-cosine[t], t))[: config.synonym_cap]
        parts += [(source, target, cosine[target]) for target in best]
    columns = list(zip(*parts, strict=True)) or [(), (), ()]
    return Edges(np.array(columns[0], np.int32), np.array(columns[1], np.int32), np.array(columns[2], np.float32))


def same(one: Edges, other: Edges) -> bool:
    """Whether they are the same, array for array."""
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))
