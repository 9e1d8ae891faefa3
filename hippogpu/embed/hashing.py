"""Vectors from hashed words and character trigrams: no model, the same on every machine, for tests and scale runs.

Texts that share spelling are near; meaning plays no part. Never report retrieval quality with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hippogpu.embed.encode import estimated_token_counts
from hippogpu.errors import ConfigError
from hippogpu.types import Floats, Longs

DEFAULT_WIDTH = 256
_BLOCK_TEXTS = 4096


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
        # The compiler is loaded by the first text, not by opening an index.
        from hippogpu.embed.hashing_kernels import add_features

        ends = np.cumsum([len(text) for text in block])
        sums = np.zeros((len(block), self.width), np.int64)
        add_features(np.frombuffer(b"".join(block), np.uint8), ends, sums)
        return sums


def _folded(text: str) -> bytes:
    """Case folded, runs of spaces one, a space at each end: so that word ends make trigrams of their own."""
    return f" {' '.join(text.casefold().split())} ".encode("utf-8", "surrogatepass")


def _unit(sums: Longs) -> Floats:
    sums[~sums.any(axis=1), 0] = 1
    lengths = np.sqrt((sums * sums).sum(axis=1).astype(np.float64))
    rows: Floats = (sums / lengths[:, None]).astype(np.float32)
    return rows
