"""Filters of facts that need no language model: by their scores, and by what the question names."""

from __future__ import annotations

from collections.abc import Sequence

from hippogpu.methods.filter import Verdict
from hippogpu.methods.question_names import OPENING
from hippogpu.text import normalise
from hippogpu.types import KeptFact

_FUNCTION_WORDS = OPENING | {"and", "or", "not", "as", "be", "been", "being", "also", "s", "t"}


class GapFilter:
    """The filter 'gap': facts whose min-max score is at least `share` of the best one's, which is always kept.

    On the four train sets (docs/methods.md) cutting at the largest drop between two scores lost up to 5 points of R@5;
    a share of 0.85 gains up to 3 points of R@2 and loses less than 1 of R@5.
    """

    name = "gap"

    def __init__(self, share: float) -> None:
        self._share = share

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        return [Verdict(self._above(row)) for row in candidates]

    def _above(self, row: Sequence[KeptFact]) -> tuple[int, ...]:
        least = self._share * max((fact.score for fact in row), default=0.0)
        return tuple(number for number, fact in enumerate(row) if fact.score >= least)


class AgreementFilter:
    """The filter 'agreement': facts that hang together with what the question names.

    A fact is kept when its subject or object shares a word with the question (function words of English aside), or is
    the subject or object of a fact that does. To ask it of both ends lost 1 to 6 points of R@5 on the four train sets:
    the end that the question does not name is what it asks for.
    """

    name = "agreement"

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        return [Verdict(_agreeing(_words(text), row)) for text, row in zip(questions, candidates, strict=True)]


def _agreeing(asked: frozenset[str], row: Sequence[KeptFact]) -> tuple[int, ...]:
    named = [not asked.isdisjoint(_words(fact.subject) | _words(fact.object)) for fact in row]
    ends = {end for fact, does in zip(row, named, strict=True) if does for end in (fact.subject, fact.object)}
    return tuple(number for number, fact in enumerate(row) if named[number] or not ends.isdisjoint(fact[:3:2]))


def _words(text: str) -> frozenset[str]:
    return frozenset(normalise(text).split()) - _FUNCTION_WORDS
