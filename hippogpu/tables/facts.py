"""Statements, as numbers of phrases and predicates, made distinct facts in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hippogpu.types import Ints, Longs

# Of a statement while it is sorted: its place, two keys, their order, and what is made of them.
_SORTING_BYTES = 64
_CHUNK = 1 << 22


class FactBlock(NamedTuple):
    """Distinct facts in order. first : the first statement of each."""

    subject: Ints
    predicate: Ints
    object: Ints
    first: Longs


def fact_blocks(
    subject: Ints, predicate: Ints, object_: Ints, numbers: Ints, *, phrases: int, budget_bytes: int
) -> Iterator[FactBlock]:
    """The distinct facts of statements, sorted by subject, predicate and object, in blocks of subjects.

    numbers : (S,) filled in with the fact of each statement
    Phrases and predicates are numbered by code point, so their numbers sort as their texts do.
    """
    made = 0
    for low, high in _ranges(subject, phrases, budget_bytes // _SORTING_BYTES):
        chosen = _between(subject, low, high)
        first, second = subject[chosen], predicate[chosen].astype(np.int64) * phrases + object_[chosen]
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        new = np.ones(len(order), bool)
        new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        # The sort is stable and places ascend, so a fact's first statement is the first of its own.
        at = chosen[order]
        numbers[at] = made + np.cumsum(new) - 1
        made += int(new.sum())
        one, other = np.divmod(second[new], max(phrases, 1))
        yield FactBlock(first[new], one.astype(np.int32), other.astype(np.int32), at[new])


def _ranges(subject: Ints, phrases: int, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of phrases that are the subject of at most so many statements together; one of more is alone."""
    if len(subject) <= most:
        yield 0, phrases
        return
    counts = np.zeros(phrases + 1, np.int64)
    for begin in range(0, len(subject), _CHUNK):
        counts[1:] += np.bincount(subject[begin : begin + _CHUNK], minlength=phrases)
    ends, low = np.cumsum(counts), 0
    while low < phrases:
        high = max(int(np.searchsorted(ends, ends[low] + most, side="right")) - 1, low + 1)
        yield low, high
        low = high


def _between(subject: Ints, low: int, high: int) -> Longs:
    """The places of the statements about phrases low to high − 1, ascending."""
    found = []
    for begin in range(0, len(subject), _CHUNK):
        part = subject[begin : begin + _CHUNK]
        found.append(np.flatnonzero((part >= low) & (part < high)) + begin)
    return np.concatenate(found) if found else np.empty(0, np.int64)
