"""A text's place by its content: 128-bit keys in sorted arrays, 24 bytes a text, no Python object each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.types import Longs

Keys = NDArray[np.uint64]
"""(rows, 2): the halves of each text's key."""

KEY_BYTES = 16
_BLOCK_TEXTS = 1 << 16
_FOUND_ROWS = 1 << 20


def keys_of(texts: Iterable[str], count: int) -> Keys:
    """The key of each of so many texts, (count, 2) uint64: 128 bits of BLAKE2b.

    A key stands for its text: among a billion texts two share one by chance with probability 2⁻⁶⁹, and who wants two
    that do has some 2⁶⁴ texts to try.
    """
    keys, some, first = np.empty((count, 2), np.uint64), iter(texts), 0
    while block := list(islice(some, _BLOCK_TEXTS)):
        keys[first : first + len(block)] = keys_of_block(block)
        first += len(block)
    return keys


def keys_of_block(texts: Sequence[str]) -> Keys:
    """As keys_of, for texts at hand."""
    digests = b"".join(blake2b(t.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest() for t in texts)
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


class KeyPlaces(NamedTuple):
    """Places by key, sorted by both halves of the key; of equal keys the one that was given last counts."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    place: Longs

    def find(self, keys: Keys) -> Longs:
        """The place of each key, (rows,) int64; −1 for one that is not there."""
        found = np.full(len(keys), -1, np.int64)
        for first in range(0, len(keys), _FOUND_ROWS):
            self._find(keys[first : first + _FOUND_ROWS], found[first : first + _FOUND_ROWS])
        return found

    def _find(self, keys: Keys, found: Longs) -> None:
        at = np.searchsorted(self.high, keys[:, 0], side="right") - 1
        left = np.flatnonzero(at >= 0)
        while len(left):
            here = at[left]
            near = self.high[here] == keys[left, 0]
            same = near & (self.low[here] == keys[left, 1])
            found[left[same]] = self.place[here[same]]
            # Another key with the same first half may stand before.
            left = left[near & ~same]
            at[left] -= 1
            left = left[at[left] >= 0]


def sorted_places(keys: Sequence[Keys], places: Sequence[Longs]) -> KeyPlaces:
    """The places of all keys of all parts, later parts counting before earlier ones."""
    if not keys:
        none = np.empty(0, np.uint64)
        return KeyPlaces(none, none, np.empty(0, np.int64))
    high, low = (np.concatenate([part[:, half] for part in keys]) for half in (0, 1))
    order = np.lexsort((low, high))
    return KeyPlaces(high[order], low[order], np.concatenate(places)[order])


def first_of_equal(keys: Keys) -> Longs:
    """For each row the lowest row with the same key, (rows,) int64."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    first, run = np.empty(len(keys), np.int64), 0
    for start in range(0, len(keys), _FOUND_ROWS):
        rows = order[start : start + _FOUND_ROWS]
        before = order[np.maximum(np.arange(start, start + len(rows)) - 1, 0)]
        begins = np.any(keys[rows] != keys[before], axis=1)
        runs = np.maximum.accumulate(np.where(begins, np.arange(start, start + len(rows)), run))
        # The sort is stable: the first of a run is its lowest row.
        first[rows], run = order[runs], int(runs[-1])
    return first
