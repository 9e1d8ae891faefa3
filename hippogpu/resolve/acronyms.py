"""Letters and what they stand for, where a fact or a passage has both."""

from __future__ import annotations

from collections import Counter, defaultdict

from hippogpu.resolve.values import Found, Phrases, Words, found, only
from hippogpu.resolve.words import GENERIC, PRONOUNS, ROMAN, SMALL

WEIGHT = 0.9
MOST_LETTERS, MOST_EXPANSIONS = 8, 8


def acronyms(phrases: Phrases) -> Found:
    """ "nasa" and "national aeronautics and space administration": its words' first letters, small words in or out.

    Both must stand in one passage. Letters written apart ("u s a") count as one word, and are joined to it ("usa").
    A word with more than MOST_EXPANSIONS such expansions is left alone.
    """
    short = {_letters(words): [] for words in phrases.words if _letters(words)}  # type: dict[str, list[int]]
    for number, words in enumerate(phrases.words):
        if letters := _letters(words):
            short[letters].append(number)
    fits: dict[int, list[int]] = defaultdict(list)
    apart = [(one, other) for numbers in short.values() for one in numbers[1:] for other in numbers[:1]]
    for number, words in enumerate(phrases.words):
        if 2 <= len(words) <= 2 * MOST_LETTERS and not _letters(words):
            for letters in _initials(words):
                for one in short.get(letters, ()):
                    fits[one].append(number)
    met, never = only([(one, full) for one, row in fits.items() for full in row], phrases.meeting.in_passage)
    count = Counter(one for one, _ in met)
    kept = [(one, full) for one, full in met if count[one] <= MOST_EXPANSIONS]
    refused = {"never met": never, "too many expansions": len(met) - len(kept)}
    return found([*kept, *apart], WEIGHT, refused)


def _letters(words: Words) -> str:
    """The letters of a phrase that may be an acronym, "" for others."""
    letters = words[0] if len(words) == 1 else "".join(words) if all(len(word) == 1 for word in words) else ""
    if not 2 <= len(letters) <= MOST_LETTERS or not letters.isalpha():
        return ""
    return "" if letters in GENERIC or letters in PRONOUNS or letters in SMALL or letters in ROMAN else letters


def _initials(words: Words) -> set[str]:
    every = "".join(word[0] for word in words)
    large = "".join(word[0] for word in words if word not in SMALL)
    return {letters for letters in (every, large) if len(letters) >= 2}
