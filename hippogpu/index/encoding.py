"""Vectors of every passage, phrase and fact, each distinct text encoded once, in windows that fit the memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hippogpu.config import IndexConfig, VectorType
from hippogpu.embed import Embedder, count_truncated
from hippogpu.embed.encode import BATCH_TEXTS, encoded_blocks, reading_work
from hippogpu.precision import Vectors, arrays_of, empty_rows, kind_of, rounded
from hippogpu.store import Passages, StoredVectors
from hippogpu.store.files import Entry
from hippogpu.store.text_keys import Keys, first_of_equal, keys_of_block
from hippogpu.store.vector_files import map_vectors, write_vector_pieces
from hippogpu.types import Ints, Longs, Tables

OnProgress = Callable[[int, int], None]

# Texts of a window, at most: those that are sorted by length together, so that blocks are of like texts.
WINDOW_TEXTS = 1 << 18
# A character of a window takes up to 4 bytes, twice while it is read.
_CHARACTER_BYTES = 16
# Blocks are written together up to so many bytes, and at the latest so long after the first was encoded.
KEPT_BYTES, KEPT_SECONDS = 8 * 2**20, 2.0
_SURVEYED_TEXTS, _GATHERED_ROWS = 1 << 16, 1 << 14


class Encoded(NamedTuple):
    """The three blocks of vectors of a generation, as they are stored, and their files.

    truncated : how many of the texts that were encoded now are longer than the encoder reads
    """

    passage: Vectors
    phrase: Vectors
    fact: Vectors
    files: Mapping[str, Entry]
    truncated: int


def encode(
    root: Path,
    passages: Passages,
    tables: Tables,
    *,
    embedder: Embedder,
    known: StoredVectors,
    config: IndexConfig,
    budget_bytes: int,
    on_progress: OnProgress | None = None,
) -> Encoded:
    """Vectors of every passage, phrase and fact, written as the settings say; what is known is not encoded again.

    A text is encoded once for each type that its vectors are stored in. Windows of texts are encoded one after another,
    the shortest first in each; what they leave in `known` is there after a kill. Beside what known holds, memory is the
    byte budget and some 64 bytes a text. Progress counts characters that the encoder reads.
    """
    # An empty phrase (kept by the oracle profile) is encoded like any other text.
    texts: dict[str, tuple[VectorType, Sequence[str]]] = {
        "phrase_vectors": (config.phrase_vectors, tables.phrases),
        "fact_vectors": (config.fact_vectors, tables.facts.text),
        "passage_vectors": (config.passage_vectors, passages.wholes),
    }
    kinds = list(dict.fromkeys(kind for kind, _ in texts.values()))
    parts = [_survey(kind, [some for its, some in texts.values() if its == kind], known, embedder) for kind in kinds]
    known.forget_places()
    meter = _Meter(sum(int(part.work.sum()) for part in parts), on_progress)
    truncated = sum(_encode_missing(part, embedder, known, budget_bytes, meter) for part in parts)
    files: dict[str, Entry] = {}
    for part in parts:
        first = 0
        for role, (kind, some) in texts.items():
            if kind == part.kind:
                places = part.places[first : first + len(some)]
                files |= _written(root, role, places, kind, known, embedder.width)
                first += len(some)
    phrase, fact, passage = (map_vectors(root, files, role) for role in texts)
    return Encoded(passage, phrase, fact, files, truncated)


class _Survey(NamedTuple):
    """What is known of all texts whose vectors are stored in one type.

    places  (N,) where the vector of each text is in the cache, −1 where it is not yet
    missing (M,) rows of distinct texts to be encoded, ascending · lengths and work (M,) of each, in characters
    same    rows of texts that are equal to one of those · same_as that one
    """

    kind: VectorType
    texts: _Joined
    places: Longs
    missing: Longs
    lengths: Ints
    work: Longs
    same: Longs
    same_as: Longs


class _Joined:
    """Texts of several sequences, one after another."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def some(self, rows: Longs) -> list[str]:
        """The texts of those rows."""
        which = np.searchsorted(self._ends, rows, side="right")
        starts = np.concatenate([[0], self._ends])[which]
        return [self._parts[part][row] for part, row in zip(which.tolist(), (rows - starts).tolist(), strict=True)]


def _survey(kind: VectorType, parts: Sequence[Sequence[str]], known: StoredVectors, embedder: Embedder) -> _Survey:
    texts = _Joined(parts)
    keys, lengths = _keys_and_lengths(texts)
    places = known.places(keys, kind)
    unknown = np.flatnonzero(places < 0)
    keys = keys[unknown] if len(unknown) < len(keys) else keys
    first = first_of_equal(keys)
    del keys
    is_first = first == np.arange(len(unknown))
    missing = unknown[is_first]
    same, same_as = unknown[~is_first], unknown[first[~is_first]]
    work = reading_work(lengths[missing], embedder)
    return _Survey(kind, texts, places, missing, lengths[missing], work, same, same_as)


