"""Records read one after another: what they state, in numbers of the distinct phrases and predicates met so far."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.config import FactText, IndexConfig
from hippogpu.text import TextRule, normalise, readable
from hippogpu.types import Ints, Longs, Record

EMPTY_END = "subject or object has no letter or number"
NO_TEXT = -1

# What a text takes in memory beside its letters: its object, and its place in a dictionary.
_TEXT_BYTES = 250
_STATEMENT_BYTES = 16


class Run(NamedTuple):
    """What some passages state. S statements; phrases and predicates are distinct, sorted by code point.

    counts : how many statements each passage makes
    subject, predicate, object : (S,) numbers of phrases and predicates
    text   : (S,) the number among `texts` of what the extractor gives to be encoded, NO_TEXT where it gives nothing
    dropped: triples left out because an end is empty
    """

    phrases: Sequence[str]
    predicates: Sequence[str]
    texts: Sequence[str]
    counts: Ints
    subject: Ints
    predicate: Ints
    object: Ints
    text: Ints
    dropped: int


class Gathering:
    """A run in the making."""

    def __init__(self, config: IndexConfig) -> None:
        self._keep_empty = config.keep_empty
        self._phrases, self._predicates = _Numbers(config.text_rule), _Numbers(config.text_rule)
        self._texts: dict[str, int] = {}
        self._letters = 0
        self._counts, self._text = array("i"), array("i")
        self._subject, self._predicate, self._object = array("i"), array("i"), array("i")
        self._dropped = 0

    @property
    def passages(self) -> int:
        return len(self._counts)

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        texts = len(self._phrases) + len(self._predicates) + len(self._texts)
        letters = self._phrases.letters + self._predicates.letters + self._letters
        return _TEXT_BYTES * texts + letters + _STATEMENT_BYTES * len(self._subject) + 4 * len(self._counts)

    def add(self, record: Record | None) -> None:
        """One more passage, with its record, or None where there is none yet."""
        before = len(self._subject)
        for triple in record.triples if record else ():
            subject, object_ = self._phrases[triple.subject], self._phrases[triple.object]
            if not self._keep_empty and self._phrases.empty in (subject, object_):
                self._dropped += 1
                continue
            self._subject.append(subject)
            self._predicate.append(self._predicates[triple.predicate])
            self._object.append(object_)
            self._text.append(NO_TEXT if triple.text is None else self._text_number(triple.text))
        self._counts.append(len(self._subject) - before)

    def run(self) -> Run:
        """The run of all passages added."""
        phrases, phrase_ranks = self._phrases.ranked()
        predicates, predicate_ranks = self._predicates.ranked()
        # Phrases of dropped triples alone are in no statement.
        subject, object_ = (phrase_ranks[_ints(column)] for column in (self._subject, self._object))
        stated = np.zeros(len(phrases), bool)
        stated[subject] = stated[object_] = True
        if not stated.all():
            ranks = np.cumsum(stated, dtype=np.int32) - 1
            phrases = [phrase for phrase, is_stated in zip(phrases, stated.tolist(), strict=True) if is_stated]
            subject, object_ = ranks[subject], ranks[object_]
        predicate = predicate_ranks[_ints(self._predicate)]
        counts, text = _ints(self._counts), _ints(self._text)
        return Run(phrases, predicates, list(self._texts), counts, subject, predicate, object_, text, self._dropped)

    def _text_number(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            shown = readable(text)
            number = self._texts.setdefault(shown, len(self._texts))
            self._letters += len(shown)
        return number


class _Numbers(dict[str, int]):
    """The number of each text as it is written: that of its normalised form, in order of appearance."""

    def __init__(self, rule: TextRule) -> None:
        super().__init__()
        self._rule: TextRule = rule
        self._forms: dict[str, int] = {}
        self.letters = 0
        self.empty = -1

    def __missing__(self, text: str) -> int:
        form = normalise(text, self._rule)
        self[text] = number = self._forms.setdefault(form, len(self._forms))
        self.letters += 2 * len(text)
        if not form:
            self.empty = number
        return number

    def ranked(self) -> tuple[list[str], Ints]:
        """The normalised forms sorted by code point, and the place of each number among them."""
        forms = sorted(self._forms)
        ranks = np.empty(len(forms), np.int32)
        for rank, form in enumerate(forms):
            ranks[self._forms[form]] = rank
        return forms, ranks


def fact_text(fact: tuple[str, str, str], rule: FactText) -> str:
    """What is encoded for a normalised triple: its three fields in a row, or the text of the Python tuple."""
    return str(fact) if rule == "tuple" else " ".join(fact)


def _ints(column: array[int]) -> Ints:
    return np.frombuffer(column, np.int32) if column else np.empty(0, np.int32)


def rows_of(counts: Ints) -> Longs:
    """Row pointers of rows of these lengths."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr
