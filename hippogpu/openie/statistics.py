"""What was extracted from passages of different lengths: long ones give fewer triples a word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hippogpu.types import Record

LENGTHS = (50, 100, 200, 400, 800)


class LengthRow(NamedTuple):
    """Passages of more than the row before's most_words and at most this row's (None: any number) words.

    without : passages that were read and gave no triple
    failed  : passages without a record, or whose record is a failure; not counted in the sums and rates
    words, triples, entities, dropped are sums over the passages that were read
    """

    most_words: int | None
    passages: int
    without: int
    failed: int
    words: int
    triples: int
    entities: int
    dropped: int

    @property
    def triples_a_passage(self) -> float:
        return _ratio(self.triples, self.passages - self.failed)

    @property
    def entities_a_passage(self) -> float:
        return _ratio(self.entities, self.passages - self.failed)

    @property
    def triples_a_100_words(self) -> float:
        return 100 * _ratio(self.triples, self.words)


class ByLength:
    """Counts records by the length of their passage, one after another."""

    def __init__(self) -> None:
        self._sums = [_Sums() for _ in range(len(LENGTHS) + 1)]

    def add(self, words: int, record: Record | None) -> None:
        """One more passage of so many words, with its record, or None where it has none."""
        self._sums[bisect_left(LENGTHS, words)].add(words, record)

    def rows(self) -> tuple[LengthRow, ...]:
        """One row a range of lengths, shortest first, with the ranges that hold no passage."""
        return tuple(_row(most, row) for most, row in zip((*LENGTHS, None), self._sums, strict=True))


@dataclass(slots=True)
class _Sums:
    passages: int = 0
    without: int = 0
    failed: int = 0
    words: int = 0
    triples: int = 0
    entities: int = 0
    dropped: int = 0

    def add(self, words: int, record: Record | None) -> None:
        self.passages += 1
        if record is None or record.error is not None:
            self.failed += 1
            return
        self.without += not record.triples
        self.words += words
        self.triples += len(record.triples)
        self.entities += len(record.entities)
        self.dropped += len(record.drops)


def by_length(texts: Iterable[str], records: Iterable[Record | None]) -> tuple[LengthRow, ...]:
    """The rows of ByLength for texts and records that run in parallel and are read once.

    ValueError when one runs out before the other.
    """
    counted = ByLength()
    for text, record in zip(texts, records, strict=True):
        counted.add(word_count(text), record)
    return counted.rows()


def word_count(text: str) -> int:
    """How many words the text has: what spaces part, so a language that writes none has a few a passage."""
    return len(text.split())


def _row(most_words: int | None, sums: _Sums) -> LengthRow:
    return LengthRow(
        most_words,
        sums.passages,
        sums.without,
        sums.failed,
        sums.words,
        sums.triples,
        sums.entities,
        sums.dropped,
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
