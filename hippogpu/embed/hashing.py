"""Vectors from hashed words and character trigrams: no model, the same on every machine, for tests and scale runs.

Texts that share spelling are near; meaning plays no part. Never report retrieval quality with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from hippogpu.embed.encode import estimated_token_counts
from hippogpu.errors import ConfigError
from hippogpu.types import Floats, Longs

DEFAULT_WIDTH = 256
_WORD_WEIGHT, _TRIGRAM_WEIGHT = 2, 1
_BLOCK_TEXTS = 4096
_SPACE = 32
_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class HashingEmbedder:
    """A deterministic encoder without a model: signed feature hashing of words and byte trigrams, case folded.

    Each feature adds its weight with its own sign in four of the w places. Sums are whole numbers, so the vectors
    are the same to the last bit everywhere. A text without features is the first unit vector. No window.
    """

    window = None
    query_to_fact = ""
    query_to_passage = ""

    def __init__(self, width: int = DEFAULT_WIDTH) -> None:
        if width < 1:
            raise ConfigError(f"The width of the hashing encoder must be at least 1. Got {width}.")
        self.width = width
        self.name = f"hashing-{width}"

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """Unit vectors of the texts, (len(texts), w) float32; the instruction is read as part of each text."""
        rows = np.empty((len(texts), self.width), np.float32)
        for begin in range(0, len(texts), _BLOCK_TEXTS):
            block = [_folded(instruction + text) for text in texts[begin : begin + _BLOCK_TEXTS]]
            rows[begin : begin + len(block)] = _unit(self._sums(block))
        return rows

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """An estimate, words × 1.3: there is no tokenizer."""
        return estimated_token_counts(texts)

    def _sums(self, block: list[bytes]) -> Longs:
        ends = np.cumsum([len(text) for text in block])
        sums = np.zeros((len(block), self.width), np.int64)
        _add_features(np.frombuffer(b"".join(block), np.uint8), ends, sums)
        return sums


def _folded(text: str) -> bytes:
    """Case folded, runs of spaces one, a space at each end: so that word ends make trigrams of their own."""
    return f" {' '.join(text.casefold().split())} ".encode("utf-8", "surrogatepass")


def _unit(sums: Longs) -> Floats:
    sums[~sums.any(axis=1), 0] = 1
    lengths = np.sqrt((sums * sums).sum(axis=1).astype(np.float64))
    rows: Floats = (sums / lengths[:, None]).astype(np.float32)
    return rows


@numba.njit(cache=True, nogil=True)
def _add_features(letters: NDArray[np.uint8], ends: Longs, sums: Longs) -> None:
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
