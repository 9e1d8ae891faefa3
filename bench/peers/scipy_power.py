"""The power iteration with SciPy's product of a sparse matrix and a block of columns; SciPy uses one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hippogpu.types import AnyFloats, Csr, Ints


class Prepared(NamedTuple):
    """d·A·D⁻¹ in one float type, and which nodes have no edges."""

    matrix: csr_array
    isolated: AnyFloats
    damping: float


def prepare(graph: Csr, *, damping: float, dtype: type[np.float32] | type[np.float64] = np.float32) -> Prepared:
    """The matrix of a step, its columns scaled by d ÷ degree; it must have fewer than 2³¹ non-zeros."""
    # With 64-bit row pointers SciPy would widen the column numbers too, which costs a third more memory traffic.
    parts = (graph.weights.astype(np.float64), graph.indices, narrow_pointers(graph))
    matrix = csr_array(parts, shape=(graph.nodes, graph.nodes))
    degrees: AnyFloats = np.asarray(matrix.sum(axis=1)).ravel()
    scale = np.divide(damping, degrees, out=np.zeros(graph.nodes), where=degrees > 0)
    matrix.data *= scale[graph.indices]
    return Prepared(matrix.astype(dtype), (degrees == 0).astype(dtype), damping)


def narrow_pointers(graph: Csr) -> Ints:
    """The row pointers in 32 bits; OverflowError when they do not fit."""
    if graph.nonzeros > np.iinfo(np.int32).max:
        raise OverflowError(f"A graph of {graph.nonzeros} non-zeros has no 32-bit row pointers.")
    return graph.indptr.astype(np.int32)


def step(prepared: Prepared, x: AnyFloats, restart: AnyFloats) -> AnyFloats:
    """d·P·x + restart for columns (n, B)."""
    product: AnyFloats = prepared.matrix @ x
    product += restart
    return product


def run(prepared: Prepared, seeds: AnyFloats, *, steps: int) -> AnyFloats:
    """Masses (B, n) after that many steps, in the matrix's float type."""
    x = np.ascontiguousarray(seeds.T, prepared.matrix.dtype)
    loose = prepared.isolated @ x
    restart = (1 - prepared.damping) * x
    for _ in range(steps):
        x = step(prepared, x, restart)
    x /= 1 - prepared.damping * loose
    return np.ascontiguousarray(x.T)
