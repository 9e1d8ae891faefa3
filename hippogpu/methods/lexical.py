"""What the words of a question are worth in each passage, worked out from counts for the words that are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from hippogpu.backends.threads import run_together
from hippogpu.config import SearchConfig
from hippogpu.errors import IndexDamagedError
from hippogpu.methods.loaded import Loaded
from hippogpu.store import places_of
from hippogpu.types import AnyFloats, AnyInts, Bools, Floats, Longs, WordCounts
from hippogpu.words import count_words, words_of

# A word in so few passages is never too common, however small the corpus.
_NEVER_COMMON = 10


def lexical_scores(
    loaded: Loaded,
    questions: Sequence[str],
    *,
    config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
) -> Floats:
    """BM25 of every passage for each question, (B, P) float32 ≥ 0; 0 where no word is shared. As Lucene weighs it.

    Each distinct word of a question counts once, unless more than bm25_common of the passages have it.
    """
    # Numba is loaded when something is ranked, not when a method is chosen.
    from hippogpu.methods.bm25_kernels import add_words

    words, asked, lengths = word_counts(loaded), asked_words(loaded, questions, config), weighed_lengths(loaded, config)
    scores: Floats = np.zeros((len(questions), len(words.lengths)), np.float32)
    sound = np.ones(len(questions), bool)

    def work(rows: Iterator[int]) -> None:
        for row in rows:
            sound[row] = add_words(
                asked[row],
                rarity(words, asked[row]),
                words.passages.indptr,
                words.passages.values,
                words.counts,
                lengths,
                scores[row],
            )

    run_together(range(len(questions)), work)
    if not sound.all():
        raise IndexDamagedError(
            "'word_passages' names a passage that is not there, or 'word_counts' counts nothing. Build the index anew: "
            "hippogpu index DIR CORPUS --force build"
        )
    return scores


def word_counts(loaded: Loaded) -> WordCounts:
    """The words of the passages as the index holds them; counted now, once, in an index that was made without."""

    def make() -> WordCounts:
        snapshot = loaded.snapshot
        if snapshot.words is not None:
            return snapshot.words.check_heads()
        return count_words(snapshot.passages.wholes, snapshot.passages.first_titles())

    return loaded.derived.once("words", make)


def asked_words(loaded: Loaded, questions: Sequence[str], config: SearchConfig) -> list[Longs]:
    """Numbers of the distinct words of each question, in its order, that some passages have and not too many."""
    words = word_counts(loaded)
    rows = [list(dict.fromkeys(words_of(question))) for question in questions]
    distinct = sorted({word for row in rows for word in row})
    numbers = places_of(words.words, distinct)
    place = dict(zip(distinct, numbers.tolist(), strict=True))
    found = [np.array([place[word] for word in row if place[word] >= 0], np.int64) for row in rows]
    return [row[telling(words, row, config)] for row in found]


def telling(words: WordCounts, numbers: AnyInts, config: SearchConfig) -> Bools:
    """Whether each of the words is in no more than bm25_common of the passages, or in few."""
    most = max(config.bm25_common * len(words.lengths), _NEVER_COMMON)
    return np.asarray(holding(words, numbers) <= most)


def holding(words: WordCounts, numbers: AnyInts) -> Longs:
    """How many passages have each of the words."""
    indptr, numbers = words.passages.indptr, numbers.astype(np.int64)
    return indptr[numbers + 1] - indptr[numbers]


def rarity(words: WordCounts, numbers: AnyInts) -> Floats:
    """ln(1 + (P − n + ½) ÷ (n + ½)) of each of the words, n the passages that have it, float32."""
    passages = len(words.lengths)
    counts = holding(words, numbers).tolist()
    return np.array([math.log(1 + (passages - n + 0.5) / (n + 0.5)) for n in counts], np.float32)


def weighed_lengths(loaded: Loaded, config: SearchConfig) -> AnyFloats:
    """k1 · (1 − b + b · length ÷ mean length) of each passage, (P,) float64."""
    k1, b = config.bm25_k1, config.bm25_b

    def make() -> AnyFloats:
        lengths = word_counts(loaded).lengths
        return k1 * ((1 - b) + b * lengths / max(float(lengths.mean(dtype=np.float64)), np.finfo(float).tiny))

    return loaded.derived.once(("weighed lengths", k1, b), make)


def worth(loaded: Loaded, number: int, row: int, config: SearchConfig) -> float:
    """What the word of the number adds to the score of one passage; 0 where the passage does not have it."""
    words = word_counts(loaded)
    first, last = words.passages.indptr[number : number + 2].tolist()
    place = first + int(np.searchsorted(words.passages.values[first:last], row))
    if place == last or words.passages.values[place] != row:
        return 0.0
    count = float(words.counts[place])
    share = count / (float(weighed_lengths(loaded, config)[row]) + count)
    return float(np.float32(float(rarity(words, np.array([number]))[0]) * share))
