"""Linear solvers of the CPU: repeated steps over one group of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from hippogpu.backends.cpu_step import aligned_zeros, equal_parts, padded_width, step
from hippogpu.backends.seam import Graph
from hippogpu.types import AnyFloats

# Rows that are copied together: a cache line of float32 from each column.
_TILE = 16


def iterate(
    graph: Graph,
    columns: AnyFloats,
    damping: float,
    omegas: Sequence[float],
    out: AnyFloats,
    *,
    start: AnyFloats | None = None,
) -> None:
    """out = x after one step x ← ω·(d·P·x + (1 − d)·columns − x₋₁) + x₋₁ for each ω; the last ω must be 1.

    columns, out (n, c); x starts as `start`, or as the columns
    The steps run on y = d·D⁻¹·x, so that each is one pass over the edges: y ← ω·(d·D⁻¹·(A·y + (1 − d)·columns)) + ….
    """
    dtype = out.dtype
    width = padded_width(columns.shape[1], dtype)
    scale = scales(graph, damping, dtype)
    y, r, before = (aligned_zeros(graph.nodes, width, dtype) for _ in range(3))
    ones = np.ones(graph.nodes, dtype)
    copy_scaled(columns if start is None else start, scale, y)
    copy_scaled(columns, np.full(graph.nodes, 1 - damping, dtype), r)
    parts = equal_parts(graph.indptr)
    for number, omega in enumerate(omegas):
        last = number == len(omegas) - 1
        shares = dtype.type(omega), dtype.type(0 if number == 0 else 1 - omega)
        step(graph.indptr, graph.indices, graph.weights, parts, y, r, ones if last else scale, *shares, before)
        y, before = before, y
    out[...] = y[:, : out.shape[1]]


def scales(graph: Graph, damping: float, dtype: np.dtype[Any]) -> AnyFloats:
    """d ÷ degree of each node, (n,); 0 where there is no edge."""
    inverse = np.divide(damping, graph.degrees, out=np.zeros(graph.nodes), where=graph.degrees > 0)
    scaled: AnyFloats = inverse.astype(dtype)
    return scaled


if TYPE_CHECKING:

    def copy_scaled(source: AnyFloats, factors: AnyFloats, out: AnyFloats) -> None: ...

else:

    @numba.njit(parallel=True, nogil=True, cache=True)
    def copy_scaled(source, factors, out):
        """out[i, j] = source[i, j] · factors[i] for the columns that source has; any memory order of source."""
        rows, columns = source.shape
        for tile in numba.prange((rows + _TILE - 1) // _TILE):
            first, last = tile * _TILE, min(rows, (tile + 1) * _TILE)
            for j in range(columns):
                for i in range(first, last):
                    out[i, j] = source[i, j] * factors[i]
