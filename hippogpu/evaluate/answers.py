"""Answers against the known ones: exact match and token F1 after the normalisation of SQuAD and MuSiQue."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalise_answer(answer: str) -> str:
    """Lower case, no punctuation, no English articles, single spaces: in that order, as SQuAD's script does.

    Punctuation is every character of a Unicode category P, and the other ASCII signs that SQuAD counts as such. It is
    removed, not spaced: "U.S." is "us". Text is composed (NFC) and case-folded, so that "Straße" is "strasse".
    """
    folded = unicodedata.normalize("NFC", answer).casefold()
    bare = "".join(c for c in folded if not (unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~"))
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, golds: Iterable[str]) -> float:
    """1 when the answer is one of the known ones (the answer and its aliases) after normalisation, else 0."""
    given = normalise_answer(answer)
    return float(any(given == normalise_answer(gold) for gold in golds))


def token_f1(answer: str, golds: Iterable[str]) -> float:
    """The best harmonic mean of token precision and recall over the known answers, in [0, 1]; 0 where none is known.

    Tokens are words of the normalised text, repeats counted. Where either side has no token (as "the" has none), it is
    1 when both have none, else 0.
    """
    given = normalise_answer(answer).split()
    return max((_f1(given, normalise_answer(gold).split()) for gold in golds), default=0.0)


def _f1(given: list[str], gold: list[str]) -> float:
    if not given or not gold:
        return float(given == gold)
    common = (Counter(given) & Counter(gold)).total()
    return 2 * common / (len(given) + len(gold))
