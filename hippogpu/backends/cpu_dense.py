"""Dense products of the CPU: a block of keys at a time on each thread, looked at while it is in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hippogpu.backends.checks import no_number
from hippogpu.backends.cpu_products import fill_products, turned_queries
from hippogpu.backends.cpu_select import Best, merged, nothing_yet, take_in
from hippogpu.backends.threads import run_together, single_blas_thread
from hippogpu.backends.values import TopK
from hippogpu.precision import Vectors, is_small, part
from hippogpu.types import AnyFloats

# A block of scores of this size stays in a core's cache between the product and the look at it.
_CACHED_BYTES = 2**19
# For fewer queries the BLAS reads the keys as fast, and computes less.
_OWN_PRODUCT_QUERIES = 4
# So that there are blocks for all threads.
_MOST_ROWS = 8192

Multiply = Callable[[Any, AnyFloats], None]


def best_keys(queries: AnyFloats, keys: Vectors | AnyFloats, k: int, *, budget_bytes: int) -> TopK:
    """The nearest k ≤ rows of keys of each query; UsageError for a product that is no number."""
    rows, multiply = rows_at_once(queries, budget_bytes), product_with(queries, keys)
    found: list[Best] = []

    def work(starts: Iterator[int]) -> None:
        best, buffer = nothing_yet(len(queries), k, queries.dtype), np.empty((len(queries), rows), queries.dtype)
        # Each thread meets its blocks in ascending order, as take_in asks.
        for start in starts:
            block = part(keys, slice(start, start + rows))
            products = buffer[:, : block.shape[0]]
            multiply(block, products)
            take_in(products, start, best)
        found.append(best)

    with single_blas_thread():
        run_together(range(0, keys.shape[0], rows), work)
    best = merged(found)
    if best.bad.any():
        raise no_number()
    return TopK(best.ids, best.scores, best.low, best.high)


def all_products(queries: AnyFloats, keys: Vectors | AnyFloats, *, budget_bytes: int) -> AnyFloats:
    """queries · keysᵀ, (B, keys)."""
    products = np.empty((len(queries), keys.shape[0]), queries.dtype)
    rows, multiply = rows_at_once(queries, budget_bytes), product_with(queries, keys)

    def work(starts: Iterator[int]) -> None:
        for start in starts:
            multiply(part(keys, slice(start, start + rows)), products[:, start : start + rows])

    with single_blas_thread():
        run_together(range(0, keys.shape[0], rows), work)
    return products


def rows_at_once(queries: AnyFloats, budget_bytes: int) -> int:
    """Keys of a block."""
    return max(1, min(min(budget_bytes, _CACHED_BYTES) // (queries.itemsize * max(len(queries), 1)), _MOST_ROWS))


def product_with(queries: AnyFloats, keys: Vectors | AnyFloats) -> Multiply:
    """What writes queries · keysᵀ into its second argument, for contiguous rows of keys: our own loop or the BLAS's."""
    if is_small(keys):
        from hippogpu.backends.cpu_stored import StoredProduct

        return StoredProduct(queries, keys)
    if queries.dtype != np.float32 or len(queries) < _OWN_PRODUCT_QUERIES:

        def by_blas(keys: AnyFloats, out: AnyFloats) -> None:
            np.matmul(queries, keys.T, out=out)

        return by_blas
    turned = turned_queries(queries)

    def by_tiles(keys: AnyFloats, out: AnyFloats) -> None:
        fill_products(keys, turned, out)

    return by_tiles
