"""The graph as the kernels read it: weights by the byte where they repeat, long rows cut into parts. NumPy only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.types import AnyInts, Bools, Csr, Floats, Ints, Longs

# Rows with more edges are cut into parts of at most this many: a hub must not keep one warp busy alone.
LONGEST_ROW = 512
BOOK = 256
# Weights that the book is chosen from: any book is exact, a sample only makes it less than the best.
SAMPLE = 2**20


class Edges(NamedTuple):
    """Compressed rows; the edges of a row with a weight in the book come first (kernels/common.cuh).

    indptr (n+1) int64 · exact_before (n+1) int64 edges outside the book in all rows before · columns int32
    codes uint8 of the edges in the book · exact float32 of the others · book (256,) float32
    """

    indptr: Longs
    exact_before: Longs
    columns: Ints
    codes: NDArray[np.uint8]
    exact: Floats
    book: Floats


class Parts(NamedTuple):
    """Long rows in parts: row long_rows[i] is the parts part_ptr[i]…part_ptr[i+1]; all int64.

    Part p holds the edges part_first[p]…part_last[p] of row part_row[p].
    """

    long_rows: Longs
    part_ptr: Longs
    part_row: Longs
    part_first: Longs
    part_last: Longs


def compress(graph: Csr) -> Edges:
    """The edges with their 256 most frequent weights as one byte each; every weight stays exact.

    Sixteen bits for each weight were considered and left: over the cosines in [0.8, 1] they round by up to 1.5e-6, a
    relative change of δ = 1.9e-6 of P, and a solution moves by up to 2·d·δ ÷ (1 − d) in L1: at damping 0.5 that is
    3.8e-6, where a mass may be off by 1e-6.
    """
    indptr, weights = graph.indptr, graph.weights
    book, codes, coded = _codes(weights)
    earlier = np.zeros(len(weights) + 1, np.int64)
    np.cumsum(~coded, out=earlier[1:])
    exact_before = earlier[indptr]
    columns = np.empty(len(weights), np.int32)
    columns[_places(indptr, exact_before, earlier[:-1], coded)] = graph.indices
    return Edges(indptr, exact_before, columns, codes[coded], weights[~coded], book)


def _codes(weights: Floats) -> tuple[Floats, NDArray[np.uint8], Bools]:
    """The book (256,), every weight's number in it, and whether it stands there."""
    sample = weights[:: max(1, len(weights) // SAMPLE)]
    values, counts = np.unique(sample, return_counts=True)
    frequent = np.sort(values[np.argsort(-counts, kind="stable")[:BOOK]])
    # Filled up with its last value, it stays in order.
    book = np.full(BOOK, frequent[-1] if len(frequent) else 0.0, np.float32)
    book[: len(frequent)] = frequent
    codes = np.minimum(np.searchsorted(book, weights), BOOK - 1)
    return book, codes.astype(np.uint8), book[codes] == weights


def _places(indptr: Longs, exact_before: Longs, earlier: Longs, coded: Bools) -> AnyInts:
    """Where each edge goes: those in the book to the front of their row, the others behind, both in their order.

    earlier (nnz,) edges outside the book before each edge
    """
    lengths = np.diff(indptr)
    rank = earlier - np.repeat(exact_before[:-1], lengths)
    first_exact = np.repeat(indptr[1:] - np.diff(exact_before), lengths)
    return np.where(coded, np.arange(len(coded)) - rank, first_exact + rank)


def cut(indptr: Longs, longest: int = LONGEST_ROW) -> Parts:
    """The rows of more than `longest` edges, in parts of at most that many."""
    lengths = np.diff(indptr)
    long_rows = np.flatnonzero(lengths > longest).astype(np.int64)
    counts = -(-lengths[long_rows] // longest)
    part_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    part_row = np.repeat(long_rows, counts)
    number = np.arange(len(part_row), dtype=np.int64) - np.repeat(part_ptr[:-1], counts)
    first = indptr[part_row] + number * longest
    return Parts(long_rows, part_ptr, part_row, first, np.minimum(first + longest, indptr[part_row + 1]))


def expand(edges: Edges) -> Csr:
    """The graph again, columns in the order of the compressed rows: ascending only within the two kinds of edges."""
    exact = np.diff(edges.exact_before)
    kinds = np.stack([np.diff(edges.indptr) - exact, exact], axis=1).ravel()
    coded = np.repeat(np.tile([True, False], len(exact)), kinds)
    weights = np.empty(len(coded), np.float32)
    weights[coded] = edges.book[edges.codes]
    weights[~coded] = edges.exact
    return Csr(edges.indptr, edges.columns, weights)
