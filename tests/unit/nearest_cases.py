"""Rows to be near to, and the truth about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hippogpu.precision import Vectors, float_rows
from hippogpu.types import Floats

WIDTH = 33
# Products of unit rows that were summed in another order.
ROUNDING = 1e-6


def unit_rows(rows: int, *, seed: int = 0, width: int = WIDTH) -> Floats:
    """Rows in bunches, as facts are, some of them twice."""
    random = np.random.default_rng(seed)
    middles = random.standard_normal((max(rows // 20, 1), width))
    made = middles[random.integers(len(middles), size=rows)] + 0.4 * random.standard_normal((rows, width))
    made[1::10] = made[: len(made[1::10])]
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def truth(rows: Vectors, queries: Floats, k: int) -> Any:
    """The k nearest rows by a plain product in float64, ties by lower number; their scores; and the extremes."""
    products = queries.astype(np.float64) @ float_rows(rows, slice(None)).astype(np.float64).T
    best = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(products, best, axis=1), products.min(axis=1), products.max(axis=1)
