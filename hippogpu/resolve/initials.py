"""One person's name, short and in full: initials, middle names left out, given names cut short."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from hippogpu.resolve.values import Found, Phrases, Words, found, only
from hippogpu.resolve.words import GENERIC, HONORIFICS, PARTICLES, PLACE_WORDS, ROMAN, SMALL, SUFFIXES, lettered

WEIGHTS = {"initials": 0.9, "middle": 0.85, "cut": 0.8}
# Names that share surname and first letter; a short form that fits so many is ambiguous anyway.
MOST_IN_BLOCK = 64
_MOST_GIVEN = 4


class Name(NamedTuple):
    """A phrase that may be a person's name: its given names, and the rest."""

    number: int
    given: Words
    last: Words


def person_names(phrases: Phrases) -> dict[str, Found]:
    """Short and full names of one person, by kind. A short form of two different full names is joined to neither.

    initials : "j r r tolkien" and "john ronald reuel tolkien". One initial alone needs a passage that mentions both,
               or a fact of each about one thing
    middle   : "franklin roosevelt" and "franklin d roosevelt". More than initials needs a passage that mentions both
    cut      : "vince da silva" and "vincent da silva", the beginning of the given name. Needs such a passage
    """
    refused: Counter[str] = Counter()
    pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for block in _blocks(phrases, refused):
        for short in block:
            fits = {full.number: how for full in block if (how := fit(short, full, phrases.given))}
            full_names = [full for full in block if full.number in fits]
            if not all(_agree(one, other) for one, other in combinations(full_names, 2)):
                refused["fits two different names"] += 1
                continue
            for full, how in fits.items():
                pairs[how].append((short.number, full))
    return {kind: _met(phrases, kind, pairs, refused if kind == "initials" else Counter()) for kind in WEIGHTS}


def _met(phrases: Phrases, kind: str, pairs: Mapping[str, list[tuple[int, int]]], refused: Mapping[str, int]) -> Found:
    """The pairs of a kind: those that need no evidence, and those that have it."""
    holds = phrases.meeting.somehow if kind == "initials" else phrases.meeting.in_passage
    met, apart = only(pairs.get(f"{kind}?", []), holds)
    return found([*pairs.get(kind, []), *met], WEIGHTS[kind], {**refused, "never met": apart})


def _blocks(phrases: Phrases, refused: Counter[str]) -> Sequence[Sequence[Name]]:
    """Names that share surname and first letter, two or more."""
    blocks: dict[tuple[Words, str], list[Name]] = defaultdict(list)
    endings = Counter(words[-1] for words in phrases.words if len(words) > 1)
    for number, words in enumerate(phrases.words):
        if len(words) > 1 and endings[words[-1]] > 1 and (name := name_of(number, words)):
            blocks[name.last, name.given[0][0]].append(name)
    for block in blocks.values():
        if len(block) > MOST_IN_BLOCK:
            refused["surname too common"] += len(block)
    return [block for block in blocks.values() if 2 <= len(block) <= MOST_IN_BLOCK]


def name_of(number: int, words: Words) -> Name | None:
    """Given names and surname of a phrase that may be a person's name, None for others."""
    size = len(words) - (1 if words and words[-1] in SUFFIXES else 0)
    if not 2 <= size <= _MOST_GIVEN + 2:
        return None
    start = size - 1
    while start > 1 and words[start - 1] in PARTICLES:
        start -= 1
    given, last = words[:start], words[start:]
    if len(given) > _MOST_GIVEN or len(words[size - 1]) < 3 or not all(map(lettered, words)):
        return None
    if given[0] in HONORIFICS or given == ("a",) or any(word in SMALL and len(word) > 1 for word in given):
        return None
    return Name(number, given, last)


def fit(short: Name, full: Name, given: frozenset[str]) -> str | None:
    """How a short name is one of a full one: "initials", "middle" or "cut", with "?" where evidence is needed.

    given : words that are given names; without one at the beginning only initials are joined
    """
    if short.number == full.number:
        return None
    small, large = short.given, full.given
    generic = full.last[-1] in GENERIC
    if len(small) == len(large):
        marks = [_word_fit(one, other) for one, other in zip(small, large, strict=True)]
        if None in marks or all(mark == "same" for mark in marks):
            return None
        if "cut" in marks:
            return "cut?" if not generic and "letter" not in marks and full.given[0] in given else None
        letters = marks.count("letter")
        if generic and (letters < 2 or letters < len(marks)):
            return None
        return "initials" if len(small) > 1 else "initials?"
    if len(small) != 1 or generic or full.given[0] in PLACE_WORDS:
        return None
    if small[0] == "".join(word[0] for word in large):
        return "initials"
    if small[0] == large[0] and len(small[0]) > 1:
        if large[0] not in given or not ROMAN.isdisjoint(large[1:]):
            return None
        return "middle" if all(len(word) == 1 for word in large[1:]) else "middle?"
    return "initials?" if small[0] == large[0][0] else None


def _word_fit(small: str, large: str) -> str | None:
    if small == large:
        return "same"
    if len(small) == 1:
        return "letter" if large.startswith(small) and not (small in ROMAN and large in ROMAN) else None
    # One more "a" is often the other sex: paul and paula, david and davida.
    return "cut" if len(small) >= 3 and large.startswith(small) and large != small + "a" else None


def _agree(one: Name, other: Name) -> bool:
    """Whether two full names may be one person's: no given name of one contradicts that of the other."""
    if len(one.given) != len(other.given):
        return False
    return all(
        left == right or (1 in (len(left), len(right)) and left[0] == right[0])
        for left, right in zip(one.given, other.given, strict=True)
    )
