"""An index folder of any size, by the store's own writers: python -m bench.synthetic_index DIR [--passages P]

Everything that `hippogpu verify --full` checks holds: phrases and facts are sorted and distinct, every fact is stated,
every phrase is named, mentions and graph follow from the facts. What is invented is the content: phrases of three words
out of a list, facts by a draw, vectors of random direction, and synonyms that are neighbours in the alphabet, whose
cosines are invented too. For times and memory of opening, verifying and serving; never for retrieval quality.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from hippogpu.config import IndexConfig
from hippogpu.graph import assemble
from hippogpu.index.counting import counts_of
from hippogpu.store import (
    Encoder,
    Manifest,
    Passages,
    passages_of,
    publish,
    write_graph,
    write_passages,
    write_tables,
    write_vectors,
    write_words,
)
from hippogpu.text import identity
from hippogpu.types import Edges, Facts, Floats, Longs, Ragged, Tables
from hippogpu.words import count_words

PHRASES, FACTS, SYNONYM_REACH = 8.6, 9.0, 3
"""Phrases and facts a passage; each phrase is a synonym of so many before and behind it."""

_TITLE_SHARE, _POPULARITY = 0.6, 3.0
_PREDICATES = ("belongs to", "built", "died in", "is a", "knew", "led", "lies in", "married", "ran on", "won", "wrote")
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "ki", "lo", "mu", "ne", "pa", "ri", "so", "tu", "va", "we")
_ROWS = 1 << 16

Random = np.random.Generator


class Stated(NamedTuple):
    """Distinct facts in order, as numbers, and the passage that states each."""

    subject: Longs
    predicate: Longs
    object: Longs
    passage: Longs


def words() -> list[str]:
    """4096 words of three syllables, ascending."""
    return sorted(a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES)


def phrase_texts(count: int, random: Random) -> list[str]:
    """Distinct normalised phrases of three words, ascending by code point: a space comes before every letter."""
    list_, base = pa.array(words()), len(_SYLLABLES) ** 3
    codes = np.empty(0, np.int64)
    while len(codes) < count:
        codes = np.union1d(codes, random.integers(base**3, size=count))
    codes = np.sort(random.choice(codes, count, replace=False))
    parts = [list_.take(pa.array(codes // base**power % base)) for power in (2, 1, 0)]
    return pc.binary_join_element_wise(*parts, " ").to_pylist()


def stated_facts(passages: int, phrases: int, facts: int, random: Random) -> Stated:
    """Facts that name every phrase, each stated by one passage; a passage's are mostly about its title."""
    ends = np.concatenate([random.permutation(phrases), _popular(max(facts - phrases, 0), phrases, random)])
    passage = random.integers(passages, size=len(ends))
    title = random.integers(phrases, size=passages)
    about_title = random.random(len(ends)) < _TITLE_SHARE
    subject = np.where(about_title, title[passage], _popular(len(ends), phrases, random))
    predicate = random.integers(len(_PREDICATES), size=len(ends))
    keys, first = np.unique((subject * len(_PREDICATES) + predicate) * phrases + ends, return_index=True)
    rest, object_ = np.divmod(keys, phrases)
    return Stated(rest // len(_PREDICATES), rest % len(_PREDICATES), object_, passage[first])


def _popular(count: int, phrases: int, random: Random) -> Longs:
    """Phrases by popularity: the one of rank r is drawn with density r^(-2/3)."""
    rank = (phrases * random.random(count) ** _POPULARITY).astype(np.int64)
    number: Longs = random.permutation(phrases)[rank]
    return number


def tables_of(passages: int, random: Random) -> Tables:
    """The tables of so many passages."""
    phrases = phrase_texts(round(PHRASES * passages), random)
    stated = stated_facts(passages, len(phrases), round(FACTS * passages), random)
    names, predicates = pa.array(phrases), pa.array(_PREDICATES).take(pa.array(stated.predicate))
    ends = [names.take(pa.array(numbers)) for numbers in (stated.subject, stated.object)]
    texts = pc.binary_join_element_wise(ends[0], predicates, ends[1], " ").to_pylist()
    subject, object_ = stated.subject.astype(np.int32), stated.object.astype(np.int32)
    order = np.argsort(stated.passage, kind="stable")
    pairs = np.concatenate([stated.passage * len(phrases) + end for end in (stated.subject, stated.object)])
    mentions = np.unique(pairs)
    return Tables(
        phrases,
        Facts(subject, object_, predicates.to_pylist(), texts),
        _ragged(mentions // len(phrases), mentions % len(phrases), passages),
        _ragged(stated.passage[order], order, passages),
    )


def _ragged(rows: Longs, values: Longs, count: int) -> Ragged:
    indptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=indptr[1:])
    return Ragged(indptr, values.astype(np.int32))


def synonyms_of(phrases: int, random: Random) -> Edges:
    """Each phrase with its neighbours in the alphabet, sorted by source, then falling cosine."""
    steps = [step for step in range(-SYNONYM_REACH, SYNONYM_REACH + 1) if step]
    source = np.repeat(np.arange(phrases), len(steps))
    target = source + np.tile(steps, phrases)
    inside = (target >= 0) & (target < phrases)
    source, target = source[inside], target[inside]
    cosine = 0.8 + 0.2 * random.random(SYNONYM_REACH * phrases + phrases)
    weight = cosine[np.minimum(source, target) * SYNONYM_REACH + np.abs(source - target) - 1]
    order = np.lexsort((target, -weight, source))
    return Edges(source[order].astype(np.int32), target[order].astype(np.int32), weight[order].astype(np.float32))


def passages_for(tables: Tables) -> Passages:
    """Passages with ids and metadata of a user's, whose text is what they state."""
    count, facts = len(tables.mentions), tables.facts.text
    titles = [f"Page {number}" for number in range(count)]
    rows = (tables.statements.row(number).tolist() for number in range(count))
    texts = [". ".join(facts[fact] for fact in row) for row in rows]
    return passages_of(
        [f"https://wiki.example/page/{number:08d}" for number in range(count)],
        titles,
        [json.dumps({"page": number, "tags": ["synthetic", str(number % 7)]}) for number in range(count)],
        np.arange(count, dtype=np.int32),
        wholes=[identity(title, text) for title, text in zip(titles, texts, strict=True)],
        extractors=["synthetic"] * count,
    )


def unit_rows(rows: int, width: int, random: Random) -> Floats:
    """Vectors of random direction, (rows, width) float32, made a block at a time."""
    made = np.empty((rows, width), np.float32)
    for first in range(0, rows, _ROWS):
        block = made[first : first + _ROWS]
        random.standard_normal(out=block, dtype=np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return made


def write_index(root: Path, passages: int, *, width: int = 384, seed: int = 0) -> Manifest:
    """Writes generation 1 of a new index; the same for the same seed."""
    random, config = np.random.default_rng(seed), IndexConfig()
    tables = tables_of(passages, random)
    synonyms = synonyms_of(len(tables.phrases), random)
    graph = assemble(tables, synonyms, config.edge_rule)
    stored = passages_for(tables)
    sizes = {"passage": passages, "phrase": len(tables.phrases), "fact": len(tables.facts)}
    files = {
        **write_passages(root, stored),
        **write_tables(root, tables),
        **write_vectors(root, **{name: unit_rows(rows, width, random) for name, rows in sizes.items()}),
        **write_graph(root, graph, synonyms),
        **write_words(root, count_words(stored.wholes, stored.first_titles())),
    }
    counts = counts_of(stored, tables, synonyms, graph, names=None)
    encoder = Encoder(f"hashing-{width}", width, f"hashing:{width}")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = Manifest(1, now, version("hippogpu"), config, encoder, counts, files)
    publish(root, manifest)
    return manifest


def main(
    folder: Path,
    passages: Annotated[int, typer.Option(help="How many passages.")] = 100_000,
    width: Annotated[int, typer.Option(help="Length of a vector.")] = 384,
    seed: Annotated[int, typer.Option(help="Another seed gives another index.")] = 0,
) -> None:
    """Write an index of invented content into a new folder."""
    if folder.exists():
        raise typer.BadParameter(f"'{folder}' is there already. Name a new folder.")
    manifest = write_index(folder, passages, width=width, seed=seed)
    size = sum(entry.bytes for entry in manifest.files.values())
    typer.echo(json.dumps({"folder": str(folder), "bytes": size, **manifest.counts}))


if __name__ == "__main__":
    typer.run(main)
