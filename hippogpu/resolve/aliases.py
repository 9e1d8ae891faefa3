"""Other names that the text itself states: by the predicate of a fact, or by the sentence that is one. English cues."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from hippogpu.resolve.dates import day_of
from hippogpu.resolve.titles import names_something
from hippogpu.resolve.values import FEW, Found, Phrases, found, shared
from hippogpu.resolve.words import LANGUAGES, MONTHS, words_of
from hippogpu.types import Facts

WEIGHT = 0.9
MOST_ALIASES, MOST_WORDS = 6, 10

_HOW = "(?:(?:also|better|commonly|formerly|originally|otherwise|previously|sometimes|now|popularly|simply) )*"
_STATES = re.compile(
    f"(?:(?:is|was|are|were|being|has been|had been) )?(?:{_HOW}(?:known as|called|nicknamed|referred to as|titled"
    "|abbreviated(?: as| to)?|shortened to|spelled(?: as)?|written as|credited as|billed as)"
    "|an? (?:abbreviation|acronym|initialism|alias|pseudonym|nickname)(?: of| for)?|(?:short|acronym|abbreviation) for"
    "|stands for|aka|a k a|alias|née|nee|born as|(?:birth|full|real|original|stage|pen|former|alternative|other) name"
    "(?: is| was)?|original title(?: is| was)?|pseudonym|nickname|abbreviation|acronym|renamed(?: to| as)?)"
)
"""A whole predicate that states another name."""
_CUES = tuple(
    re.compile(f" {_HOW}{cue}(?: the)? ")
    for cue in (
        "known (?:(?:professionally|simply|mononymously) )?as",
        *("aka", "a k a", "née", "nee", "alias", "nicknamed", "abbreviated(?: as| to)?"),
    )
)
"""Before an alias in a sentence that begins with what it names."""
_CLOSING = words_of("is was are were or in by born an who which that for to from at on also after as since has had")
_FURTHEST = 120
_OTHER_CLAUSE = words_of(
    "is was are were be been being has had have who which that and by in where when whose it he she they but as"
)


def aliases(phrases: Phrases, facts: Facts) -> Found:
    """Subject and object of a fact that says they are names of one thing.

    A predicate does so as a whole ("also known as"); a fact that is a whole sentence does when it begins with its
    subject, and the object follows "known as" or the like, "born" if the two share a word, or a language. An alias of
    several things is joined to none, one of one word by its share.
    """
    bases, named = dict(phrases.bracketed), defaultdict[int, set[int]](set)
    columns = zip(facts.subject.tolist(), facts.predicate, facts.object.tolist(), strict=True)
    for subject, predicate, object_ in columns:
        if subject != object_ and _states(phrases, subject, predicate, object_, bases):
            named[object_].add(subject)
    pairs = {
        (min(one, other), max(one, other)) for one, others in named.items() if len(others) == 1 for other in others
    }
    count = Counter(end for pair in pairs for end in pair)
    kept = [pair for pair in sorted(pairs) if max(count[end] for end in pair) <= MOST_ALIASES]
    long = [pair for pair in kept if all(len(phrases.words[end]) > 1 for end in pair)]
    # The second of a pair is the one of one word; of two such, the one in more passages.
    size = phrases.meeting.passages.sizes
    short = [sorted(pair, key=lambda end: (len(phrases.words[end]) == 1, size[end])) for pair in set(kept) - set(long)]
    single, weights, few = shared(sorted((one, other) for one, other in short), WEIGHT, phrases)
    several = sum(len(others) for others in named.values() if len(others) > 1)
    refused = {"too many names": len(pairs) - len(kept), "a name of several": several, FEW: few}
    return found([*long, *single], [*[WEIGHT] * len(long), *weights], refused)


def _states(phrases: Phrases, subject: int, predicate: str, object_: int, bases: Mapping[str, str]) -> bool:
    text = phrases.texts[subject]
    if predicate.startswith(bases.get(text, text)) and len(predicate) > len(text) + 8:
        return _is_alias(phrases, object_) and _said(predicate, bases.get(text, text), phrases.texts[object_])
    return _is_statement(predicate) and _both(phrases, subject, object_)


def _is_statement(predicate: str) -> bool:
    return len(predicate) < 64 and bool(_STATES.fullmatch(predicate))


def _both(phrases: Phrases, *numbers: int) -> bool:
    return all(_is_alias(phrases, number) for number in numbers)


def _is_alias(phrases: Phrases, number: int) -> bool:
    """Whether a phrase may be a name at all: no number, no date, no generic word."""
    words = phrases.words[number]
    if not 1 <= len(words) <= MOST_WORDS or day_of(words) or not any(map(str.isalpha, words)):
        return False
    return len(words) > 1 or names_something(words[0]) or (len(words[0]) == 2 and words[0].isalpha())


def _said(sentence: str, subject: str, alias: str) -> bool:
    """Whether a sentence that begins with the subject goes on to call it by the alias, before any other clause."""
    rest = sentence[len(subject) : len(subject) + _FURTHEST + len(alias)] + " "
    if not rest.startswith(" "):
        return False
    for before, after in _around(rest, alias):
        if after and after not in _CLOSING and after not in MONTHS and not after.isdigit():
            continue
        if before.strip() in LANGUAGES:
            return True
        if before.endswith(" born ") and _OTHER_CLAUSE.isdisjoint(before.split()):
            return not {word for word in subject.split() if len(word) > 2}.isdisjoint(alias.split())
        for cue in _CUES:
            said = list(cue.finditer(before))
            if said and said[-1].end() == len(before) and _OTHER_CLAUSE.isdisjoint(before[: said[-1].start()].split()):
                return True
    return False


def _around(rest: str, alias: str) -> Iterator[tuple[str, str]]:
    """What stands before each place of an alias, and the word after it."""
    at = rest.find(f" {alias} ")
    while at >= 0:
        yield rest[: at + 1], rest[at + len(alias) + 2 :].partition(" ")[0]
        at = rest.find(f" {alias} ", at + 1)
