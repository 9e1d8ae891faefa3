"""Vectors by text: those of the current generation, and those encoded since, kept safe until the next commit."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hippogpu.config import VectorType
from hippogpu.disk import failures_of, sync_folder, unwritable
from hippogpu.errors import IndexDamagedError
from hippogpu.precision import Vectors, arrays_of, empty_rows, float_rows, kind_of, part, rounded
from hippogpu.store.columns import read_columns
from hippogpu.store.files import Entry, write_array, write_pieces
from hippogpu.store.mapped import damaged, mapped, read_array
from hippogpu.store.segments import HEADER_BYTES, packed, row_bytes, unpacked
from hippogpu.store.text_keys import KeyPlaces, Keys, keys_of, keys_of_block, sorted_places
from hippogpu.text import content_key
from hippogpu.types import Bools, Floats, Longs

logger = logging.getLogger("hippogpu.store")

_SEGMENT = re.compile(r"(?P<kind>float32|float16|int8)-(?P<sha256>[0-9a-f]{16})\.npy")
_SHIFT = 32
# So many segments of one type and of about one size become one, unless they are large: every file that is mapped is an
# open one, and a system allows a process about a thousand.
_TOGETHER, _SIZE_BITS, _LARGE_BYTES = 16, 4, 1 << 28
# Why a segment cannot be opened though nothing is wrong with it.
_NOT_ITS_OWN = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES)


class _Source(NamedTuple):
    """Rows that are at hand or mapped, of one type, and the keys of their texts."""

    kind: VectorType
    keys: Keys
    rows: Vectors


class _Segment(NamedTuple):
    """A file of the folder, its size, and the numbers of the sources that lie in it, one behind another."""

    path: Path
    bytes: int
    sources: tuple[int, ...]


class StoredVectors:
    """A cache of vectors by text over a folder of segments, one folder for an encoder and width.

    A segment is an array of bytes, a row a text: its key, its vector in one of the stored types, and the scale of an
    int8 row; the file's name tells the type and the SHA-256. A segment that a crash or a flipped bit spoiled is removed
    (its texts are encoded again) and counted in .spoiled. Small segments are put together as they become many.
    Segments of texts and float32 rows in Arrow files, as versions before format 3 wrote them, are read too.

    In memory a text takes 24 bytes, and 16 more while it is sorted in; vectors stay on disk.
    """

    def __init__(self, folder: Path, encoder: str, width: int) -> None:
        self._folder = folder / content_key(f"{encoder}\n{width}")[:16]
        self._width = width
        if folder.is_symlink() or self._folder.is_symlink():
            raise IndexDamagedError(f"'{self._folder}' is a link, no folder. Remove it: its texts are encoded again.")
        self._sources: list[_Source] = []
        self._places: dict[VectorType, KeyPlaces] = {}
        self._small: dict[tuple[VectorType, int], list[_Segment]] = {}
        self.spoiled = 0
        for path in self._segments():
            self._load(path)

    def know(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Takes in vectors that are stored elsewhere, such as those of the current generation."""
        self._take(keys_of(texts, len(texts)), vectors)

    def places(self, keys: Keys, kind: VectorType) -> Longs:
        """Where the vectors of those texts are, (rows,) int64, −1 where none can be stored as that type.

        What is stored in that type serves, and what is stored in float32: a row in float16 says not what it would have
        been in int8.
        """
        if kind not in self._places:
            serving = [(number, one) for number, one in enumerate(self._sources) if one.kind in (kind, "float32")]
            self._places[kind] = sorted_places(
                [one.keys for _, one in serving], [_places(number, len(one.keys)) for number, one in serving]
            )
        return self._places[kind].find(keys)

    def forget_places(self) -> None:
        """Lets the sorted keys go, which the next call of places makes again."""
        self._places.clear()

    def rows(self, places: Longs, kind: VectorType) -> Vectors:
        """The vectors at those places as that type."""
        made = empty_rows(len(places), self._width, kind)
        sources = places >> _SHIFT
        for number in np.unique(sources):
            here = np.flatnonzero(sources == number)
            source = self._sources[int(number)]
            picked = part(source.rows, places[here] & ((1 << _SHIFT) - 1))
            picked = picked if source.kind == kind else rounded(float_rows(picked, slice(None)), kind)
            for into, values in zip(arrays_of(made), arrays_of(picked), strict=True):
                into[here] = values
        return made

    def get(self, texts: Sequence[str]) -> tuple[Bools, Floats]:
        """Which of the texts are known in float32, and the vectors of those, in the same order."""
        places = self.places(keys_of_block(texts), "float32")
        found = places >= 0
        return found, float_rows(self.rows(places[found], "float32"), slice(None))

    def keep(self, texts: Sequence[str], vectors: Vectors) -> Longs:
        """Stores a block of fresh vectors durably, as the type they have; their places."""
        return self.keep_keys(keys_of_block(texts), vectors)

    def keep_keys(self, keys: Keys, vectors: Vectors) -> Longs:
        """As keep, for the keys of the texts."""
        kind, number = kind_of(vectors), len(self._sources)
        entry = write_array(self._folder, kind, packed(keys, vectors))
        with failures_of(self._folder):
            sync_folder(self._folder)
        self._take(*unpacked(read_array(self._folder, entry), kind))
        self._note(kind, _Segment(self._folder / entry.file, entry.bytes, (number,)))
        return _places(number, len(keys))

    def clear(self) -> None:
        """Removes the segments: a commit holds their vectors now."""
        for path in self._segments():
            path.unlink()

    def _take(self, keys: Keys, vectors: Vectors) -> None:
        kind = kind_of(vectors)
        self._sources.append(_Source(kind, keys, vectors))
        for stale in [one for one in self._places if kind in (one, "float32")]:
            del self._places[stale]

    def _note(self, kind: VectorType, segment: _Segment) -> None:
        """A segment that is there now; where it makes too many of its size, those become one."""
        if segment.bytes >= _LARGE_BYTES:
            return
        alike = self._small.setdefault((kind, segment.bytes.bit_length() // _SIZE_BITS), [])
        alike.append(segment)
        if len(alike) >= _TOGETHER:
            some, alike[:] = list(alike), []
            self._note(kind, self._together(kind, some))

    def _together(self, kind: VectorType, some: Sequence[_Segment]) -> _Segment:
        """Segments as one, which is there before they go; places of their rows stay what they are."""
        numbers = [number for segment in some for number in segment.sources]
        ends = np.cumsum([0, *(len(self._sources[number].keys) for number in numbers)]).tolist()
        pieces = (packed(self._sources[number].keys, self._sources[number].rows) for number in numbers)
        shape = ends[-1], row_bytes(kind, self._width)
        entry = write_pieces(self._folder, kind, shape, "|u1", pieces)
        with failures_of(self._folder):
            sync_folder(self._folder)
        whole = read_array(self._folder, entry)
        for number, first, last in zip(numbers, ends[:-1], ends[1:], strict=True):
            self._sources[number] = _Source(kind, *unpacked(whole[first:last], kind))
        for segment in some:
            with failures_of(segment.path):
                segment.path.unlink(missing_ok=True)
        return _Segment(self._folder / entry.file, entry.bytes, tuple(numbers))

    def _segments(self) -> Iterator[Path]:
        yield from sorted(self._folder.glob("vectors-*.arrow"))
        yield from sorted(path for path in self._folder.glob("*.npy") if _SEGMENT.fullmatch(path.name))

    def _load(self, path: Path) -> None:
        number = len(self._sources)
        try:
            self._take(*(self._read_arrow(path) if path.suffix == ".arrow" else self._read(path)))
        except IndexDamagedError as error:
            why = error.__cause__
            if isinstance(why, OSError) and why.errno in _NOT_ITS_OWN:
                raise unwritable(path, why) from why
            self.spoiled += 1
            logger.warning("the stored vectors '%s' are damaged: removed, and their texts are encoded again", path)
            with failures_of(path):
                path.unlink()
            return
        if path.suffix == ".npy":
            self._note(self._sources[number].kind, _Segment(path, path.lstat().st_size, (number,)))

    def _read(self, path: Path) -> tuple[Keys, Vectors]:
        """The keys and vectors of a segment; IndexDamagedError where its bytes are not those that were written."""
        name = _SEGMENT.fullmatch(path.name)
        assert name is not None
        kind: VectorType = name["kind"]  # type: ignore[assignment]
        size, wide = path.lstat().st_size, row_bytes(kind, self._width)
        entry = Entry(path.name, size, "", "|u1", ((size - HEADER_BYTES) // wide, wide))
        if not sha256(mapped(path.parent, entry)).hexdigest().startswith(name["sha256"]):
            raise damaged(path, "it was altered")
        return unpacked(read_array(path.parent, entry), kind)

    def _read_arrow(self, path: Path) -> tuple[Keys, Vectors]:
        """As _read, for a segment of a version before format 3."""
        schema = pa.schema([("text", pa.large_binary()), ("vector", pa.list_(pa.float32(), self._width))])
        file = mapped(path.parent, Entry(path.name, path.lstat().st_size, "", "arrow", ()))
        if path.name != f"vectors-{sha256(file).hexdigest()[:16]}.arrow":
            raise damaged(path, "it was altered")
        columns, rows = read_columns(path, file, schema)
        return keys_of(columns.texts["text"], rows), columns.numbers["vector"]


def _places(source: int, rows: int) -> Longs:
    return np.arange(rows, dtype=np.int64) + (source << _SHIFT)
