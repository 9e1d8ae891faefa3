"""Which words are given names: common ones, and those that an index itself shows to be."""

from __future__ import annotations

import re

from hippogpu.resolve.values import Words
from hippogpu.resolve.words import GENERIC, GIVEN_NAMES, HONORIFICS, PLACE_WORDS, ROMAN, SMALL
from hippogpu.types import Facts

_LIFE = re.compile(r"(?:(?:is|was|were) )?(?:born|died|married)(?: (?:in|on|at|to|near))?")
_LEFT_BY_APOSTROPHES = frozenset("sdtm")


def given_names(texts: list[str] | tuple[str, ...], words: list[Words], facts: Facts) -> frozenset[str]:
    """Common given names, and first words of names with a middle initial or of those who were born, died or married.

    A fact that is a sentence states a birth where "born" follows the subject it begins with. English.
    """
    learned = set(GIVEN_NAMES)
    learned.update(name[0] for name in words if _has_middle_initial(name))
    for subject, predicate in zip(facts.subject.tolist(), facts.predicate, strict=True):
        name = words[subject]
        if len(name) > 1 and len(name[0]) > 2 and name[0] not in learned and _tells_of_life(predicate, texts[subject]):
            learned.add(name[0])
    return frozenset(word for word in learned if not _never(word))


def _has_middle_initial(name: Words) -> bool:
    if not 3 <= len(name) <= 4 or len(name[0]) < 3 or name[-1] in GENERIC or len(name[-1]) < 3:
        return False
    return all(len(word) == 1 and word not in _LEFT_BY_APOSTROPHES and word not in SMALL for word in name[1:-1]) and (
        name[1] not in ROMAN
    )


def _tells_of_life(predicate: str, subject: str) -> bool:
    if len(predicate) < 24:
        return bool(_LIFE.fullmatch(predicate))
    return predicate.startswith(subject) and predicate[len(subject) :].startswith(" born ")


def _never(word: str) -> bool:
    return word in PLACE_WORDS or word in HONORIFICS or (word in GENERIC and word not in GIVEN_NAMES) or word in SMALL
