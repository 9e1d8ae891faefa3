"""Which words a text has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hippogpu.text import normalise

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts that put no spaces between words: Thai, Lao, Khmer, Burmese, Japanese kana, Chinese characters."""


def words_of(text: str) -> list[str]:
    """The words of a text, normalised as phrases are; where a script has no spaces, every two characters in a row."""
    normal = normalise(text)
    if normal.isascii() or UNSPACED.search(normal) is None:
        return normal.split()
    return [piece for word in normal.split() for piece in _pieces(word)]


def _pieces(word: str) -> Iterator[str]:
    start = 0
    for found in UNSPACED.finditer(word):
        if start < found.start():
            yield word[start : found.start()]
        run, start = found.group(), found.end()
        yield from (one + two for one, two in pairwise(run)) if len(run) > 1 else (run,)
    if start < len(word):
        yield word[start:]
