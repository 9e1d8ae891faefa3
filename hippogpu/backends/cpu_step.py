"""The sparse × dense step of the CPU, compiled at first use and cached: a row's sums stay in vector registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hippogpu.backends.cpu_llvm import LONG, Vectors, array_data, loop_blocks, write_prefetch
from hippogpu.types import AnyFloats, Floats, Ints, Longs

# A block is so many vectors of 64 bytes: one vector register where there is AVX-512, two where there is AVX2.
_VECTOR_BYTES = 64
# The rows of y that are needed so many edges later are asked for in advance. On two cores at 23 million edges and 32
# columns: 205 ms a step without, 194 at 8, 168 at 16, 162 at 32.
_AHEAD = 32
# Parts of equal work that the threads share.
_PARTS = 256


def _row_block(vectors: int, vector_bytes: int) -> Callable[..., None]:
    """A compiled step of one row and one block of columns; see `step` for what it computes."""

    @intrinsic
    def row_block(
        typing: Any, indices: Any, weights: Any, y: Any, r: Any, out: Any, row: Any, first: Any, last: Any, stride: Any,
        column: Any, factor: Any, kept: Any,
    ) -> Any:  # fmt: skip
        arrays, numbers = (indices, weights, y, r, out), (types.intp,) * 5
        signature = types.void(*arrays, *numbers, y.dtype, y.dtype)
        return signature, _code(vectors, vector_bytes)

    made: Callable[..., None] = row_block
    return made


def _code(vectors: int, vector_bytes: int) -> Callable[..., Any]:
    """What numba calls to write the row block into a function."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = signature.args[2].dtype == types.float64
        lane = Vectors(builder, vector_bytes // (8 if double else 4), double=double)
        indices, weights, y, r, out = array_data(context, builder, signature.args[:5], arguments[:5])
        edges = context.make_array(signature.args[0])(context, builder, arguments[0]).nitems
        row, first, last, stride, column, factor, kept = arguments[5:]
        offsets = [LONG(number * lane.lanes) for number in range(vectors)]
        here = builder.add(builder.mul(row, stride), column)
        r_here, out_here, y_column = builder.gep(r, [here]), builder.gep(out, [here]), builder.gep(y, [column])
        start = [lane.load(r_here, offset) for offset in offsets]
        before = builder.block
        head, body, done = loop_blocks(builder)

        builder.position_at_end(head)
        j = builder.phi(LONG)
        sums = [builder.phi(lane.type) for _ in range(vectors)]
        for phi, value in zip([j, *sums], [first, *start], strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", j, last), body, done)

        builder.position_at_end(body)
        far = _row_of(builder, indices, _later(builder, j, edges), stride)
        for offset in offsets:
            write_prefetch(builder, builder.gep(y_column, [builder.add(far, offset)]), level=3)
        weight = builder.load(builder.gep(weights, [j]))
        weight = lane.spread(builder.fpext(weight, lane.element) if double else weight)
        y_row = builder.gep(y_column, [_row_of(builder, indices, j, stride)])
        for offset, phi in zip(offsets, sums, strict=True):
            phi.add_incoming(lane.fma(lane.load(y_row, offset), weight, phi), builder.block)
        j.add_incoming(builder.add(j, LONG(1)), builder.block)
        builder.branch(head)

        builder.position_at_end(done)
        factors, shares = lane.spread(factor), lane.spread(kept)
        # What is not kept must not count, not even as 0 · infinity: buffers are used again.
        dropped = builder.fcmp_ordered("==", kept, ir.Constant(lane.element, 0.0))
        for offset, phi in zip(offsets, sums, strict=True):
            old = builder.select(dropped, lane.zero, lane.load(out_here, offset))
            lane.store(lane.fma(old, shares, builder.fmul(phi, factors)), out_here, offset)
        return context.get_dummy_value()

    return write


def _row_of(builder: Any, indices: Any, j: Any, stride: Any) -> Any:
    """Where the row of edge j's neighbour begins."""
    return builder.mul(builder.sext(builder.load(builder.gep(indices, [j])), LONG), stride)


def _later(builder: Any, j: Any, edges: Any) -> Any:
    """The edge that comes _AHEAD after j, or the last one."""
    later, final = builder.add(j, LONG(_AHEAD)), builder.sub(edges, LONG(1))
    return builder.select(builder.icmp_signed("<", later, final), later, final)


@intrinsic
def prefetch(typing: Any, array: Any, item: Any) -> Any:
    """Asks for the cache line of an item of an array, counted in memory order, without waiting for it."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (data,) = array_data(context, builder, signature.args[:1], arguments[:1])
        write_prefetch(builder, builder.gep(data, [arguments[1]]), level=3)
        return context.get_dummy_value()

    return types.void(array, types.intp), write


_FOUR, _TWO, _ONE = (_row_block(vectors, _VECTOR_BYTES) for vectors in (4, 2, 1))
_HALF = _row_block(1, _VECTOR_BYTES // 2)


def padded_width(columns: int, dtype: np.dtype[Any]) -> int:
    """The width that `step` works on for so many columns: 1, half a vector, or whole vectors."""
    lanes = _VECTOR_BYTES // dtype.itemsize
    if columns <= 1:
        return 1
    return lanes // 2 if columns <= lanes // 2 else -(-columns // lanes) * lanes


def aligned_zeros(rows: int, width: int, dtype: np.dtype[Any]) -> AnyFloats:
    """Zeros (rows, width) that begin on a cache line: a row of whole vectors touches no line more than it must."""
    spare = _VECTOR_BYTES // dtype.itemsize
    flat = np.zeros(rows * width + spare, dtype)
    start = (-flat.ctypes.data % _VECTOR_BYTES) // dtype.itemsize
    return flat[start : start + rows * width].reshape(rows, width)


def equal_parts(indptr: Longs) -> Longs:
    """Bounds of runs of rows of about equal work, (parts+1,): a row costs its edges and some more."""
    rows = len(indptr) - 1
    work = indptr + 4 * np.arange(rows + 1)
    marks = np.linspace(0, work[-1], min(_PARTS, max(rows, 1)) + 1)
    bounds: Longs = np.searchsorted(work, marks).astype(np.int64)
    bounds[0], bounds[-1] = 0, rows
    return bounds


if TYPE_CHECKING:

    def step(
        indptr: Longs,
        indices: Ints,
        weights: Floats,
        parts: Longs,
        y: AnyFloats,
        r: AnyFloats,
        scale: AnyFloats,
        omega: np.floating[Any],
        kept: np.floating[Any],
        out: AnyFloats,
    ) -> None: ...

else:

    @numba.njit(parallel=True, nogil=True, cache=True, fastmath={"contract", "reassoc"})
    def step(indptr, indices, weights, parts, y, r, scale, omega, kept, out):
        """out = omega·scale·(A·y + r) + kept·out: y, r, out (n, padded_width), float32 or float64; scale (n,).

        weights are float32 either way; omega and kept are of y's type.
        """
        width, lanes = y.shape[1], 64 // y.itemsize
        for part in numba.prange(len(parts) - 1):
            for i in range(parts[part], parts[part + 1]):
                first, last, factor = indptr[i], indptr[i + 1], omega * scale[i]
                if width == 1:
                    # A loop of one turn costs more than its product: one question gets a plain sum.
                    total = r[i, 0]
                    for j in range(first, last):
                        total += weights[j] * y[indices[j], 0]
                    out[i, 0] = factor * total + (kept * out[i, 0] if kept != 0 else 0)
                    continue
                column = 0
                while column + 4 * lanes <= width:
                    _FOUR(indices, weights, y, r, out, i, first, last, width, column, factor, kept)
                    column += 4 * lanes
                if column + 2 * lanes <= width:
                    _TWO(indices, weights, y, r, out, i, first, last, width, column, factor, kept)
                    column += 2 * lanes
                if column + lanes <= width:
                    _ONE(indices, weights, y, r, out, i, first, last, width, column, factor, kept)
                    column += lanes
                if column < width:
                    _HALF(indices, weights, y, r, out, i, first, last, width, column, factor, kept)
