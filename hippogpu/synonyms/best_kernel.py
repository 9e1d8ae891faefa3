"""The best of each row, kept up to date in a compiled loop while products come group by group."""

from __future__ import annotations

import numba

from hippogpu.types import Floats, Ints, Longs


@numba.njit(cache=True, nogil=True)
def keep_best(products: Floats, rows: Longs, first: int, scores: Floats, cells: Ints) -> None:
    """Takes the products (m, c) of some rows with the cells from first on into their best so far.

    scores, cells (rows, k): descending, and −inf where there are fewer; of equal scores, the one that came first stays
    """
    k = scores.shape[1]
    for i in range(len(rows)):
        best, named = scores[rows[i]], cells[rows[i]]
        least = best[k - 1]
        for j in range(products.shape[1]):
            score = products[i, j]
            if score > least:
                place = k - 1
                while place > 0 and best[place - 1] < score:
                    best[place], named[place] = best[place - 1], named[place - 1]
                    place -= 1
                best[place], named[place] = score, first + j
                least = best[k - 1]
