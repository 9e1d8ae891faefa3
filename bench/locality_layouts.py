"""Layouts of a graph's edges in fewer bytes, and a step that reads them: a run of rows is decoded, then multiplied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hippogpu.backends import cpu_step
from hippogpu.types import AnyFloats, Csr, Floats, Ints, Longs

# Edges that are decoded at once: columns and weights stay in the nearest caches.
RUN = 4096
# Cosines have so many steps between the threshold and 1; the other codes number a book of exact weights.
STEPS, LEAST = 65_280, 0.8
ESCAPE = 65_535
_TWO, _HALF = cpu_step._TWO, cpu_step._HALF


class Coded(NamedTuple):
    """Columns as a stream that begins for row i at starts[i]; weights of row i from places[i] on; a book (256,)."""

    columns: NDArray[Any]
    weights: NDArray[Any]
    starts: Longs
    places: Longs
    book: Floats

    @property
    def nbytes(self) -> int:
        """Bytes of columns and weights. Where a stream's rows begin, 8 bytes a node, comes on top."""
        return self.columns.nbytes + self.weights.nbytes


class Layout(NamedTuple):
    """How edges are coded, and the compiled function that decodes a run of rows."""

    code: Callable[[Csr, int], Coded]
    read: Any


def weight_codes(weights: Floats) -> tuple[NDArray[np.uint16], Floats]:
    """Cosines in [0.8, 1) to the nearest of 65,280 steps, off by at most 1.6e-6; other values out of a book, exactly.

    ValueError when there are more than 256 other values.
    """
    fine = (weights >= LEAST) & (weights < 1)
    book = np.unique(weights[~fine])
    if len(book) > ESCAPE + 1 - STEPS:
        raise ValueError(f"A book holds 256 weights outside [0.8, 1). Got {len(book)}.")
    codes = np.empty(len(weights), np.uint16)
    codes[fine] = np.minimum(np.rint((weights[fine].astype(np.float64) - LEAST) * (STEPS / (1 - LEAST))), STEPS - 1)
    codes[~fine] = STEPS + np.searchsorted(book, weights[~fine])
    return codes, np.concatenate([book, np.zeros(256 - len(book), np.float32)])


def decoded_weights(codes: NDArray[np.uint16], book: Floats) -> Floats:
    """The weights of the codes."""
    cosines = LEAST + codes * ((1 - LEAST) / STEPS)
    return np.where(codes < STEPS, cosines, book[np.maximum(codes, STEPS) - STEPS]).astype(np.float32)


def gaps_of(graph: Csr) -> Longs:
    """Column − the one before it in its row, (nnz,); of the first − the row number, its sign the lowest bit."""
    gaps = np.diff(graph.indices.astype(np.int64), prepend=0)
    rows = np.flatnonzero(np.diff(graph.indptr))
    heads = graph.indptr[rows]
    off = graph.indices[heads] - rows
    gaps[heads] = np.where(off < 0, -2 * off - 1, 2 * off)
    return gaps


