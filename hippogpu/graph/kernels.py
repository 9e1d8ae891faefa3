"""Compiled loops of assemble: what joins two phrases, gathered by row, sorted and made one edge a pair.

An entry says of a row what joins it with another phrase: that phrase << 33 | kind << 31 | value. The kinds, in the
order in which they are joined: how many statements do (value: the number), the row found the other as a synonym, the
other found the row (value: the bits of the cosine, a float32 above 0), a user edge (value: its number).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from hippogpu.types import AnyFloats, Floats, Ints, Longs

Entries = NDArray[np.uint64]


class Sources(NamedTuple):
    """What edges between phrases come of: facts with how often each is stated, synonyms, the ends of user edges.

    cosines : the bits of each cosine
    """

    subject: Ints
    object: Ints
    stated: Ints
    source: Ints
    target: Ints
    cosines: Ints
    low: Longs
    high: Longs


class Rows(NamedTuple):
    """Rows of a matrix: row i is columns[indptr[i]:indptr[i+1]], with a weight each."""

    indptr: Longs
    columns: Ints
    weights: Floats


_STATED, _FOUND, _FOUND_BY, _OWN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_NODE, _KIND = np.uint64(33), np.uint64(31)
_KINDS, _VALUES = np.uint64(3), np.uint64(2**31 - 1)


@numba.njit(cache=True, nogil=True)
def entry_rows(of: Sources, phrases: int) -> Longs:
    """Where the entries of each phrase begin when all lie behind one another, (E + 1,) int64."""
    begins = np.zeros(phrases + 1, np.int64)
    for f in range(len(of.subject)):
        if of.subject[f] != of.object[f] and of.stated[f]:
            begins[of.subject[f] + 1] += 1
            begins[of.object[f] + 1] += 1
    for e in range(len(of.source)):
        begins[of.source[e] + 1] += 1
        begins[of.target[e] + 1] += 1
    for u in range(len(of.low)):
        begins[of.low[u] + 1] += 1
        begins[of.high[u] + 1] += 1
    for row in range(phrases):
        begins[row + 1] += begins[row]
    return begins


@numba.njit(cache=True, nogil=True)
def gather_entries(of: Sources, begins: Longs, first: int, last: int, entries: Entries) -> None:
    """Writes the entries of the rows [first, last) into a buffer, row behind row."""
    free = begins[first:last] - begins[first]
    for f in range(len(of.subject)):
        one, other, count = of.subject[f], of.object[f], of.stated[f]
        if one != other and count:
            if first <= one < last:
                _put(entries, free, one - first, other, _STATED, count)
            if first <= other < last:
                _put(entries, free, other - first, one, _STATED, count)
    for e in range(len(of.source)):
        one, other = of.source[e], of.target[e]
        if first <= one < last:
            _put(entries, free, one - first, other, _FOUND, of.cosines[e])
        if first <= other < last:
            _put(entries, free, other - first, one, _FOUND_BY, of.cosines[e])
    for u in range(len(of.low)):
        low, high = of.low[u], of.high[u]
        if first <= low < last:
            _put(entries, free, low - first, high, _OWN, u)
        if first <= high < last:
            _put(entries, free, high - first, low, _OWN, u)


@numba.njit(cache=True, nogil=True)
def _put(entries: Entries, free: Longs, row: int, node: int, kind: np.uint64, value: int) -> None:
    entries[free[row]] = np.uint64(node) << _NODE | kind << _KIND | np.uint64(value)
    free[row] += 1


@numba.njit(cache=True, nogil=True)
def mentioned_by(mentions: Rows, count: int) -> Rows:
    """The passages of each phrase, ascending, with the weights of the mentions: the transpose of (P, E) rows."""
    phrases = mentions.columns
    rows = np.zeros(count + 1, np.int64)
    for m in range(len(phrases)):
        rows[phrases[m] + 1] += 1
    for row in range(count):
        rows[row + 1] += rows[row]
    free = rows[:-1].copy()
    passages, given = np.empty(len(phrases), np.int32), np.empty(len(phrases), np.float32)
    for passage in range(len(mentions.indptr) - 1):
        for m in range(mentions.indptr[passage], mentions.indptr[passage + 1]):
            place = free[phrases[m]]
            passages[place], given[place] = passage, mentions.weights[m]
            free[phrases[m]] += 1
    return Rows(rows, passages, given)


@numba.njit(cache=True, nogil=True)
def passage_rows(linked: Rows, mentions: Rows, graph: Rows) -> int:
    """Writes the rows of the passages: those they are linked with, then their phrases. How many non-zeros they have."""
    at, passages = 0, len(mentions.indptr) - 1
    for passage in range(passages):
        for i in range(linked.indptr[passage], linked.indptr[passage + 1]):
            graph.columns[at], graph.weights[at] = linked.columns[i], linked.weights[i]
            at += 1
        for i in range(mentions.indptr[passage], mentions.indptr[passage + 1]):
            graph.columns[at], graph.weights[at] = mentions.columns[i] + passages, mentions.weights[i]
            at += 1
        graph.indptr[passage + 1] = at
    return at


@numba.njit(cache=True, nogil=True)
def phrase_rows(
    entries: Entries,
    begins: Longs,
    first: int,
    last: int,
    back: Rows,
    own_weights: AnyFloats,
    greatest: bool,
    at: int,
    graph: Rows,
) -> int:
    """Writes the rows [first, last) of phrases at a place of the graph; where the next one goes.

    back : the passages of each phrase
    """
    bits, passages = np.empty(1, np.int32), len(graph.indptr) - len(begins)
    for row in range(first, last):
        for i in range(back.indptr[row], back.indptr[row + 1]):
            graph.columns[at], graph.weights[at] = back.columns[i], back.weights[i]
            at += 1
        own = entries[begins[row] - begins[first] : begins[row + 1] - begins[first]]
        own.sort()
        i = 0
        while i < len(own):
            node, end = own[i] >> _NODE, i + 1
            while end < len(own) and own[end] >> _NODE == node:
                end += 1
            graph.columns[at] = passages + np.int64(node)
            graph.weights[at] = _weight(own, i, end, own_weights, greatest, bits)
            at += 1
            i = end
        graph.indptr[passages + row + 1] = at
    return at


@numba.njit(cache=True, nogil=True)
def _weight(entries: Entries, at: int, end: int, own_weights: AnyFloats, greatest: bool, bits: Ints) -> float:
    """The weight of the pair of these sorted entries. bits: room for one number."""
    stated, found, found_by = 0.0, 0.0, 0.0
    while at < end and entries[at] >> _KIND & _KINDS != _OWN:
        kind, bits[0] = entries[at] >> _KIND & _KINDS, entries[at] & _VALUES
        if kind == _STATED:
            stated += bits[0]
        elif kind == _FOUND:
            found = max(found, np.float64(bits.view(np.float32)[0]))
        else:
            found_by = max(found_by, np.float64(bits.view(np.float32)[0]))
        at += 1
    if greatest:
        weight = max(stated, found, found_by)
    else:
        weight = (found if found else stated) + (found_by if found_by else stated)
    for i in range(at, end):
        given = own_weights[entries[i] & _VALUES]
        weight = max(weight, given) if greatest else weight + given
    return weight
