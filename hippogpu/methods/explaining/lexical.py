"""Which words a passage shares with a question, and what each adds to its BM25 score."""

from __future__ import annotations

from hippogpu.config import SearchConfig
from hippogpu.methods.lexical import lexical_index, words_of
from hippogpu.methods.loaded import Loaded
from hippogpu.types import WordShare


def shared_words(loaded: Loaded, question: str, row: int, config: SearchConfig) -> tuple[WordShare, ...]:
    """The words of the question that the passage of the row has, with their scores, which sum to its own: heaviest
    first, ties in the order of the question.
    """
    index = lexical_index(loaded, config)
    found = []
    for word in dict.fromkeys(words_of(question)):
        if word in index.words:
            here = slice(*index.weights.indptr[index.words[word] : index.words[word] + 2])
            score = float(index.weights.data[here][index.weights.indices[here] == row].sum())
            found.append(WordShare(word, score))
    return tuple(sorted((one for one in found if one.score > 0), key=lambda one: -one.score))
