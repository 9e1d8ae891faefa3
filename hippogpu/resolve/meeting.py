"""Do two phrases stand in one passage, or next to one phrase? Answered for many pairs at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.tables import fact_pairs, user_pairs
from hippogpu.types import AnyFloats, Bools, Longs, Tables

# Places looked up at once: 32 MiB of keys.
_BLOCK = 1 << 22
# A phrase with more neighbours says nothing of what it stands beside.
FEW_NEIGHBOURS = 50


class Rows(NamedTuple):
    """Ascending values of each phrase, and all of them as ascending keys phrase · width + value."""

    indptr: Longs
    values: Longs
    keys: Longs
    width: int

    @property
    def sizes(self) -> Longs:
        """How many values each row has."""
        return np.diff(self.indptr)

    def common(self, one: Longs, other: Longs) -> Longs:
        """How many values the rows of the two phrases of each pair have in common. Costs the shorter row of each."""
        sizes = self.sizes
        turned = sizes[one] > sizes[other]
        few, many = np.where(turned, other, one), np.where(turned, one, other)
        ends = np.cumsum(sizes[few])
        met, start = np.zeros(len(few), np.int64), 0
        while start < len(few):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _BLOCK, side="right")))
            met[start:stop] = self._common(few[start:stop], many[start:stop])
            start = stop
        return met

    def _common(self, few: Longs, many: Longs) -> Longs:
        counts = self.indptr[few + 1] - self.indptr[few]
        pair = np.repeat(np.arange(len(few)), counts)
        place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts) + self.indptr[few][pair]
        keys = many[pair] * self.width + self.values[place]
        at = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        counted: Longs = np.bincount(pair[self.keys[at] == keys], minlength=len(few)).astype(np.int64)
        return counted


class Meeting(NamedTuple):
    """The passages of each phrase, and those of its neighbours by facts that have few neighbours themselves."""

    passages: Rows
    near: Rows

    def in_passage(self, one: Longs, other: Longs) -> Bools:
        """Whether a passage mentions both."""
        met: Bools = self.passages.common(one, other) > 0
        return met

    def share(self, one: Longs, other: Longs) -> AnyFloats:
        """The share of the passages of `one` that mention `other` too, in [0, 1]."""
        shares: AnyFloats = self.passages.common(one, other) / np.maximum(self.passages.sizes[one], 1)
        return shares

    def somehow(self, one: Longs, other: Longs) -> Bools:
        """Whether a passage mentions both, or both have a fact or user edge with one phrase of few neighbours."""
        return self.in_passage(one, other) | (self.near.common(one, other) > 0)


def meeting_of(tables: Tables) -> Meeting:
    """From mentions, facts and user edges."""
    phrases, passages = len(tables.phrases), len(tables.mentions)
    rows = np.repeat(np.arange(passages, dtype=np.int64), np.diff(tables.mentions.indptr))
    low, high, _ = fact_pairs(tables)
    own = user_pairs(tables.user_edges, passages).phrases
    one, other = np.concatenate([low, own.low]).astype(np.int64), np.concatenate([high, own.high]).astype(np.int64)
    beside = _rows(np.concatenate([one, other]), np.concatenate([other, one]), phrases, max(phrases, 1))
    few = np.diff(beside.indptr)[beside.values] <= FEW_NEIGHBOURS
    holder = np.repeat(np.arange(phrases, dtype=np.int64), np.diff(beside.indptr))
    return Meeting(
        _rows(tables.mentions.values.astype(np.int64), rows, phrases, max(passages, 1)),
        _rows(holder[few], beside.values[few], phrases, max(phrases, 1)),
    )


def _rows(holder: Longs, value: Longs, holders: int, width: int) -> Rows:
    keys = np.unique(holder * width + value)
    indptr = np.zeros(holders + 1, np.int64)
    np.cumsum(np.bincount(keys // width, minlength=holders), out=indptr[1:])
    return Rows(indptr, keys % width, keys, width)
