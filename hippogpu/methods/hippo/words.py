"""Which passages have a word, how much a word tells, and which phrases join passages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.methods.lexical import holding, telling, word_counts
from hippogpu.methods.loaded import Loaded
from hippogpu.types import AnyFloats, AnyInts, Bools, Ints, Longs, Ragged

# A phrase joins a passage to a partner unless more passages than this share mention it; a rare one always does.
_TELLING_SHARE, _RARE = 0.02, 5


class Words(NamedTuple):
    """Which passages have a word: those of word i are passages[indptr[i]:indptr[i+1]], ascending."""

    indptr: Longs
    passages: Ints


class Mentions(NamedTuple):
    """The phrases of each passage, ascending, and whether a phrase tells passages apart: (E,) bool."""

    indptr: Longs
    phrases: Ints
    telling: Bools


def passages_of_words(loaded: Loaded) -> Words:
    """Which passages have each word."""
    passages = word_counts(loaded).passages
    return Words(passages.indptr, passages.values)


def word_weights(loaded: Loaded, config: SearchConfig) -> AnyFloats:
    """How much each word tells: log(1 + P ÷ passages that have it), 0 where too many have it. (V,) float64."""

    def make() -> AnyFloats:
        words = word_counts(loaded)
        every = np.arange(len(words.words))
        weights = np.log1p(len(words.lengths) / np.maximum(holding(words, every), 1))
        weights[~telling(words, every, config)] = 0.0
        return weights

    return loaded.derived.once(("word weights", config.bm25_common), make)


def title_shares(titles: Ragged, pool: Ints, asked: AnyInts, weights: AnyFloats) -> AnyFloats:
    """How much of each title's weight the question names, in [0, 1]; 0 without a title. (pool,) float64."""
    starts, ends = titles.indptr[pool], titles.indptr[pool.astype(np.int64) + 1]
    counts = ends - starts
    places = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    words, rows = titles.values[places], np.repeat(np.arange(len(pool)), counts)
    whole = np.bincount(rows, weights=weights[words], minlength=len(pool))
    named = np.bincount(rows, weights=weights[words] * np.isin(words, asked), minlength=len(pool))
    return np.divide(named, whole, out=np.zeros(len(pool)), where=whole > 0)


def telling_mentions(loaded: Loaded) -> Mentions:
    """The phrases of each passage, with those that at most 5 passages, or 2 % of them, mention marked."""

    def make() -> Mentions:
        mentions, passages = loaded.snapshot.tables.mentions, len(loaded.snapshot.passages)
        telling = loaded.mention_counts <= max(_RARE, int(_TELLING_SHARE * passages))
        return Mentions(mentions.indptr, mentions.values, telling)

    return loaded.derived.once("telling mentions", make)
