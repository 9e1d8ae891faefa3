"""The vectors of a generation, written in pieces of rows and mapped again: none is ever held whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.config import VectorType
from hippogpu.precision import ScaledRows, Vectors
from hippogpu.store.files import Entry, write_array, write_pieces
from hippogpu.store.generations import files_folder
from hippogpu.store.mapped import read_array
from hippogpu.store.snapshot import VECTOR_DTYPES, VECTORS


def write_vector_pieces(
    root: Path, role: str, shape: tuple[int, int], kind: VectorType, pieces: Iterable[Vectors]
) -> dict[str, Entry]:
    """The files of vectors of that role (rows, w) and type; the pieces are their rows in order."""
    folder, dtype = files_folder(root), VECTOR_DTYPES[kind]
    if kind != "int8":
        return {role: write_pieces(folder, role, shape, dtype, _floats(pieces))}
    # The scales are few bytes beside the rows: they are held until the rows are written.
    scales = np.empty(shape[0], np.float32)
    return {
        role: write_pieces(folder, role, shape, dtype, _values(pieces, scales)),
        VECTORS[role]: write_array(folder, VECTORS[role], scales),
    }


def map_vectors(root: Path, files: Mapping[str, Entry], role: str) -> Vectors:
    """Vectors that were just written, memory-mapped."""
    folder = files_folder(root)
    rows = read_array(folder, files[role])
    return ScaledRows(rows, read_array(folder, files[VECTORS[role]])) if rows.dtype == np.int8 else rows


def _floats(pieces: Iterable[Vectors]) -> Iterator[NDArray[Any]]:
    for piece in pieces:
        assert not isinstance(piece, ScaledRows)
        yield piece


def _values(pieces: Iterable[Vectors], scales: NDArray[np.float32]) -> Iterator[NDArray[Any]]:
    """The rows of each piece; its scales are put down."""
    first = 0
    for piece in pieces:
        assert isinstance(piece, ScaledRows)
        scales[first : first + len(piece.scales)] = piece.scales
        first += len(piece.scales)
        yield piece.values
