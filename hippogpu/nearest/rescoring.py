"""Rows that may be near, compared again by what is stored of them."""

from __future__ import annotations

import numpy as np

from hippogpu.backends.checks import no_number
from hippogpu.backends.rows import best_of_row
from hippogpu.precision import Vectors, float_rows
from hippogpu.types import AnyInts, Floats, Ints


def best_by_rows(rows: Vectors, query: Floats, numbers: AnyInts, k: int) -> tuple[Ints, Floats]:
    """The min(k, given) nearest of some rows to a query (w,), descending, ties by lower number; and their products.

    Summed in float64 and rounded once, so that a row's product does not depend on what it is compared with. UsageError
    for a product that is no number.
    """
    near = np.unique(numbers).astype(np.int32)
    with np.errstate(invalid="ignore"):
        products = (float_rows(rows, near).astype(np.float64) @ query).astype(np.float32)
    if not np.isfinite(products).all():
        raise no_number()
    best = best_of_row(products, min(k, len(near)))
    return near[best], products[best]
