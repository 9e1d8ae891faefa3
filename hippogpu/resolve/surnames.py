"""A surname alone, and the one full name that has it, passage by passage. For names whose surname comes last."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.resolve.initials import name_of
from hippogpu.resolve.titles import names_something
from hippogpu.resolve.values import FEW, LEAST_SHARE, Found, Phrases
from hippogpu.resolve.words import GENERIC, HONORIFICS, MONTHS, PLACE_WORDS, WEEKDAYS, lettered
from hippogpu.types import AnyInts, Bools, Longs

WEIGHT = 0.6


def surnames(phrases: Phrases) -> Found:
    """ "lincoln" and "abraham lincoln", where a passage mentions both and no other phrase that ends so.

    The weight is WEIGHT times the share of the surname's passages that say so; below LEAST_SHARE there is no edge. So
    a surname has at most 1 / LEAST_SHARE of them, however many bear it.
    """
    roles, rows = _roles(phrases), phrases.meeting.passages
    width = max(len(phrases.words), 1)
    holder = np.repeat(np.arange(len(phrases.words), dtype=np.int64), rows.sizes)
    full = roles.ending[holder] >= 0
    ends, first, times = np.unique(
        rows.values[full] * width + roles.ending[holder[full]], return_index=True, return_counts=True
    )
    ends, names = ends[times == 1], holder[full][first[times == 1]]
    single = roles.surname[holder]
    keys = rows.values[single] * width + holder[single]
    place = np.minimum(np.searchsorted(ends, keys), max(len(ends) - 1, 0))
    met = np.flatnonzero(ends[place] == keys) if len(ends) else np.empty(0, np.int64)
    surname, name = holder[single][met], names[place[met]] if len(ends) else holder[single][met]
    return _weighted(surname, name, roles.person, rows.sizes)


def _weighted(surname: Longs, name: Longs, person: Bools, passages: AnyInts) -> Found:
    """Pairs with their weight, from a surname and a name for each passage that has just these."""
    named, width = person[name], len(person)
    pairs, support = np.unique(surname[named] * width + name[named], return_counts=True)
    share = support / passages[pairs // width]
    enough = share >= LEAST_SHARE
    refused = {FEW: int((~enough).sum()), "no person's name": int((~named).sum())}
    return Found(pairs[enough] // width, pairs[enough] % width, WEIGHT * share[enough], refused)


class _Roles(NamedTuple):
    """Which phrases may be surnames, which a person's full name, and the number of each one's last word, or −1."""

    surname: Bools
    person: Bools
    ending: Longs


def _roles(phrases: Phrases) -> _Roles:
    size = len(phrases.words)
    surname, person, ending = np.zeros(size, bool), np.zeros(size, bool), np.full(size, -1, np.int64)
    for number, words in enumerate(phrases.words):
        if len(words) == 1:
            word = words[0]
            surname[number] = lettered(word) and names_something(word) and word not in MONTHS and word not in WEEKDAYS
        elif words and not (len(words) == 2 and words[0] in HONORIFICS):
            ending[number] = phrases.number.get(words[-1], -1)
            person[number] = ending[number] >= 0 and _is_person(phrases, number)
    return _Roles(surname, person, ending)


def _is_person(phrases: Phrases, number: int) -> bool:
    """Whether a phrase may be a person's full name: it begins with a given name, and no word of it is generic."""
    words = phrases.words[number]
    words = words[1:] if words[0] in HONORIFICS and len(words) > 2 else words
    if len(words) > 5 or words[0] not in phrases.given or words[0] in PLACE_WORDS:
        return False
    return (
        name_of(number, words) is not None
        and words[0] != words[-1]
        and "s" not in words[1:-1]
        and GENERIC.isdisjoint(words[1:])
    )