def _keys_and_lengths(texts: _Joined) -> tuple[Keys, Ints]:
    keys, lengths = np.empty((len(texts), 2), np.uint64), np.empty(len(texts), np.int32)
    some, first = iter(texts), 0
    while block := list(islice(some, _SURVEYED_TEXTS)):
        here = slice(first, first + len(block))
        keys[here], lengths[here] = keys_of_block(block), [len(text) for text in block]
        first += len(block)
    return keys, lengths


class _Meter:
    """Progress in characters, from 0; without anything to do there is none."""

    def __init__(self, whole: int, on_progress: OnProgress | None) -> None:
        self._done, self._whole, self._on_progress = 0, whole, on_progress
        self.add(0)

    def add(self, work: int) -> None:
        self._done += work
        if self._on_progress is not None and self._whole:
            self._on_progress(self._done, self._whole)


def _encode_missing(survey: _Survey, embedder: Embedder, known: StoredVectors, budget_bytes: int, meter: _Meter) -> int:
    """Encodes what is missing and fills in its places; how many of these texts are longer than the encoder reads."""
    truncated = 0
    with _keeper(known, survey.places) as keeper:
        for window in windows(survey.lengths, budget_bytes // _CHARACTER_BYTES):
            rows = survey.missing[window]
            texts = survey.texts.some(rows)
            for block, vectors, work in encoded_blocks(texts, embedder, batch_texts=BATCH_TEXTS):
                fresh = [texts[i] for i in block]
                keeper.take(rows[block], keys_of_block(fresh), rounded(vectors, survey.kind))
                truncated += count_truncated(fresh, embedder)
                meter.add(work)
    survey.places[survey.same] = survey.places[survey.same_as]
    return truncated


def windows(lengths: Ints, most_characters: int) -> Iterator[slice]:
    """Runs of texts of that many characters at most (or of one text), and of WINDOW_TEXTS texts at most."""
    begin = 0
    while begin < len(lengths):
        ahead = np.cumsum(lengths[begin : begin + WINDOW_TEXTS], dtype=np.int64)
        end = begin + max(1, int(np.searchsorted(ahead, most_characters, side="right")))
        yield slice(begin, end)
        begin = end


class _Keeper:
    """Collects blocks of fresh vectors, and puts down their places when they are stored."""

    def __init__(self, known: StoredVectors, places: Longs) -> None:
        self._known, self._places = known, places
        self._blocks: list[tuple[Longs, Keys, Vectors]] = []
        self._bytes, self._since = 0, 0.0

    def take(self, rows: Longs, keys: Keys, vectors: Vectors) -> None:
        if not self._blocks:
            self._since = time.monotonic()
        self._blocks.append((rows, keys, vectors))
        self._bytes += vectors.nbytes
        if self._bytes >= KEPT_BYTES or time.monotonic() - self._since >= KEPT_SECONDS:
            self.store()

    def store(self) -> None:
        """Stores what was collected."""
        if not self._blocks:
            return
        rows, keys, vectors = zip(*self._blocks, strict=True)
        self._blocks, self._bytes = [], 0
        self._places[np.concatenate(rows)] = self._known.keep_keys(np.concatenate(keys), _joined(vectors))


@contextmanager
def _keeper(known: StoredVectors, places: Longs) -> Iterator[_Keeper]:
    """A keeper that stores what it has also when the encoder fails."""
    keeper = _Keeper(known, places)
    try:
        yield keeper
    finally:
        keeper.store()


def _joined(parts: Sequence[Vectors]) -> Vectors:
    rows, width = sum(part.shape[0] for part in parts), parts[0].shape[1]
    made, first = empty_rows(rows, width, kind_of(parts[0])), 0
    for part in parts:
        for into, values in zip(arrays_of(made), arrays_of(part), strict=True):
            into[first : first + len(values)] = values
        first += part.shape[0]
    return made


def _written(
    root: Path, role: str, places: Longs, kind: VectorType, known: StoredVectors, width: int
) -> dict[str, Entry]:
    """The files of one role, gathered from the cache a piece at a time."""
    starts = range(0, len(places), _GATHERED_ROWS)
    pieces = (known.rows(places[first : first + _GATHERED_ROWS], kind) for first in starts)
    return write_vector_pieces(root, role, (len(places), width), kind, pieces)
