"""Pairs of unit rows whose product reaches a number, on the device: found in float16, scored in float32.

xp is CuPy, or NumPy where the arithmetic is checked without a device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hippogpu.backends.devices import require_cupy
from hippogpu.types import Floats, Longs

# Rounding two unit rows to float16 moves their product by at most 2⁻¹⁰, storing the product by 2⁻¹², and a product
# that is summed in parts by some times that.
HALF_MARGIN = 4e-3
_SCORED_BYTES = 64 * 2**20


def near_on_device(left: Floats, right: Floats, least: float) -> tuple[Longs, Floats]:
    """near_products on the current CUDA device, of rows on the host and with its results there."""
    xp = require_cupy()
    flat, scores = near_products(xp, xp.asarray(left), xp.asarray(right), least)
    return xp.asnumpy(flat), xp.asnumpy(scores)


def near_products(xp: Any, left: Any, right: Any, least: float) -> tuple[Any, Any]:
    """The products of the rows of left (m, w) and right (c, w), float32 and of length 1, that are at least `least`.

    Their places (pairs,) int64, row · c + column, ascending, and the products in float32. A product of float16, which
    tensor cores do at many times the speed, says which pairs are worth a product in float32. Memory: 3·m·c bytes, and
    64 MiB for the rows of pairs.
    """
    halves = xp.matmul(left.astype(xp.float16), right.astype(xp.float16).T)
    flat = xp.flatnonzero(halves >= np.float16(least - HALF_MARGIN))
    del halves
    scores = xp.empty(len(flat), xp.float32)
    pairs = max(1, _SCORED_BYTES // (12 * left.shape[1]))
    for start in range(0, len(flat), pairs):
        part = slice(start, start + pairs)
        i, j = flat[part] // right.shape[0], flat[part] % right.shape[0]
        scores[part] = (left[i] * right[j]).sum(axis=1)
    which = xp.flatnonzero(scores >= np.float32(least))
    return flat[which], scores[which]
