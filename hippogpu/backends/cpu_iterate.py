"""Linear solvers of the CPU: repeated steps over one group of columns."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from hippogpu.backends.cpu_step import aligned_zeros, equal_parts, padded_width, step
from hippogpu.backends.values import Graph
from hippogpu.types import AnyFloats

# Products of a step, about a tenth of a millisecond.
_WORK_OF_ONE_THREAD = 2**20
# Rows that are copied together: a cache line of float32 from each column.
_TILE = 16


class Buffers(NamedTuple):
    """Three aligned arrays (n, padded width) that one group of columns is iterated in."""

    y: AnyFloats
    r: AnyFloats
    before: AnyFloats


def buffers_for(graph: Graph, columns: int, dtype: np.dtype[Any]) -> Buffers:
    """Fresh buffers. Those of an earlier group of the same width serve as well: all they hold is finite."""
    width = padded_width(columns, dtype)
    return Buffers(*(aligned_zeros(graph.nodes, width, dtype) for _ in range(3)))


# Some of numba's thread layers end the process when two threads start parallel code at once, and where they do not,
# two solves would only share the cores.
parallel_lock = threading.Lock()


def iterate(
    graph: Graph, columns: AnyFloats, start: AnyFloats, damping: float, omegas: Sequence[float], buffers: Buffers
) -> AnyFloats:
    """x after a step x ← ω·(d·P·x + (1 − d)·columns − x₋₁) + x₋₁ for each ω; the last ω must be 1.

    columns, start (n, c); the result (n, padded width) is one of the buffers, and its first c columns count
    The steps run on y = d·D⁻¹·x, so that each is one pass over the edges: y ← ω·(d·D⁻¹·(A·y + (1 − d)·columns)) + ….
    """
    with _threads_for(len(graph.indices) * buffers.y.shape[1]):
        return _iterated(graph, columns, start, damping, omegas, buffers)


@contextmanager
def _threads_for(work: int) -> Iterator[None]:
    """One thread for little work: threads that wait for each other at each step take longer, most so on busy cores."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1 if work <= _WORK_OF_ONE_THREAD else threads)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def _iterated(
    graph: Graph, columns: AnyFloats, start: AnyFloats, damping: float, omegas: Sequence[float], buffers: Buffers
) -> AnyFloats:
    y, r, before = buffers
    dtype = y.dtype
    scale, ones = scales(graph, damping, dtype), np.ones(graph.nodes, dtype)
    copy_scaled(start, scale, y)
    copy_scaled(columns, np.full(graph.nodes, 1 - damping, dtype), r)
    parts = equal_parts(graph.indptr)
    for number, omega in enumerate(omegas):
        last = number == len(omegas) - 1
        shares = dtype.type(omega), dtype.type(0 if number == 0 else 1 - omega)
        step(graph.indptr, graph.indices, graph.weights, parts, y, r, ones if last else scale, *shares, before)
        y, before = before, y
    return y


def scales(graph: Graph, damping: float, dtype: np.dtype[Any]) -> AnyFloats:
    """d ÷ degree of each node, (n,); 0 where there is no edge."""
    inverse = np.divide(damping, graph.degrees, out=np.zeros(graph.nodes), where=graph.degrees > 0)
    scaled: AnyFloats = inverse.astype(dtype)
    return scaled


if TYPE_CHECKING:

    def copy_scaled(source: AnyFloats, factors: AnyFloats, out: AnyFloats) -> None: ...

    def copy_rows(columns: AnyFloats, factors: AnyFloats, out: AnyFloats) -> None: ...

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

    @numba.njit(parallel=True, nogil=True, cache=True)
    def copy_rows(columns, factors, out):
        """out[j, i] = columns[i, j] · factors[j] for each row j of out."""
        rows, nodes = out.shape
        for tile in numba.prange((nodes + _TILE - 1) // _TILE):
            first, last = tile * _TILE, min(nodes, (tile + 1) * _TILE)
            for j in range(rows):
                for i in range(first, last):
                    out[j, i] = columns[i, j] * factors[j]
