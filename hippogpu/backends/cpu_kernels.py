"""Compiled loops of the CPU backend; compiled at first use and cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from hippogpu.types import Floats, Ints, Longs

if TYPE_CHECKING:

    def step(
        indptr: Longs, indices: Ints, weights: Floats, y: Floats, r: Floats, restart: Floats, scale: Floats, out: Floats
    ) -> None: ...

else:

    @numba.njit(parallel=True, nogil=True, cache=True, fastmath={"contract", "reassoc"})
    def step(indptr, indices, weights, y, r, restart, scale, out):
        """out = scale · (A·y + restart·r), row by row: y, r, out (n, B) float32, restart (B,), scale (n,)."""
        batch = y.shape[1]
        for i in numba.prange(len(indptr) - 1):
            row = out[i]
            if batch == 1:
                # A loop of one turn costs more than its product: one question gets a plain sum.
                total = np.float32(restart[0] * r[i, 0])
                for j in range(indptr[i], indptr[i + 1]):
                    total += weights[j] * y[indices[j], 0]
                row[0] = total * scale[i]
                continue
            for b in range(batch):
                row[b] = restart[b] * r[i, b]
            for j in range(indptr[i], indptr[i + 1]):
                neighbour, weight = y[indices[j]], weights[j]
                for b in range(batch):
                    row[b] += weight * neighbour[b]
            factor = np.float32(scale[i])
            for b in range(batch):
                row[b] *= factor
