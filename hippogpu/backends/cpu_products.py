"""Inner products of some queries with many keys, in float32: a tile of sums stays in vector registers.

BLAS packs its operands first, which for 32 queries costs as much as the product itself: at 100,000 keys of width 384 it
took 36 ms on two cores where this takes 18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from hippogpu.backends.cpu_llvm import LONG, Vectors, array_data, loop_blocks, write_prefetch
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
        lane = Vectors(builder, LANES)
        keys, asked, out = array_data(context, builder, signature.args[:3], arguments[:3])
        shape = context.make_array(signature.args[0])(context, builder, arguments[0]).shape
        width, (row, at) = builder.extract_value(shape, 1), arguments[3:]
        rows = [builder.gep(keys, [builder.mul(builder.add(row, LONG(n)), width)]) for n in range(KEYS)]
        parts = [LONG(number * LANES) for number in range(VECTORS)]
        before = builder.block
        head, body, done = loop_blocks(builder)

        builder.position_at_end(head)
        axis = builder.phi(LONG)
        axis.add_incoming(LONG(0), before)
        sums = [[builder.phi(lane.type) for _ in parts] for _ in rows]
        for phi in (phi for phis in sums for phi in phis):
            phi.add_incoming(lane.zero, before)
        builder.cbranch(builder.icmp_signed("<", axis, width), body, done)

        builder.position_at_end(body)
        # The next tile of keys is a stretch of memory: by the last axis all of it was asked for.
        ahead = builder.mul(builder.add(width, axis), LONG(KEYS))
        write_prefetch(builder, builder.gep(rows[0], [ahead]), level=2)
        line = builder.mul(axis, LONG(QUERIES))
        lines = [lane.load(asked, builder.add(line, part)) for part in parts]
        for key, phis in zip(rows, sums, strict=True):
            value = lane.spread(builder.load(builder.gep(key, [axis])))
            for query, phi in zip(lines, phis, strict=True):
                phi.add_incoming(lane.fma(query, value, phi), body)
        axis.add_incoming(builder.add(axis, LONG(1)), body)
        builder.branch(head)

        builder.position_at_end(done)
        for number, phis in enumerate(sums):
            line = builder.mul(builder.add(at, LONG(number)), LONG(QUERIES))
            for part, phi in zip(parts, phis, strict=True):
                lane.store(phi, out, builder.add(line, part))
        return context.get_dummy_value()

    return types.void(keys, asked, out, types.intp, types.intp), write


if TYPE_CHECKING:

    def fill_products(keys: Floats, turned: Floats, out: Floats) -> None: ...

    def tile_of_products(keys: Floats, asked: Floats, tile: Floats, first: int, rows: int) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def fill_products(keys, turned, out):
        """out (B, rows) = queries · keysᵀ; keys (rows, w) and turned are contiguous float32."""
        tile = np.empty((_BLOCK, QUERIES), np.float32)
        for first in range(0, len(keys), _BLOCK):
            rows = min(_BLOCK, len(keys) - first)
            for group in range(len(turned)):
                tile_of_products(keys, turned[group], tile, first, rows)
                for query in range(group * QUERIES, min((group + 1) * QUERIES, len(out))):
                    for row in range(rows):
                        out[query, first + row] = tile[row, query - group * QUERIES]

    @numba.njit(nogil=True, cache=True)
    def tile_of_products(keys, asked, tile, first, rows):
        """tile (≥ rows, 32) = keys[first : first + rows] · asked, for one group (w, 32) of turned queries."""
        whole = rows - rows % KEYS
        for row in range(0, whole, KEYS):
            _tile(keys, asked, tile, first + row, row)
        for row in range(whole, rows):
            _one_key(keys[first + row], asked, tile[row])

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
