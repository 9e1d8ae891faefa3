"""Inner products of some queries with many keys, in float32: a tile of sums stays in vector registers.

BLAS packs its operands first, which for 32 queries costs as much as the product itself: at 100,000 keys of width 384 it
took 36 ms on two cores where this takes 18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hippogpu.backends.cpu_step import declare
from hippogpu.types import AnyFloats, Floats

# A tile is so many keys by so many queries; 8 by two vectors fill half of 32 registers with sums.
KEYS, LANES, VECTORS = 8, 16, 2
QUERIES = LANES * VECTORS
# Keys whose products with one tile of queries stay in a core's cache until they are turned.
_BLOCK = 256


@intrinsic
def _tile(typing: Any, keys: Any, asked: Any, out: Any, row: Any, at: Any) -> Any:
    """out[at : at+8, :32] = keys[row : row+8] · asked, for asked (w, 32)."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element, long, int32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)
        vector = ir.VectorType(element, LANES)
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
        ]
        keys, asked, out = (array.data for array in arrays)
        width = builder.extract_value(arrays[0].shape, 1)
        fma = declare(builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LANES}f32")
        byte_pointer = ir.IntType(8).as_pointer()
        prefetch = declare(
            builder.module, ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32]), "llvm.prefetch.p0"
        )
        rows = [builder.gep(keys, [builder.mul(builder.add(arguments[3], long(n)), width)]) for n in range(KEYS)]

        def place(base: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

        def spread(value: Any) -> Any:
            alone = builder.insert_element(ir.Constant(vector, ir.Undefined), value, int32(0))
            zeros = ir.Constant(ir.VectorType(int32, LANES), [0] * LANES)
            return builder.shuffle_vector(alone, ir.Constant(vector, ir.Undefined), zeros)

        before = builder.block
        head, body, done = (builder.function.append_basic_block(name) for name in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        axis = builder.phi(long)
        axis.add_incoming(long(0), before)
        sums = [[builder.phi(vector) for _ in range(VECTORS)] for _ in range(KEYS)]
        for phi in (phi for row in sums for phi in row):
            phi.add_incoming(ir.Constant(vector, [0.0] * LANES), before)
        builder.cbranch(builder.icmp_signed("<", axis, width), body, done)

        builder.position_at_end(body)
        # The next tile of keys is a stretch of memory: by the last axis all of it was asked for.
        ahead = builder.gep(rows[0], [builder.add(builder.mul(width, long(KEYS)), builder.mul(axis, long(KEYS)))])
        builder.call(prefetch, [builder.bitcast(ahead, byte_pointer), int32(0), int32(2), int32(1)])
        line = builder.mul(axis, long(QUERIES))
        lines = []
        for number in range(VECTORS):
            loaded = builder.load(place(asked, builder.add(line, long(number * LANES))))
            loaded.align = 4
            lines.append(loaded)
        for row, phis in zip(rows, sums, strict=True):
            value = spread(builder.load(builder.gep(row, [axis])))
            for query, phi in zip(lines, phis, strict=True):
                phi.add_incoming(builder.call(fma, [query, value, phi]), body)
        axis.add_incoming(builder.add(axis, long(1)), body)
        builder.branch(head)

        builder.position_at_end(done)
        for number, phis in enumerate(sums):
            line = builder.mul(builder.add(arguments[4], long(number)), long(QUERIES))
            for part, phi in enumerate(phis):
                stored = builder.store(phi, place(out, builder.add(line, long(part * LANES))))
                stored.align = 4
        return context.get_dummy_value()

    return types.void(keys, asked, out, types.intp, types.intp), write


if TYPE_CHECKING:

    def fill_products(keys: Floats, turned: Floats, out: Floats) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def fill_products(keys, turned, out):
        """out (B, rows) = queries · keysᵀ; keys (rows, w) and turned are contiguous float32."""
        tile = np.empty((_BLOCK, QUERIES), np.float32)
        for first in range(0, len(keys), _BLOCK):
            rows = min(_BLOCK, len(keys) - first)
            for group in range(len(turned)):
                asked = turned[group]
                whole = rows - rows % KEYS
                for row in range(0, whole, KEYS):
                    _tile(keys, asked, tile, first + row, row)
                for row in range(whole, rows):
                    _one_key(keys[first + row], asked, tile[row])
                for query in range(group * QUERIES, min((group + 1) * QUERIES, len(out))):
                    for row in range(rows):
                        out[query, first + row] = tile[row, query - group * QUERIES]

    @numba.njit(nogil=True, cache=True)
    def _one_key(key, asked, sums):
        for query in range(QUERIES):
            sums[query] = 0
        for axis in range(len(key)):
            for query in range(QUERIES):
                sums[query] += key[axis] * asked[axis, query]


def turned_queries(queries: AnyFloats) -> Floats:
    """Queries (B, w) in the order in which a product reads them: groups of 32, (groups, w, 32) float32."""
    groups = -(-len(queries) // QUERIES)
    turned = np.zeros((groups, queries.shape[1], QUERIES), np.float32)
    for number in range(groups):
        group = queries[number * QUERIES : (number + 1) * QUERIES]
        turned[number, :, : len(group)] = group.T
    return turned
