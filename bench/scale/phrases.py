"""Phrases by number, in circles of near-duplicates: the text of any of billions, worked out from its number alone.

A circle has a stem of three invented words, *Dirpen Wisfil Fefearbrar*, and a member is one spelling of it: words in
another order, a plural, an initial between them, a numeral behind. As hashing:384 encodes them, two spellings of one
stem have cosines of 0.76 to 0.97, most above 0.8, and two stems that share no word about 0.

Sizes have a heavy tail, as those of bench.ppr.synthetic: k or more with probability k^(-CIRCLE_POWER), up to GREATEST.
Both were chosen so that an index finds 13.3 synonym edges a phrase; the power there, 1.33, gives 11.1. Members of the
greatest circles find more than the 100 that are kept.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hippogpu.types import Longs

CIRCLE_POWER, GREATEST = 1.25, 150

_ONSETS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "tr",
)
_VOWELS, _ENDS = ("a", "e", "i", "o", "u", "ai", "ea", "ou"), ("", "n", "r", "l", "s")
_FIRST_BITS, _SECOND_BITS, _THIRD_BITS = 10, 13, 16
_NUMERALS = 93
_GOLDEN = 0.6180339887498949
_WORDS_SEED = 7

Words = Any
"""An Arrow array of text."""


class Universe(NamedTuple):
    """All phrases of a corpus: how many, and where circles of each size lie among their places.

    sizes : k descending · circles, places : the first circle and the first place of that size
    """

    count: int
    sizes: Longs
    circles: Longs
    places: Longs

    def texts(self, numbers: Longs) -> Words:
        """The spelling of each phrase."""
        place = scattered(numbers, self.count, turn=0)
        row = np.searchsorted(self.places, place, side="right") - 1
        circle, member = np.divmod(place - self.places[row], self.sizes[row])
        return _spelled(self.circles[row] + circle, member)

    def popular(self, ranks: Longs) -> Longs:
        """The phrase of each rank of popularity, from 0."""
        return scattered(ranks, self.count, turn=1)


def universe(count: int) -> Universe:
    """So many phrases, in circles whose sizes fill the law evenly; what is over are circles of one."""
    at_least = np.arange(1, GREATEST + 1, dtype=np.float64) ** -CIRCLE_POWER
    reached = np.rint(count / at_least.sum() * at_least).astype(np.int64)
    exactly = reached - np.append(reached[1:], 0)
    exactly[0] += count - int((exactly * np.arange(1, GREATEST + 1)).sum())
    if exactly[0] < 0:
        raise ValueError(f"{count} phrases are too few for circles of {GREATEST}.")
    sizes = np.arange(GREATEST, 0, -1)
    numbers = exactly[::-1]
    sizes, numbers = sizes[numbers > 0], numbers[numbers > 0]
    return Universe(count, sizes, np.cumsum(numbers) - numbers, np.cumsum(numbers * sizes) - numbers * sizes)


def scattered(numbers: Longs, count: int, *, turn: int) -> Longs:
    """The numbers 0…count−1 in another order, one to one: neighbours go far apart."""
    step = max(1, int(count * (_GOLDEN if turn == 0 else _GOLDEN**2)))
    while gcd(step, count) != 1:
        step += 1
    placed: Longs = (numbers * step + (turn * count) // 3) % count
    return placed


def numbered(numbers: Longs) -> Any:
    """The numbers as Arrow takes them."""
    return pa.array(numbers)


def glued(*parts: Any, **how: Any) -> Words:
    """Texts joined element by element; the last part stands between the others."""
    join: Any = pc.binary_join_element_wise
    return join(*parts, **how)


def vocabulary(size: int, syllables: int, *, seed: int) -> Words:
    """Distinct lower-case words of so many syllables, as Arrow text."""
    parts = [onset + vowel + end for onset in _ONSETS for vowel in _VOWELS for end in _ENDS]
    random = np.random.default_rng([_WORDS_SEED, seed])
    words: dict[str, None] = {}
    while len(words) < size:
        drawn = random.integers(len(parts), size=(size, syllables)).tolist()
        words.update(dict.fromkeys("".join(parts[one] for one in row) for row in drawn))
    return pa.array(list(words)[:size])


@cache
def _stem_words() -> tuple[Words, Words, Words]:
    bits = (_FIRST_BITS, 2), (_SECOND_BITS, 2), (_THIRD_BITS, 3)
    lists = (vocabulary(1 << power, syllables, seed=seed) for seed, (power, syllables) in enumerate(bits))
    first, second, third = (pc.utf8_capitalize(words) for words in lists)
    return first, second, third


class _Spellings(NamedTuple):
    """What each member of a circle does with its stem: order of the words, ends of two, and two further words."""

    order: Longs
    second_end: Words
    third_end: Words
    initial: Words
    numeral: Words


@cache
def _spellings() -> _Spellings:
    letters = [chr(ord("A") + number) + "." for number in range(26)]
    plain = [(0, "", "", None, None), (1, "", "", None, None), (2, "", "", None, None)]
    plural = [(0, "", "s", None, None), (0, "s", "", None, None)]
    initials = [(0, "", "", letter, None) for letter in letters]
    turned = [(2, "", "", letter, None) for letter in letters]
    numerals = [(0, "", "", None, str(number)) for number in range(2, 2 + _NUMERALS)]
    mixed = [row for rows in zip(initials, numerals, strict=False) for row in rows]
    rows = [*plain, *plural, *mixed, *turned, *numerals[len(initials) :]][:GREATEST]
    assert len(set(rows)) == GREATEST
    order, *texts = zip(*rows, strict=True)
    return _Spellings(np.array(order), *(pa.array(column, pa.string()) for column in texts))


def _spelled(circles: Longs, members: Longs) -> Words:
    how, member = _spellings(), numbered(members)
    mixed = _mixed(circles)
    lengths = (_FIRST_BITS, _SECOND_BITS, _THIRD_BITS)
    shifts = np.cumsum((0, *lengths[:-1]))
    first, second, third = (
        words.take(numbered(mixed >> int(shift) & (1 << length) - 1))
        for words, shift, length in zip(_stem_words(), shifts, lengths, strict=True)
    )
    second = glued(second, how.second_end.take(member), "")
    third = glued(third, how.third_end.take(member), "")
    order = numbered(how.order[members])
    ordered = [
        pc.choose(order, *texts) for texts in ((first, second, third), (second, first, first), (third, third, second))
    ]
    initial, numeral = how.initial.take(member), how.numeral.take(member)
    return glued(ordered[0], initial, *ordered[1:], numeral, " ", null_handling="skip")


def _mixed(numbers: Longs) -> Longs:
    """Numbers below 2^39 to others, one to one, so that stems with near numbers share no word but by chance."""
    mask = np.int64((1 << _FIRST_BITS + _SECOND_BITS + _THIRD_BITS) - 1)
    mixed = numbers.astype(np.int64)
    for factor in (0x2545F491, 0x1B873593):
        # Odd factors below 2^31: a product of 39 and 30 bits wraps, and its low bits stay right.
        mixed = (mixed * np.int64(factor)) & mask
        mixed ^= mixed >> np.int64(19)
    return mixed
