"""The phrases of the index that a question names word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hippogpu.methods.loaded import Loaded
from hippogpu.store import places_of
from hippogpu.text import normalise
from hippogpu.words import UNSPACED

# The longest names that are looked for, in words (in scripts without spaces, characters).
_LONGEST = 8
# A name of one word is a common word, not a name, when more passages than this share mention it, and it is not rare.
_COMMON_SHARE, _RARE = 0.01, 10
_LEAST_LETTERS = 3
_WORD = re.compile(r"\S+")


def named_phrases(loaded: Loaded, questions: Sequence[str]) -> list[list[int]]:
    """Numbers of the phrases that each question names, longest names first, no word used for two of them.

    A question is normalised as phrases are, and its runs of up to 8 words are looked up. Names of a single word count
    when they have 3 letters or more (a single character of a script without spaces never does) and at most 10 passages,
    or 1 % of them, mention them.
    """
    rule = loaded.snapshot.manifest.config.text_rule
    pieces = [_pieces(normalise(question, rule)) for question in questions]
    runs = [list(_runs(row)) for row in pieces]
    wanted = {text for row in runs for _, _, text in row}
    found = _look_up(loaded, sorted(wanted))
    return [_longest_first(loaded, row, found) for row in runs]


def _look_up(loaded: Loaded, texts: Sequence[str]) -> dict[str, int]:
    """The phrase number of each text that is a phrase."""
    places = places_of(loaded.snapshot.tables.phrases, texts).tolist()
    return {text: number for text, number in zip(texts, places, strict=True) if number >= 0}


class _Piece(NamedTuple):
    """A word, or a character of a script without spaces; what joins it to the piece before it."""

    text: str
    joint: str


def _pieces(text: str) -> list[_Piece]:
    """The pieces of a normalised text; words keep the spaces between them, of which the rule ascii leaves several."""
    pieces, end = [], 0
    for found in _WORD.finditer(text):
        word, space, end = found.group(), text[end : found.start()], found.end()
        bounds = sorted(
            {0, len(word), *(at for run in UNSPACED.finditer(word) for at in range(run.start(), run.end() + 1))}
        )
        parts = [word[start:end] for start, end in pairwise(bounds)]
        pieces += [_Piece(part, space if place == 0 else "") for place, part in enumerate(parts)]
    return pieces


def _runs(pieces: Sequence[_Piece]) -> Iterator[tuple[int, int, str]]:
    """Start, end and text of each run of pieces, longest first, then from the left."""
    for length in range(min(_LONGEST, len(pieces)), 0, -1):
        for start in range(len(pieces) - length + 1):
            run = pieces[start : start + length]
            yield start, start + length, run[0].text + "".join(piece.joint + piece.text for piece in run[1:])


def _longest_first(loaded: Loaded, runs: Sequence[tuple[int, int, str]], found: dict[str, int]) -> list[int]:
    taken: set[int] = set()
    named: dict[int, None] = {}
    for start, end, text in runs:
        number = found.get(text)
        if number is None or not taken.isdisjoint(range(start, end)):
            continue
        if end - start == 1 and not _tells(loaded, text, number):
            continue
        named[number] = None
        taken.update(range(start, end))
    return list(named)


def _tells(loaded: Loaded, word: str, number: int) -> bool:
    """Whether a name of one word tells passages apart."""
    most = max(_RARE, int(_COMMON_SHARE * len(loaded.snapshot.passages)))
    return len(word) >= _LEAST_LETTERS and int(loaded.mention_counts[number]) <= most
