"""Which passages have a word, how often: blocks of passages, merged by word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hippogpu.types import COUNT_TYPES, AnyInts, Ints, Longs, Ragged, WordCounts
from hippogpu.words.blocks import Block, Progress, blocks_of
from hippogpu.words.spool import Spool, Spooled
from hippogpu.words.texts import array_of, column_of

BUDGET_BYTES = 512 * 2**20


def count_words(
    texts: Sequence[str],
    titles: Iterable[str],
    *,
    budget_bytes: int = BUDGET_BYTES,
    scratch: Path | None = None,
    on_progress: Progress | None = None,
) -> WordCounts:
    """Which words stand in each of P passages and in their titles; a function of the texts alone.

    texts, titles : one a passage; a title, which may be empty, is the beginning of its text
    scratch       : the folder for what waits beyond the budget, in a file without a name; without one it waits in
                    memory
    Beyond the texts and the result it takes about budget_bytes, and a table of the distinct words (60 bytes each).
    """
    with Spool(scratch, most_bytes=budget_bytes // 4) as spool:
        blocks: list[list[Spooled]] = []
        distinct = _Distinct(budget_bytes // 8)
        for block in blocks_of(texts, titles, budget_bytes=budget_bytes // 2, on_progress=on_progress):
            distinct.take_in(array_of(block.offsets, block.letters))
            blocks.append([spool.put(array) for array in block])
        return _merged(distinct.ascending(), blocks, spool)


class _Distinct:
    """Distinct words of many columns; no more than most_bytes of them wait to be compared."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._held_bytes = most_bytes, 0
        self._known: pa.Array[Any] = pa.array([], pa.large_string())
        self._waiting: list[pa.Array[Any]] = []

    def take_in(self, words: pa.Array[Any]) -> None:
        self._waiting.append(words)
        self._held_bytes += words.nbytes
        if self._held_bytes > self._most_bytes:
            self._compare()

    def _compare(self) -> None:
        self._known = pc.unique(pa.concat_arrays([self._known, *self._waiting]))
        self._waiting, self._held_bytes = [], 0

    def ascending(self) -> pa.Array[Any]:
        """All of them, by code point."""
        self._compare()
        return self._known.take(pc.array_sort_indices(self._known))


def _merged(words: pa.Array[Any], blocks: Sequence[Sequence[Spooled]], spool: Spool) -> WordCounts:
    """The entries of all blocks under the numbers of all words; blocks come in passage order, and so do passages."""
    places = [_places(words, spool, block) for block in blocks]
    indptr, most = _row_pointers(len(words), places, blocks, spool)
    passages: Ints = np.empty(int(indptr[-1]), np.int32)
    counts: AnyInts = np.empty(len(passages), next(kind for kind in COUNT_TYPES if most <= np.iinfo(kind).max))
    free, rows = indptr[:-1].copy(), []
    for at, spooled in zip(places, blocks, strict=True):
        block = _read(spool, spooled)
        held = np.diff(block.indptr)
        where = np.repeat(free[at] - block.indptr[:-1], held) + np.arange(len(block.passages))
        passages[where], counts[where] = block.passages, block.counts
        free[at] += held
        rows.append((block.lengths, block.title_sizes, at[block.titles]))
    lengths, sizes, titles = (np.concatenate(column) for column in zip(*rows, strict=True))
    return WordCounts(column_of(words), Ragged(indptr, passages), counts, lengths, Ragged(_pointers(sizes), titles))


def _row_pointers(
    words: int, places: Sequence[Ints], blocks: Sequence[Sequence[Spooled]], spool: Spool
) -> tuple[Longs, int]:
    """Where the entries of each word begin, and how often a passage has a word at most."""
    sizes: Longs = np.zeros(words, np.int64)
    most = 0
    for at, spooled in zip(places, blocks, strict=True):
        block = _read(spool, spooled)
        sizes[at] += np.diff(block.indptr)
        most = max(most, int(block.counts.max(initial=0)))
    return _pointers(sizes), most


def _pointers(sizes: AnyInts) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _read(spool: Spool, spooled: Sequence[Spooled]) -> Block:
    return Block(*map(spool.get, spooled))


def _places(words: pa.Array[Any], spool: Spool, spooled: Sequence[Spooled]) -> Ints:
    """The number that each word of a block has among all."""
    found = pc.index_in(array_of(*map(spool.get, spooled[:2])), value_set=words)
    numbers: Ints = found.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return numbers
