"""Vectors by text: those of the current generation, and those encoded since, kept safe until the next commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from hippogpu.disk import failures_of, sync_folder
from hippogpu.errors import IndexDamagedError
from hippogpu.store.columns import Columns, read_columns
from hippogpu.store.files import Entry, write_table
from hippogpu.store.mapped import damaged, mapped
from hippogpu.text import content_key
from hippogpu.types import Bools, Floats

logger = logging.getLogger("hippogpu.store")


class StoredVectors:
    """A cache of vectors by text over a folder of segments.

    Each segment is an Arrow file of texts and vectors named by its content, in a folder for the encoder and width. A
    segment that a crash or a flipped bit spoiled is removed (its texts are encoded again) and counted in .spoiled.
    """

    def __init__(self, folder: Path, encoder: str, width: int) -> None:
        self._folder = folder / content_key(f"{encoder}\n{width}")[:16]
        self._width = width
        vector = pa.list_(pa.float32(), width)
        self._schema = pa.schema([("text", pa.large_binary()), ("vector", vector)])
        if folder.is_symlink() or self._folder.is_symlink():
            raise IndexDamagedError(f"'{self._folder}' is a link, no folder. Remove it: its texts are encoded again.")
        self._blocks: list[Floats] = []
        self._places: dict[str, tuple[int, int]] = {}
        self.spoiled = 0
        for path in sorted(self._folder.glob("vectors-*.arrow")):
            self._load(path)

    def know(self, texts: Iterable[str], vectors: Floats) -> None:
        """Takes in vectors that are stored elsewhere, such as those of the current generation."""
        block = len(self._blocks)
        self._blocks.append(vectors)
        for row, text in enumerate(texts):
            self._places[text] = (block, row)

    def get(self, texts: Sequence[str]) -> tuple[Bools, Floats]:
        """Which of the texts are known, and the vectors of those, in the same order."""
        nowhere = (-1, -1)
        places = np.array([self._places.get(text, nowhere) for text in texts], np.int64).reshape(-1, 2)
        found = places[:, 0] >= 0
        block, row = places[found].T
        vectors = np.empty((len(row), self._width), np.float32)
        for number in np.unique(block):
            here = block == number
            vectors[here] = self._blocks[number][row[here]]
        return found, vectors

    def keep(self, texts: Sequence[str], vectors: Floats) -> None:
        """Stores a block of fresh vectors durably."""
        flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, self._width)
        text = pa.array([t.encode("utf-8", "surrogatepass") for t in texts], pa.large_binary())
        write_table(self._folder, "vectors", pa.table([text, column], schema=self._schema))
        with failures_of(self._folder):
            sync_folder(self._folder)
        self.know(texts, vectors)

    def clear(self) -> None:
        """Removes the segments: a commit holds their vectors now."""
        for path in self._folder.glob("vectors-*.arrow"):
            path.unlink()

    def _load(self, path: Path) -> None:
        try:
            columns = self._read(path)
        except IndexDamagedError:
            self.spoiled += 1
            logger.warning("the stored vectors '%s' are damaged: removed, and their texts are encoded again", path)
            with failures_of(path):
                path.unlink()
            return
        self.know(columns.texts["text"], columns.numbers["vector"])

    def _read(self, path: Path) -> Columns:
        """The texts and vectors of a segment; IndexDamagedError where its bytes are not those that were written."""
        entry = Entry(path.name, path.lstat().st_size, "", "arrow", ())
        file = mapped(path.parent, entry)
        if path.name != f"vectors-{sha256(file).hexdigest()[:16]}.arrow":
            raise damaged(path, "it was altered")
        return read_columns(path, file, self._schema)[0]
