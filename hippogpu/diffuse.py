"""Passage vectors diffused over the graph once, so that a question pays two dense products instead of a walk."""

from __future__ import annotations

import io
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from hippogpu.backends import Backend, Graph, steps_for
from hippogpu.disk import failures_of, make_own_folder, write_atomically
from hippogpu.precision import Vectors, float_columns
from hippogpu.types import AnyFloats, Csr, Diffused, Floats, Longs

_LARGEST_NUMBER_BYTES = 8
# The solver's own error stays under the rounding of float32.
TOLERANCE = 1e-8
# Bytes a node and column at the peak: the columns, x, and the buffers in float32 and, for the residual, in float64.
_COPIES_BYTES = 44
_LEAST_COLUMNS, _MOST_COLUMNS = 8, 64
# From so many nodes on, columns do not fit the caches, and steps over nodes whose neighbours lie beside them take half
# to two thirds of the time (docs/locality.md). The order costs as much as some steps.
ORDERED_NODES = 1 << 16
# Rows whose columns are read together: whatever vectors are stored in becomes float32 this many rows at a time.
_ROWS = 1 << 16

OnProgress = Callable[[int, int], None]


class Block(NamedTuple):
    """Columns first to last of G·[V 1] on passages, (P, columns) float32, and each column's error ÷ degree."""

    values: Floats
    errors: AnyFloats


def diffuse_passages(
    graph: Csr,
    vectors: Vectors,
    *,
    damping: float,
    backend: Backend,
    budget_bytes: int,
    scratch: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Diffused:
    """G·V and G·1 on the passages, for the vectors V (P, w) of the first P nodes of the graph.

    Solved by Chebyshev in blocks of columns under the byte budget (or 8 columns, if those need more). Finished blocks
    are kept in `scratch`, and those found there are not solved again; the caller names the folder after what is
    diffused. Progress counts columns. A large graph is worked on in another order of its nodes, a copy of 8 bytes a
    non-zero. Diffused.error bounds what the answer is off by, from residuals in float64.
    """
    width = vectors.shape[1] + 1
    nodes, graph = _ordered(graph, vectors.shape[0])
    put, at_once = backend.put_graph(graph), columns_at_once(graph.nodes, budget_bytes)
    passages = vectors.shape[0]
    made, ones, errors = np.empty(vectors.shape, np.float32), np.empty(passages, np.float32), np.empty(width)
    for first in range(0, width, at_once):
        last = min(first + at_once, width)
        block = _stored(scratch, first, passages, last - first)
        if block is None:
            block = _solved(put, nodes, vectors, first, last, damping, backend)
            _store(scratch, first, block)
        inside = min(last, width - 1)
        made[:, first:inside], errors[first:last] = block.values[:, : inside - first], block.errors
        if last == width:
            ones[:] = block.values[:, -1]
        if on_progress is not None:
            on_progress(last, width)
    # Of |error·query| for any unit query, and of the column of ones: whichever is greater.
    error = max(float(np.linalg.norm(errors[:-1])), float(errors[-1]))
    return Diffused(made, ones, damping, error)


def estimated_seconds(graph: Csr, width: int, *, damping: float, backend: Backend) -> float:
    """What diffuse_passages takes at most, from one step that is timed; of a large graph, in its own order."""
    put = backend.put_graph(graph)
    columns = backend.put(np.zeros((graph.nodes, _LEAST_COLUMNS), np.float32))
    best = np.inf
    # The first step may compile.
    for _ in range(2):
        started = time.perf_counter()
        backend.diffuse(put, columns, damping=damping, steps=1)
        best = min(best, time.perf_counter() - started)
    return float(best) * steps_for("chebyshev", damping, TOLERANCE) * (width + 1) / _LEAST_COLUMNS


def columns_at_once(nodes: int, budget_bytes: int) -> int:
    """Columns solved together under the budget: 8, or a multiple of 16 up to 64."""
    fit = budget_bytes // (_COPIES_BYTES * max(nodes, 1))
    return _LEAST_COLUMNS if fit < 16 else min(fit // 16 * 16, _MOST_COLUMNS)


def _ordered(graph: Csr, passages: int) -> tuple[Longs, Csr]:
    """The node (P,) at which each passage lies in the graph that is worked on: the same graph, in another order of its
    nodes where it is large. What is found differs by rounding alone, and the residual counts that.
    """
    if graph.nodes < ORDERED_NODES:
        return np.arange(passages), graph
    # numba is loaded where it is used.
    from hippogpu.graph.ordering import neighbours_together, renumbered

    order = neighbours_together(graph)
    places = np.empty(graph.nodes, np.int64)
    places[order] = np.arange(graph.nodes)
    return places[:passages], renumbered(graph, order)


def _solved(
    graph: Graph, nodes: Longs, vectors: Vectors, first: int, last: int, damping: float, backend: Backend
) -> Block:
    """Solves columns first to last of [V 1], where passage p lies at nodes[p]."""
    passages, width = vectors.shape
    columns = np.zeros((graph.nodes, last - first), np.float32)
    inside = min(last, width)
    for start in range(0, passages, _ROWS):
        rows = slice(start, min(start + _ROWS, passages))
        columns[nodes[rows], : inside - first] = float_columns(vectors, rows, slice(first, inside))
    if last > width:
        columns[nodes, -1] = 1.0
    right = backend.put(columns)
    steps = steps_for("chebyshev", damping, TOLERANCE)
    found = backend.diffuse(graph, right, damping=damping, steps=steps)
    left = backend.residual(graph, right, found, damping=damping)
    values = np.asarray(backend.get(found)[nodes], np.float32)
    return Block(np.ascontiguousarray(values), np.asarray(left.over_degree, np.float64) / (1 - damping))


def _path(scratch: Path, first: int) -> Path:
    return scratch / f"columns-{first:06d}.npz"


def _store(scratch: Path | None, first: int, block: Block) -> None:
    if scratch is None:
        return
    data = io.BytesIO()
    np.savez(data, values=block.values, errors=block.errors)
    with failures_of(_path(scratch, first)):
        make_own_folder(scratch)
        write_atomically(_path(scratch, first), data.getvalue())


def _stored(scratch: Path | None, first: int, passages: int, columns: int) -> Block | None:
    """A finished block, None where there is none that is whole and of this shape."""
    if scratch is None or not _path(scratch, first).is_file():
        return None
    try:
        with _path(scratch, first).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            # Headers are compared first: memory is taken for what is expected, not for what a file says.
            if not _holds(arrays.zip, {"values": (passages, columns), "errors": (columns,)}):
                return None
            block = Block(arrays["values"], arrays["errors"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, EOFError):
        return None
    return block if block.values.dtype == np.float32 else None


def _holds(archive: zipfile.ZipFile, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether the archive holds arrays of these shapes, and none packed."""
    for name, shape in shapes.items():
        if archive.getinfo(f"{name}.npy").compress_type != zipfile.ZIP_STORED:
            return False
        with archive.open(f"{name}.npy") as member:
            if npy.read_magic(member) != (1, 0):
                return False
            found, in_columns, dtype = npy.read_array_header_1_0(member)
            if found != shape or in_columns or dtype.itemsize > _LARGEST_NUMBER_BYTES:
                return False
    return True
