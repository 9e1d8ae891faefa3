"""Vectors as a cell and a byte for each of a few pieces: what is learned of a sample, and what each vector becomes.

An inverted file with product quantisation of what the centroid leaves over: Jégou, Douze, Schmid (2011). Learned from
facts at even spaces and summed in an order of our own, so it is a pure function of the vectors: no chance, and neither
threads nor the memory budget change a byte.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.nearest.clustering import OnRound, centroids_of, evenly_spaced
from hippogpu.nearest.nearest_row import Table, nearest_rows, table_of
from hippogpu.precision import Vectors, float_rows
from hippogpu.store.fact_cells import CODE_VALUES
from hippogpu.types import Floats, Ints

# Learned from as many rows as fill this many bytes in float32, whatever the budget: it decides what is learned.
SAMPLE_BYTES = 2**28
# Rows of the sample a cell, at least: fewer would make a centroid of single facts.
ROWS_A_CELL = 16
MOST_CELLS = 2**14
# So many axes are one byte, up to the width where that makes this many bytes; wider vectors have wider pieces.
PIECE, MOST_PIECES = 8, 64
ROUNDS, CODE_ROUNDS, CODE_SAMPLE = 10, 12, 2**15


class Quantiser(NamedTuple):
    """centroids (cells, w) float32 · codebooks (M, 256, d) float32 of pieces of what they leave over."""

    centroids: Floats
    codebooks: Floats


def cells_for(facts: int, width: int) -> int:
    """Cells for so many facts: the power of two nearest to their root, as far as a sample serves."""
    sampled = sample_rows(facts, width)
    near = 2 ** round(math.log2(max(facts, 1)) / 2)
    return int(max(1, min(near, MOST_CELLS, sampled // ROWS_A_CELL)))


def sample_rows(facts: int, width: int) -> int:
    """Facts that are learned from."""
    return min(facts, max(CODE_VALUES, SAMPLE_BYTES // (4 * width)))


def pieces_for(width: int) -> tuple[int, int]:
    """Bytes a fact, and axes of a byte: 8 up to a width of 512."""
    size = max(PIECE, -(-width // MOST_PIECES))
    return -(-width // size), size


def learned(vectors: Vectors, *, on_round: OnRound | None = None) -> Quantiser:
    """The quantiser of the rows (F ≥ 1, w), learned from those at even spaces."""
    facts, width = vectors.shape
    sample = float_rows(vectors, evenly_spaced(facts, sample_rows(facts, width)))
    cells, (pieces, size) = cells_for(facts, width), pieces_for(width)
    whole = ROUNDS + pieces

    def done(rounds: int, _: int) -> None:
        if on_round is not None:
            on_round(rounds, whole)

    centroids = centroids_of(sample, cells, rounds=ROUNDS, unit=True, on_round=done)
    some = sample[evenly_spaced(len(sample), min(len(sample), CODE_SAMPLE))]
    left = some - centroids[nearest_rows(some, table_of(centroids))[0]]
    codebooks = np.zeros((pieces, CODE_VALUES, size), np.float32)
    for number in range(pieces):
        codebooks[number] = centroids_of(piece_of(left, number, size), CODE_VALUES, rounds=CODE_ROUNDS)
        done(ROUNDS + number + 1, whole)
    return Quantiser(centroids, codebooks)


class Tables(NamedTuple):
    """A quantiser in the order in which products read it."""

    quantiser: Quantiser
    cells: Table
    pieces: tuple[Table, ...]


def tables_of(quantiser: Quantiser) -> Tables:
    pieces = tuple(table_of(codebook) for codebook in quantiser.codebooks)
    return Tables(quantiser, table_of(quantiser.centroids), pieces)


def quantised(rows: Floats, tables: Tables) -> tuple[Ints, NDArray[np.uint8]]:
    """The cell of each row (n, w), (n,) int32, and its bytes (n, M) uint8."""
    cells, _ = nearest_rows(rows, tables.cells)
    left = rows - tables.quantiser.centroids[cells]
    size = tables.quantiser.codebooks.shape[2]
    codes = np.empty((len(rows), len(tables.pieces)), np.uint8)
    for number, table in enumerate(tables.pieces):
        codes[:, number] = nearest_rows(piece_of(left, number, size), table)[0]
    return cells, codes


def piece_of(rows: Floats, number: int, size: int) -> Floats:
    """Axes number·size … of the rows, (n, size); beyond the width they are zeros."""
    piece = np.zeros((len(rows), size), np.float32)
    inside = rows[:, number * size : (number + 1) * size]
    piece[:, : inside.shape[1]] = inside
    return piece
