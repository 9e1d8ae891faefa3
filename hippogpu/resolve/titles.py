"""One thing with and without an article, a bracket after its title, or a person's style. English, but for brackets."""

from __future__ import annotations

from collections import Counter, defaultdict

from hippogpu.resolve.values import FEW, Found, Phrases, found, only, shared
from hippogpu.resolve.words import GENERIC, HONORIFICS, PRONOUNS, ROMAN, SMALL, WEAK_HONORIFICS

ARTICLE, BRACKET, HONORIFIC = 0.95, 0.9, 0.9


def articles(phrases: Phrases) -> Found:
    """ "the mark of cain" and "mark of cain". One word, or "a" before it, needs passages that mention both."""
    alone: list[tuple[int, int]] = []
    needy: list[tuple[int, int]] = []
    for number, words in enumerate(phrases.words):
        if len(words) < 2 or words[0] not in ("the", "a", "an"):
            continue
        rest = phrases.number.get(" ".join(words[1:]))
        if rest is None or (len(words) == 2 and not names_something(words[1])):
            continue
        (alone if words[0] == "the" and len(words) > 2 else needy).append((number, rest))
    met, weights, few = shared(needy, ARTICLE, phrases)
    return found([*alone, *met], [*[ARTICLE] * len(alone), *weights], {FEW: few})


def brackets(phrases: Phrases) -> Found:
    """ "titanic 1997 film" and "titanic", where a passage is titled Titanic (1997 film).

    Not where a passage is titled Titanic alone or with another bracket. A base of one word is joined by its share.
    """
    bases: dict[str, set[str]] = defaultdict(set)
    for whole, base in phrases.bracketed:
        bases[base].add(whole)
    alone: list[tuple[int, int]] = []
    needy: list[tuple[int, int]] = []
    refused: Counter[str] = Counter()
    for base, wholes in sorted(bases.items()):
        number = phrases.number.get(base)
        if number is None or not base.strip():
            continue
        if len(wholes) > 1 or base in phrases.unbracketed:
            refused["another title competes"] += 1
            continue
        one = phrases.number.get(next(iter(wholes)))
        if one is not None and one != number:
            (alone if len(phrases.words[number]) > 1 else needy).append((one, number))
    met, apart = only(alone, phrases.meeting.in_passage)
    single, weights, few = shared(needy, BRACKET, phrases)
    refused.update({"never met": apart, FEW: few})
    return found([*met, *single], [*[BRACKET] * len(met), *weights], refused)


def honorifics(phrases: Phrases) -> Found:
    """ "sir winston churchill" and "winston churchill", where a passage mentions both or both have a fact of one thing.

    One word after the style ("president lincoln") is joined by its share, if no other style goes with it; a number in
    the end ("king charles ii", of which country?) by its share too.
    """
    full: list[tuple[int, int]] = []
    numbered: list[tuple[int, int]] = []
    single: dict[int, list[int]] = defaultdict(list)
    for number, words in enumerate(phrases.words):
        if len(words) < 2 or words[0] not in HONORIFICS or words[1] in SMALL:
            continue
        rest = phrases.number.get(" ".join(words[1:]))
        if rest is None:
            continue
        if words[-1] in ROMAN:
            numbered.append((number, rest))
        elif len(words) > 2:
            # Mrs John Wood is not John Wood.
            full += [(number, rest)] if words[0] not in ("mrs", "lady") else []
        elif words[0] not in WEAK_HONORIFICS and names_something(words[1]):
            single[rest].append(number)
    lone = [(numbers[0], rest) for rest, numbers in single.items() if len(numbers) == 1]
    met, apart = only(full, phrases.meeting.somehow)
    beside, weights, few = shared([*lone, *numbered], HONORIFIC, phrases)
    refused = {"never met": apart, FEW: few, "two styles": len(single) - len(lone)}
    return found([*met, *beside], [*[HONORIFIC] * len(met), *weights], refused)


def names_something(word: str) -> bool:
    """Whether a word by itself may be a name: more than two characters, no number, no generic word."""
    return len(word) > 2 and not word.isdigit() and word not in GENERIC and word not in PRONOUNS and word not in SMALL
