"""Passages in a row, their words numbered in order of the alphabet and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.types import Ints, Longs
from hippogpu.words.splitting import words_of

# What is held at once for each word that is read, and for each distinct one: numbers and keys, and a table of texts.
_BYTES_A_WORD, _BYTES_A_DISTINCT = 48, 250
_PROGRESS_PASSAGES = 1024

Progress = Callable[[int, int], None]


class Block(NamedTuple):
    """Words of some passages in a row.

    offsets, letters : the distinct words, ascending by code point, as Arrow holds texts
    indptr           : (words + 1) int64; passages and counts (entries,) int32 of each word, passages ascending
    lengths          : (passages,) int32, how many words a passage has
    title_sizes      : (passages,) int32, how many distinct words its title has; titles (their sum,) int32, ascending
    """

    offsets: Longs
    letters: NDArray[np.uint8]
    indptr: Longs
    passages: Ints
    counts: Ints
    lengths: Ints
    title_sizes: Ints
    titles: Ints


def blocks_of(
    texts: Sequence[str], titles: Iterable[str], *, budget_bytes: int, on_progress: Progress | None = None
) -> Iterator[Block]:
    """The blocks of all passages, each as large as the budget allows, and of one passage at least."""
    reading = _Reading(0)
    for number, (text, title) in enumerate(zip(texts, titles, strict=True)):
        if reading.bytes > budget_bytes:
            yield reading.block()
            reading = _Reading(number)
        reading.take_in(text, title)
        if on_progress is not None and (number + 1) % _PROGRESS_PASSAGES == 0:
            on_progress(number + 1, len(texts))
    if on_progress is not None:
        on_progress(len(texts), len(texts))
    yield reading.block()


class _Numbers(dict[str, int]):
    """The number of each word, in the order in which they are first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class _Reading:
    """A block while its passages are read. bytes: what it takes until it is finished."""

    def __init__(self, first: int) -> None:
        self._first, self._numbers = first, _Numbers()
        self._rows: list[Ints] = []
        self._titles: list[Ints] = []
        self._words = 0

    @property
    def bytes(self) -> int:
        return _BYTES_A_WORD * self._words + _BYTES_A_DISTINCT * len(self._numbers)

    def take_in(self, text: str, title: str) -> None:
        row = self._numbered(words_of(text))
        self._rows.append(row)
        self._words += len(row)
        # A title is the beginning of its text, so that no word of it is new.
        self._titles.append(self._numbered(list(dict.fromkeys(words_of(title)))))

    def _numbered(self, words: list[str]) -> Ints:
        return np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))

    def block(self) -> Block:
        words = sorted(self._numbers)
        places = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        rank = np.empty(len(words), np.int32)
        rank[places] = np.arange(len(words), dtype=np.int32)
        lengths, sizes = (np.array([len(row) for row in rows], np.int32) for rows in (self._rows, self._titles))
        indptr, passages, counts = _counted(rank, self._rows, lengths)
        encoded = [word.encode() for word in words]
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in encoded], out=offsets[1:])
        letters = np.frombuffer(b"".join(encoded), np.uint8)
        titles = _ascending(rank[_joined(self._titles)], sizes)
        return Block(offsets, letters, indptr, passages + np.int32(self._first), counts, lengths, sizes, titles)


def _joined(rows: Sequence[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int32), *rows])


def _counted(rank: Ints, rows: Sequence[Ints], lengths: Ints) -> tuple[Longs, Ints, Ints]:
    """Row pointers by word, passages from 0 on, and how often each holds the word."""
    width = max(len(rows), 1)
    keys = rank[_joined(rows)].astype(np.int64)
    keys *= width
    keys += np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
    keys.sort()
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(first, append=len(keys)).astype(np.int32)
    words, passages = np.divmod(keys[first], width)
    indptr = np.zeros(len(rank) + 1, np.int64)
    np.cumsum(np.bincount(words, minlength=len(rank)), out=indptr[1:])
    return indptr, passages.astype(np.int32), counts


def _ascending(values: Ints, sizes: Ints) -> Ints:
    """Rows of so many values each, every one sorted."""
    rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return values[np.lexsort((values, rows))]
