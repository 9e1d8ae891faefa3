"""Letters and what they stand for, where a fact or a passage has both."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from hippogpu.resolve.values import Found, Phrases, Words, found, only
from hippogpu.resolve.words import GENERIC, PRONOUNS, ROMAN, SMALL, lettered

WEIGHT = 0.9
MOST_LETTERS, MOST_EXPANSIONS = 8, 8


def acronyms(phrases: Phrases) -> Found:
    """ "nasa" and "national aeronautics and space administration": its words' first letters, small words in or out.

    Both must stand in one passage. Letters written apart ("u s a") count as one word, and are joined to it ("usa").
    The weight is shared among the expansions that a word has; with more than MOST_EXPANSIONS it is left alone.
    """
    short: dict[str, list[int]] = defaultdict(list)
    long: list[int] = []
    for number, words in enumerate(phrases.words):
        if letters := _letters(words):
            short[letters].append(number)
        elif 2 <= len(words) <= 2 * MOST_LETTERS:
            long.append(number)
    apart = [(numbers[0], one) for numbers in short.values() for one in numbers[1:]]
    fits = [
        (one, number)
        for number in long
        for letters in _initials(phrases.words[number])
        for one in short.get(letters, ())
    ]
    met, never = only(fits, phrases.meeting.in_passage)
    count = Counter(one for one, _ in met)
    kept = [(one, full) for one, full in met if count[one] <= MOST_EXPANSIONS]
    refused = {"never met": never, "too many expansions": len(met) - len(kept)}
    weights = _by_meetings(kept, phrases)
    return found([*kept, *apart], [*weights, *[WEIGHT] * len(apart)], refused)


def _by_meetings(pairs: Sequence[tuple[int, int]], phrases: Phrases) -> list[float]:
    """WEIGHT, shared among the expansions of a word by the number of passages in which each meets it."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    passages = phrases.meeting.passages.common(ends[:, 0], ends[:, 1])
    total = np.bincount(ends[:, 0], weights=passages, minlength=1)[ends[:, 0]]
    weights: list[float] = (WEIGHT * passages / total).tolist()
    return weights


def _letters(words: Words) -> str:
    """The letters of a phrase that may be an acronym, "" for others."""
    letters = words[0] if len(words) == 1 else "".join(words) if all(len(word) == 1 for word in words) else ""
    if not 2 <= len(letters) <= MOST_LETTERS or not lettered(letters):
        return ""
    return "" if letters in GENERIC or letters in PRONOUNS or letters in SMALL or letters in ROMAN else letters


def _initials(words: Words) -> set[str]:
    every = "".join(word[0] for word in words)
    large = "".join(word[0] for word in words if word not in SMALL)
    return {letters for letters in (every, large) if len(letters) >= 2}
