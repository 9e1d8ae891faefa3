"""Which words a passage shares with a question, and what each adds to its BM25 score."""

from __future__ import annotations

from hippogpu.config import SearchConfig
from hippogpu.methods.lexical import asked_words, word_counts, worth
from hippogpu.methods.loaded import Loaded
from hippogpu.types import WordShare


def shared_words(loaded: Loaded, question: str, row: int, config: SearchConfig) -> tuple[WordShare, ...]:
    """The words of the question that the passage of the row has, with their scores, which sum to its own: heaviest
    first, ties in the order of the question.
    """
    words, (asked,) = word_counts(loaded).words, asked_words(loaded, [question], config)
    found = [WordShare(words[number], worth(loaded, number, row, config)) for number in asked.tolist()]
    return tuple(sorted((one for one in found if one.score > 0), key=lambda one: -one.score))
