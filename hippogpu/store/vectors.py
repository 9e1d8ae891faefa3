"""Vectors by text: those of the current generation, and those encoded since, kept safe until the next commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hippogpu.store.files import sync_folder, write_table
from hippogpu.store.mapped import sha256_of
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
        places = [self._places.get(text) for text in texts]
        found = np.array([place is not None for place in places], bool)
        vectors = np.empty((int(found.sum()), self._width), np.float32)
        for out, place in enumerate(place for place in places if place is not None):
            vectors[out] = self._blocks[place[0]][place[1]]
        return found, vectors

    def keep(self, texts: Sequence[str], vectors: Floats) -> None:
        """Stores a block of fresh vectors durably."""
        flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, self._width)
        text = pa.array([t.encode("utf-8", "surrogatepass") for t in texts], pa.large_binary())
        write_table(self._folder, "vectors", pa.table({"text": text, "vector": column}))
        sync_folder(self._folder)
        self.know(texts, vectors)

    def clear(self) -> None:
        """Removes the segments: a commit holds their vectors now."""
        for path in self._folder.glob("vectors-*.arrow"):
            path.unlink()

    def _load(self, path: Path) -> None:
        if path.name != f"vectors-{sha256_of(path)[:16]}.arrow":
            self.spoiled += 1
            logger.warning("the stored vectors '%s' are damaged: removed, and their texts are encoded again", path)
            path.unlink()
            return
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        vectors = pc.list_flatten(table["vector"]).to_numpy().reshape(-1, self._width)
        texts: list[bytes] = table["text"].to_pylist()  # type: ignore[assignment]
        self.know([text.decode("utf-8", "surrogatepass") for text in texts], vectors)
