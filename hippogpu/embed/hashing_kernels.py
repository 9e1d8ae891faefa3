"""Signed features of words and trigrams, added up in compiled loops."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from hippogpu.types import Longs

_WORD_WEIGHT, _TRIGRAM_WEIGHT = 2, 1
_SPACE = 32
_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@numba.njit(cache=True, nogil=True)
def add_features(letters: NDArray[np.uint8], ends: Longs, sums: Longs) -> None:
    begin = 0
    for t in range(len(ends)):
        word, length = _SEED, 0
        for i in range(begin, ends[t]):
            if letters[i] == _SPACE:
                if length:
                    _add(sums[t], word, _WORD_WEIGHT)
                word, length = _SEED, 0
            else:
                word = (word ^ np.uint64(letters[i])) * _PRIME
                length += 1
            if i + 2 < ends[t]:
                three = np.uint64(letters[i]) | np.uint64(letters[i + 1]) << np.uint64(8)
                three |= np.uint64(letters[i + 2]) << np.uint64(16)
                _add(sums[t], three, _TRIGRAM_WEIGHT)
        begin = ends[t]


@numba.njit(cache=True, nogil=True)
def _add(row: Longs, feature: np.uint64, weight: int) -> None:
    """Adds the weight at four places; place and sign from the bits of a mixed hash (the finaliser of SplitMix64)."""
    h = feature
    for _ in range(4):
        h += _SEED
        h = (h ^ (h >> np.uint64(30))) * _MIX_1
        h = (h ^ (h >> np.uint64(27))) * _MIX_2
        h ^= h >> np.uint64(31)
        place = (h >> np.uint64(1)) % np.uint64(len(row))
        row[place] += weight if h & np.uint64(1) else -weight
