"""The words of questions, titles and passages, as numbers with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.methods.lexical import LexicalIndex, lexical_index, words_of
from hippogpu.methods.loaded import Loaded
from hippogpu.types import AnyFloats, Bools, Ints, Longs, Ragged

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


def passages_of_words(loaded: Loaded, config: SearchConfig) -> Words:
    """Which passages have each word of the lexical index."""

    def make() -> Words:
        # A copy where they do not ascend: other threads may be multiplying by the index's own.
        weights = lexical_index(loaded, config).weights
        weights = weights if weights.has_sorted_indices else weights.sorted_indices()
        return Words(weights.indptr.astype(np.int64), weights.indices.astype(np.int32))

    return loaded.derived.once(("passages of words", *_lexical(config)), make)


def word_weights(loaded: Loaded, config: SearchConfig) -> AnyFloats:
    """How much a word tells: log(1 + P ÷ passages that have it), float64."""

    def make() -> AnyFloats:
        counts = np.diff(passages_of_words(loaded, config).indptr)
        return np.log1p(len(loaded.snapshot.passages) / np.maximum(counts, 1))

    return loaded.derived.once(("word weights", *_lexical(config)), make)


def question_words(loaded: Loaded, questions: Sequence[str], config: SearchConfig) -> list[Ints]:
    """Numbers of the distinct words of each question that some passage has."""
    index = lexical_index(loaded, config)
    return [_numbers(index, question) for question in questions]


def title_words(loaded: Loaded, config: SearchConfig) -> Ragged:
    """Numbers of the distinct words of each passage's title, under the first of its ids."""

    def make() -> Ragged:
        index, passages = lexical_index(loaded, config), loaded.snapshot.passages
        rows = [np.unique(_numbers(index, passages.titles[int(number)])) for number in passages.first]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return Ragged(indptr, np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32))

    return loaded.derived.once(("title words", *_lexical(config)), make)


def title_shares(titles: Ragged, pool: Ints, asked: Ints, weights: AnyFloats) -> AnyFloats:
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


def _numbers(index: LexicalIndex, text: str) -> Ints:
    found = (index.words.get(word) for word in dict.fromkeys(words_of(text)))
    return np.array([number for number in found if number is not None], np.int32)


def _lexical(config: SearchConfig) -> tuple[float, float, float]:
    return config.bm25_k1, config.bm25_b, config.bm25_common
