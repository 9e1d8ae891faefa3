"""Words: which a text has, what each is worth in each passage, and what a question's words are worth together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hippogpu.config import SearchConfig
from hippogpu.methods.loaded import Loaded
from hippogpu.text import normalise
from hippogpu.types import Floats

# A word in so few passages is never too common, however small the corpus.
_NEVER_COMMON = 10
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts that put no spaces between words: Thai, Lao, Khmer, Burmese, Japanese kana, Chinese characters."""


class LexicalIndex(NamedTuple):
    """What each word is worth in each passage: weights (words, P) float32, and the row of each word."""

    words: dict[str, int]
    weights: csr_array


def lexical_scores(
    loaded: Loaded,
    questions: Sequence[str],
    *,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
) -> Floats:
    """BM25 of every passage for each question, (B, P) float32 ≥ 0; 0 where no word is shared.

    Each distinct word of a question counts once. The index of words is made at first use.
    """
    index = lexical_index(loaded, config)
    rows = [[index.words[word] for word in dict.fromkeys(words_of(text)) if word in index.words] for text in questions]
    columns = np.array([word for row in rows for word in row], np.int32)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(row) for row in rows], dtype=np.int64)])
    asked = csr_array((np.ones(len(columns), np.float32), columns, indptr), shape=(len(rows), index.weights.shape[0]))
    scores: Floats = (asked @ index.weights).toarray()
    return scores


def words_of(text: str) -> list[str]:
    """The words of a text, normalised as phrases are; where a script has no spaces, every two characters in a row."""
    return [piece for word in normalise(text).split() for piece in _pieces(word)]


def _pieces(word: str) -> Iterator[str]:
    start = 0
    for found in UNSPACED.finditer(word):
        if start < found.start():
            yield word[start : found.start()]
        run, start = found.group(), found.end()
        yield from (one + two for one, two in pairwise(run)) if len(run) > 1 else (run,)
    if start < len(word):
        yield word[start:]


def lexical_index(loaded: Loaded, config: SearchConfig) -> LexicalIndex:
    """The index of the words of all passages (title and text), made once for these settings."""
    key = ("words", config.bm25_k1, config.bm25_b, config.bm25_common)
    return loaded.derived.once(key, lambda: build_lexical_index(loaded.snapshot.passages.wholes, config))


def build_lexical_index(texts: Sequence[str], config: SearchConfig) -> LexicalIndex:
    """BM25 as Lucene weighs it (bm25s), for every word that is in no more than bm25_common of the texts."""
    # It loads numba, so only where words are weighed.
    from bm25s import BM25

    words: dict[str, int] = {}
    rows = [[words.setdefault(word, len(words)) for word in words_of(text)] for text in texts]
    if not words:
        return LexicalIndex({}, csr_array(np.zeros((0, len(texts)), np.float32)))
    made = BM25(method="lucene", k1=config.bm25_k1, b=config.bm25_b)
    made.index((rows, words), create_empty_token=False, show_progress=False)
    arrays = made.scores["data"], made.scores["indices"], made.scores["indptr"]
    telling = np.diff(arrays[2]) <= max(config.bm25_common * len(texts), _NEVER_COMMON)
    # The columns of (P, words) are the rows of (words, P).
    every = csr_array(arrays, shape=(len(words), len(texts)), dtype=np.float32)
    weights: csr_array = every[np.flatnonzero(telling), :]
    kept = (word for word, tells in zip(words, telling, strict=True) if tells)
    return LexicalIndex({word: row for row, word in enumerate(kept)}, weights)