def gap_bits(graph: Csr) -> dict[str, float]:
    """Bits that a column takes, by how gaps are written; `entropy` is that of the gaps' lengths and their free bits."""
    counts, far = gap_lengths(graph.indptr, graph.indices, ESCAPE)
    bits, share = np.arange(len(counts)), counts / max(counts.sum(), 1)
    there = share[share > 0]
    return {
        "int32": 32.0,
        "16 bits, escape": 16 + 32 * far / max(counts.sum(), 1),
        "varint": float(share @ (8 * np.maximum(-(-bits // 7), 1))),
        "group varint": float(share @ (8 * np.maximum(-(-bits // 8), 1))) + 2,
        "entropy": float(share @ np.maximum(bits - 1, 0) - there @ np.log2(there)),
    }


def _plain(graph: Csr, passages: int) -> Coded:
    return Coded(graph.indices, graph.weights, graph.indptr, graph.indptr, np.zeros(256, np.float32))


def _half(graph: Csr, passages: int) -> Coded:
    return _plain(graph, passages)._replace(weights=graph.weights.astype(np.float16).view(np.uint16))


def _fixed(graph: Csr, passages: int) -> Coded:
    codes, book = weight_codes(graph.weights)
    return _plain(graph, passages)._replace(weights=codes, book=book)


def _split(graph: Csr, passages: int) -> Coded:
    """Mentions weigh 1 and are not stored: all edges of passages, and those of phrases with the first P columns."""
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    stored = (rows >= passages) & (graph.indices >= passages)
    places = np.concatenate([[0], np.cumsum(np.bincount(rows[stored], minlength=graph.nodes))])
    # The head of a row says how many of its edges weigh 1; it takes no room beside the row pointers.
    return Coded(graph.indices, graph.weights[stored], graph.indptr, places, np.zeros(256, np.float32))


def _short_gaps(graph: Csr, passages: int) -> Coded:
    gaps = gaps_of(graph)
    far = gaps >= ESCAPE
    places = np.arange(len(gaps)) + 2 * (np.cumsum(far) - far)
    stream = np.empty(len(gaps) + 2 * int(far.sum()), np.uint16)
    stream[places] = np.where(far, ESCAPE, gaps)
    stream[places[far] + 1], stream[places[far] + 2] = gaps[far] & 0xFFFF, gaps[far] >> 16
    return _plain(graph, passages)._replace(columns=stream, starts=_starts(graph, places, len(stream)))


def _short_both(graph: Csr, passages: int) -> Coded:
    weights = _fixed(graph, passages)
    return _short_gaps(graph, passages)._replace(weights=weights.weights, book=weights.book)


def _varint(graph: Csr, passages: int) -> Coded:
    gaps = gaps_of(graph)
    sizes = np.maximum(-(-np.ceil(np.log2(gaps + 1.0)).astype(np.int64) // 7), 1)
    places = np.cumsum(sizes) - sizes
    stream = np.empty(int(sizes.sum()), np.uint8)
    for byte in range(int(sizes.max())):
        longer = sizes > byte
        more = np.where(sizes[longer] > byte + 1, 128, 0)
        stream[places[longer] + byte] = ((gaps[longer] >> (7 * byte)) & 127) | more
    return _plain(graph, passages)._replace(columns=stream, starts=_starts(graph, places, len(stream)))


def _starts(graph: Csr, places: Longs, length: int) -> Longs:
    return np.append(places, length)[graph.indptr]


@intrinsic
def _float_of(typing: Any, bits: Any) -> Any:
    """The float32 of the 16 bits of a float16."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), write


if TYPE_CHECKING:

    def gap_lengths(indptr: Longs, indices: Ints, escape: int) -> tuple[Longs, int]: ...

    def coded_step(
        read: Any, coded: Coded, indptr: Longs, y: AnyFloats, r: AnyFloats, scale: AnyFloats, out: AnyFloats
    ) -> None: ...

    _read_plain = _read_half = _read_fixed = _read_split = _read_short = _read_both = _read_varint = None

else:

    @numba.njit(nogil=True, cache=True)
    def gap_lengths(indptr, indices, escape):
        """How many gaps have each number of bits, (34,), and how many are at least `escape`."""
        counts, far = np.zeros(34, np.int64), 0
        for row in range(len(indptr) - 1):
            before = np.int64(row)
            for j in range(indptr[row], indptr[row + 1]):
                column = np.int64(indices[j])
                gap = column - before
                if j == indptr[row]:
                    gap = -2 * gap - 1 if gap < 0 else 2 * gap
                before = column
                far += gap >= escape
                length = 0
                while gap >> length:
                    length += 1
                counts[length] += 1
        return counts, far

    _STEP, _BASE = np.float32((1 - LEAST) / STEPS), np.float32(LEAST)

    @numba.njit(nogil=True, cache=True)
    def _cosines(codes, book, first, last, weights):
        for j in range(last - first):
            code = codes[first + j]
            weights[j] = _BASE + _STEP * np.float32(code) if code < STEPS else book[code - STEPS]

    @numba.njit(nogil=True, cache=True)
    def _read_plain(coded, indptr, start, end, columns, weights):
        return coded.columns[indptr[start] : indptr[end]], coded.weights[indptr[start] : indptr[end]]

    @numba.njit(nogil=True, cache=True)
    def _read_half(coded, indptr, start, end, columns, weights):
        first, last, codes = indptr[start], indptr[end], coded.weights
        for j in range(last - first):
            weights[j] = _float_of(codes[first + j])
        return coded.columns[first:last], weights

    @numba.njit(nogil=True, cache=True)
    def _read_fixed(coded, indptr, start, end, columns, weights):
        _cosines(coded.weights, coded.book, indptr[start], indptr[end], weights)
        return coded.columns[indptr[start] : indptr[end]], weights

    @numba.njit(nogil=True, cache=True)
    def _read_split(coded, indptr, start, end, columns, weights):
        base, places, stored = indptr[start], coded.places, coded.weights
        for row in range(start, end):
            first, last = places[row], places[row + 1]
            others = indptr[row + 1] - base - (last - first)
            for j in range(indptr[row] - base, others):
                weights[j] = np.float32(1)
            for j in range(last - first):
                weights[others + j] = stored[first + j]
        return coded.columns[base : indptr[end]], weights

    @numba.njit(nogil=True, cache=True)
    def _short_columns(stream, starts, indptr, start, end, columns):
        place, base = starts[start], indptr[start]
        for row in range(start, end):
            column = np.int64(row)
            for j in range(indptr[row] - base, indptr[row + 1] - base):
                gap = np.int64(stream[place])
                place += 1
                if gap == ESCAPE:
                    gap = np.int64(stream[place]) | np.int64(stream[place + 1]) << 16
                    place += 2
                if j == indptr[row] - base:
                    gap = -((gap + 1) >> 1) if gap & 1 else gap >> 1
                column += gap
                columns[j] = column

    @numba.njit(nogil=True, cache=True)
    def _read_short(coded, indptr, start, end, columns, weights):
        _short_columns(coded.columns, coded.starts, indptr, start, end, columns)
        return columns, coded.weights[indptr[start] : indptr[end]]

    @numba.njit(nogil=True, cache=True)
    def _read_both(coded, indptr, start, end, columns, weights):
        _short_columns(coded.columns, coded.starts, indptr, start, end, columns)
        _cosines(coded.weights, coded.book, indptr[start], indptr[end], weights)
        return columns, weights

    @numba.njit(nogil=True, cache=True)
    def _read_varint(coded, indptr, start, end, columns, weights):
        stream, place, base = coded.columns, coded.starts[start], indptr[start]
        for row in range(start, end):
            column = np.int64(row)
            for j in range(indptr[row] - base, indptr[row + 1] - base):
                byte = np.int64(stream[place])
                place += 1
                gap, shift = byte & 127, 7
                while byte & 128:
                    byte = np.int64(stream[place])
                    place += 1
                    gap |= (byte & 127) << shift
                    shift += 7
                if j == indptr[row] - base:
                    gap = -((gap + 1) >> 1) if gap & 1 else gap >> 1
                column += gap
                columns[j] = column
        return columns, coded.weights[base : indptr[end]]

    # What is stored plainly is read where it lies; the rest goes through buffers of a run.
    @numba.njit(nogil=True, fastmath={"contract", "reassoc"})
    def coded_step(read, coded, indptr, y, r, scale, out):
        """out = scale·(A·y + r) for y, r, out (n, 1 | 8 | 32) float32, on one thread."""
        n, width, none = len(scale), y.shape[1], np.float32(0)
        room = RUN
        for i in range(n):
            room = max(room, indptr[i + 1] - indptr[i])
        columns, weights = np.zeros(room, np.int32), np.zeros(room, np.float32)
        start = 0
        while start < n:
            base, end = indptr[start], start + 1
            while end < n and indptr[end + 1] - base <= room:
                end += 1
            numbers, values = read(coded, indptr, start, end, columns, weights)
            for i in range(start, end):
                first, last, factor = indptr[i] - base, indptr[i + 1] - base, scale[i]
                if width == 1:
                    total = r[i, 0]
                    for j in range(first, last):
                        total += values[j] * y[numbers[j], 0]
                    out[i, 0] = factor * total
                elif width == 8:
                    _HALF(numbers, values, y, r, out, i, first, last, width, 0, factor, none)
                else:
                    _TWO(numbers, values, y, r, out, i, first, last, width, 0, factor, none)
            start = end


LAYOUTS: dict[str, Layout] = {
    "run by run": Layout(_plain, _read_plain),
    "float16 weights": Layout(_half, _read_half),
    "16-bit fixed weights": Layout(_fixed, _read_fixed),
    "no weights of mentions": Layout(_split, _read_split),
    "16-bit gaps": Layout(_short_gaps, _read_short),
    "varint gaps": Layout(_varint, _read_varint),
    "16-bit gaps and weights": Layout(_short_both, _read_both),
}
