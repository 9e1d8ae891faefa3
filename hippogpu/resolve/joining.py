"""All rules over an index: typed edges between phrases that name one thing in another way. Nothing is ever merged."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.config import IndexConfig
from hippogpu.resolve.acronyms import acronyms
from hippogpu.resolve.aliases import aliases
from hippogpu.resolve.dates import same_dates
from hippogpu.resolve.initials import person_names
from hippogpu.resolve.meeting import meeting_of
from hippogpu.resolve.persons import given_names
from hippogpu.resolve.surnames import surnames
from hippogpu.resolve.titles import articles, brackets, honorifics
from hippogpu.resolve.values import Found, Phrases
from hippogpu.text import TextRule, normalise
from hippogpu.types import Bools, Edges, Floats, Longs, Tables

EVIDENCE = {
    "initials": "initials of the same name",
    "middle": "a name with and without what stands in its middle",
    "cut": "a given name and the beginning of it, in one passage",
    "date": "one day",
    "article": "a title with and without its article",
    "bracket": "a title with and without its bracket",
    "honorific": "a name with and without a style",
    "acronym": "letters and what they stand for",
    "surname": "a surname and the only full name that ends so, in one passage",
    "alias": "a fact says that both are names of one thing",
}
KINDS = tuple(EVIDENCE)
"""By what evidence two phrases are joined; the place of each is its bit in NameEdges.kinds."""
MOST_EDGES = 50
"""Most that one phrase has of one kind; the heaviest are kept, ties by lower number of the other phrase."""
_BRACKET = re.compile(r"(?P<base>[^()\n]*[^()\s])\s+\((?P<qualifier>[^()\n]+)\)")
_LONGEST_HEAD = 300


class NameEdges(NamedTuple):
    """Pairs of phrases that name one thing, each once, ascending: source < target, weight in (0, 1], kinds as bits.

    counts  pairs by kind · refused: what was left alone, by "kind: reason", and what a cap cut
    """

    edges: Edges
    kinds: Longs
    counts: Mapping[str, int]
    refused: Mapping[str, int]


def find_names(tables: Tables, wholes: Sequence[str], config: IndexConfig) -> NameEdges:
    """The edges of every rule; of a pair that several rules join, the greatest weight. A function of its arguments.

    wholes : the identity of each passage, for titles that end in a bracket
    Stored graphs are verified against it: rules that find anything else need another value of the setting `resolve`.
    """
    phrases = phrases_of(tables, wholes, config.text_rule)
    found, width = _by_kind(phrases, tables), max(len(phrases.words), 1)
    kept = [_distinct(found[kind], width) for kind in KINDS]
    within = [_within_cap(one.keys // width, one.keys % width, one.weights) for one in kept]
    refused = {f"{kind}: {why}": count for kind in KINDS for why, count in found[kind].refused.items() if count}
    cut = {kind: int((~which).sum()) for kind, which in zip(KINDS, within, strict=True)}
    refused |= {f"{kind}: more than {MOST_EDGES} of one phrase": count for kind, count in cut.items() if count}
    kept = [_Kept(one.keys[which], one.weights[which]) for one, which in zip(kept, within, strict=True)]
    counts = {kind: len(one.keys) for kind, one in zip(KINDS, kept, strict=True)}
    return NameEdges(*_together(kept, width), counts, refused)


class _Kept(NamedTuple):
    """Pairs of one kind as ascending keys low · width + high, each once, with their weights."""

    keys: Longs
    weights: Floats


def _distinct(found: Found, width: int) -> _Kept:
    """Each pair once, with its greatest weight."""
    keys = np.minimum(found.one, found.other) * width + np.maximum(found.one, found.other)
    weights = found.weight.astype(np.float32)
    order = np.lexsort((-weights, keys))
    order = order[np.diff(keys[order], prepend=-1) > 0]
    return _Kept(keys[order], weights[order])


def _together(kept: Sequence[_Kept], width: int) -> tuple[Edges, Longs]:
    """The pairs of all kinds, each once with its greatest weight, and its kinds as bits."""
    pairs, inverse = np.unique(np.concatenate([one.keys for one in kept]), return_inverse=True)
    weight, bits = np.zeros(len(pairs), np.float32), np.zeros(len(pairs), np.int64)
    np.maximum.at(weight, inverse, np.concatenate([one.weights for one in kept]))
    np.bitwise_or.at(bits, inverse, np.repeat([1 << place for place in range(len(kept))], [len(k.keys) for k in kept]))
    return Edges((pairs // width).astype(np.int32), (pairs % width).astype(np.int32), weight), bits


def _by_kind(phrases: Phrases, tables: Tables) -> dict[str, Found]:
    return {
        **person_names(phrases),
        "date": same_dates(phrases),
        "article": articles(phrases),
        "bracket": brackets(phrases),
        "honorific": honorifics(phrases),
        "acronym": acronyms(phrases),
        "surname": surnames(phrases),
        "alias": aliases(phrases, tables.facts),
    }


def _within_cap(low: Longs, high: Longs, weight: Floats) -> Bools:
    """Which pairs are among the MOST_EDGES heaviest of both their ends."""
    within = np.ones(len(low), bool)
    for one, other in ((low, high), (high, low)):
        order = np.lexsort((other, -weight, one))
        first = np.searchsorted(one[order], one[order])
        within[order[np.arange(len(order)) - first >= MOST_EDGES]] = False
    return within


def phrases_of(tables: Tables, wholes: Sequence[str], rule: TextRule) -> Phrases:
    """What the rules see of an index."""
    texts = tuple(tables.phrases)
    words = [tuple(text.split()) for text in texts]
    bracketed, bare = set[tuple[str, str]](), set[str]()
    for whole in wholes:
        head = whole.split("\n", 1)[0]
        if len(head) > _LONGEST_HEAD:
            continue
        match = _BRACKET.fullmatch(head.strip())
        if match and match["qualifier"] != "disambiguation":
            bracketed.add((normalise(head, rule), normalise(match["base"], rule)))
        else:
            bare.add(normalise(head, rule))
    return Phrases(
        texts,
        words,
        {text: number for number, text in enumerate(texts)},
        meeting_of(tables),
        given_names(texts, words, tables.facts),
        sorted(bracketed),
        frozenset(bare),
    )


def with_names(synonyms: Edges, names: NameEdges | None) -> Edges:
    """Synonyms and edges of names, for graph.assemble: both directions of a name, each ordered pair once.

    Where both join an ordered pair, the greater weight.
    """
    if names is None or not len(names.edges.source):
        return synonyms
    source = np.concatenate([synonyms.source, names.edges.source, names.edges.target]).astype(np.int64)
    target = np.concatenate([synonyms.target, names.edges.target, names.edges.source]).astype(np.int64)
    weight = np.concatenate([synonyms.weight, names.edges.weight, names.edges.weight])
    order = np.lexsort((-weight, target, source))
    first = (np.diff(source[order], prepend=-1) != 0) | (np.diff(target[order], prepend=-1) != 0)
    kept = order[first]
    return Edges(source[kept].astype(np.int32), target[kept].astype(np.int32), weight[kept])


def names_for(tables: Tables, wholes: Sequence[str], config: IndexConfig) -> NameEdges | None:
    """find_names where the settings ask for it, else None."""
    return find_names(tables, wholes, config) if config.resolve == "names" else None


def linked(tables: Tables, synonyms: Edges, wholes: Sequence[str], config: IndexConfig) -> Edges:
    """The edges between phrases that graph.assemble takes: synonyms, and names where the settings ask for them."""
    return with_names(synonyms, names_for(tables, wholes, config))


def kinds_between(names: NameEdges, one: int, other: int) -> tuple[str, ...]:
    """Why two phrases are joined: the kinds of evidence, () where no rule joins them."""
    low, high = min(one, other), max(one, other)
    first, last = (
        np.searchsorted(names.edges.source, np.int32(low)),
        np.searchsorted(names.edges.source, np.int32(low + 1)),
    )
    place = int(first + np.searchsorted(names.edges.target[first:last], np.int32(high)))
    if place >= last or names.edges.target[place] != high:
        return ()
    bits = int(names.kinds[place])
    return tuple(kind for number, kind in enumerate(KINDS) if bits >> number & 1)


def why_joined(names: NameEdges, phrases: Sequence[str], one: str, other: str) -> tuple[str, ...]:
    """The same for two phrases by their texts, a line for each kind; () too where the index has no such phrase."""
    numbers = [bisect_left(phrases, text) for text in (one, other)]
    if any(
        number == len(phrases) or phrases[number] != text for number, text in zip(numbers, (one, other), strict=True)
    ):
        return ()
    return tuple(f"{kind}: {EVIDENCE[kind]}" for kind in kinds_between(names, *numbers))
