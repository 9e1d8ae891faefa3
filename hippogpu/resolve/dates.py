"""One day in several notations: "4 july 1776", "july 4 1776", "1776 07 04". English names of months."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from itertools import combinations

from hippogpu.resolve.values import Found, Phrases, Words, found
from hippogpu.resolve.words import MONTHS, WEEKDAYS

WEIGHT = 1.0
# More ways of writing one day than there are; keeps a group's pairs few.
MOST_FORMS = 32
_DAY = re.compile(r"(\d{1,2})(st|nd|rd|th)?")

Day = tuple[int, int, int]


def same_dates(phrases: Phrases) -> Found:
    """Phrases that are one calendar day, or one day of a year that neither names. Never a part and a whole."""
    groups: dict[Day, list[int]] = defaultdict(list)
    for number, words in enumerate(phrases.words):
        if 2 <= len(words) <= 6 and any(word[0].isdigit() for word in words) and (day := day_of(words)):
            groups[day].append(number)
    pairs = [pair for group in groups.values() for pair in combinations(group[:MOST_FORMS], 2)]
    left = sum(max(len(group) - MOST_FORMS, 0) for group in groups.values())
    return found(pairs, WEIGHT, {"more forms of one day than are joined": left} if left else None)


def day_of(words: Words) -> Day | None:
    """(year, month, day) of a phrase that is a date and nothing else, year 0 where it names none; None for others.

    Only digits that can be read one way: 13 04 1776 is a day, 03 04 1776 is not.
    """
    plain = tuple(word for word in words if word not in WEEKDAYS and word not in ("the", "of"))
    months = [at for at, word in enumerate(plain) if word in MONTHS]
    if len(months) == 1:
        return _written(plain, months[0])
    if months or len(plain) != 3 or not all(word.isascii() and word.isdigit() for word in plain):
        return None
    return _in_digits(plain)


def _written(words: Words, at: int) -> Day | None:
    """With the name of the month at a place: day month [year], month day [year]."""
    rest = (*words[:at], *words[at + 1 :])
    if len(rest) not in (1, 2) or at > 1:
        return None
    day = _DAY.fullmatch(rest[0])
    year = rest[1] if len(rest) == 2 else None
    if not day or (year is not None and not _is_year(year)):
        return None
    return _valid(int(year or 0), MONTHS[words[at]], int(day[1]))


def _in_digits(words: Words) -> Day | None:
    if _is_year(words[0]) and len(words[0]) == 4 and len(words[1]) == len(words[2]) == 2:
        return _valid(*map(int, words))
    if len(words[2]) != 4:
        return None
    first, second, year = map(int, words)
    if min(first, second) > 12 or (max(first, second) <= 12 and first != second):
        return None
    return _valid(year, min(first, second), max(first, second))


def _is_year(word: str) -> bool:
    return word.isascii() and word.isdigit() and 3 <= len(word) <= 4 and int(word) > 0


def _valid(year: int, month: int, day: int) -> Day | None:
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(year or 2000, month)[1]:
        return None
    return year, month, day
