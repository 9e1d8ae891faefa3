"""Every phrase with every other: each pair of blocks once, both ways taken from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from hippogpu.backends.threads import run_together, single_blas_thread
from hippogpu.precision import Vectors, float_rows
from hippogpu.synonyms.found import Gathering
from hippogpu.synonyms.pairs import PAIR_BYTES, Wanted
from hippogpu.synonyms.tiles import ROWS, Keep, Products, Rows, near_pairs
from hippogpu.types import Ints

# A finished step is kept: no more is lost when a run is killed.
_MOST_ROWS = 1 << 15


class Exact(NamedTuple):
    """The steps of an exact search: pairs of blocks of phrases in an order in which those that look for others lead.

    order   : (m,) int32, numbers of phrases · leading : how many of them are compared with all that follow them
    rows    : phrases of a block
    """

    order: Ints
    leading: int
    rows: int

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Where the two blocks of each step begin, the second never before the first."""
        return [
            (first, second)
            for first in range(0, self.leading, self.rows)
            for second in range(first, len(self.order), self.rows)
        ]

    def share(self, step: tuple[int, int]) -> int:
        """Pairs of phrases that a step compares."""
        first, second = step
        left = min(first + self.rows, self.leading) - first
        right = min(second + self.rows, len(self.order)) - second
        return left * right - (left * (left + 1) // 2 if first == second else 0)


def exact_plan(wanted: Wanted, *, width: int, cap: int, budget_bytes: int) -> Exact:
    """Which phrases are compared with all others, and in blocks of how many, so that a step stays in the budget."""
    # A phrase that is fresh must be met by those that were there before, even if it looks for none itself.
    meets = wanted.open & (wanted.searching | (wanted.fresh & bool(np.any(~wanted.open))))
    others = ~meets & (wanted.findable | wanted.searching)
    order = np.concatenate([np.flatnonzero(meets), np.flatnonzero(others)]).astype(np.int32)
    # Two blocks in float32; the pairs of both, at worst a full list each, and copies of them while they are sorted.
    row_bytes = 8 * width + 6 * PAIR_BYTES * min(cap, 2 * ROWS)
    return Exact(order, int(np.count_nonzero(meets)), max(1, min(_MOST_ROWS, budget_bytes // row_bytes)))


def search_step(
    step: tuple[int, int],
    plan: Exact,
    vectors: Vectors,
    gathering: Gathering,
    wanted: Wanted,
    *,
    threshold: float,
    cap: int,
    products: Products,
) -> None:
    """Gathers all near pairs of the two blocks of a step, in tiles that share the threads."""
    first, second = step
    rows = products.rows
    left = _loaded(plan.order[first : min(first + plan.rows, plan.leading)], vectors)
    right = (
        left
        if first == second and first + plan.rows <= plan.leading
        else _loaded(plan.order[second : second + plan.rows], vectors)
    )
    lock = threading.Lock()

    def work(tiles: Iterator[tuple[int, int]]) -> None:
        for i, j in tiles:
            # A pair inside one block is met from both ends: the first end counts.
            ahead = first + i - second - j
            near = near_pairs(
                left.part(slice(i, i + rows)),
                right.part(slice(j, j + rows)),
                keep=_before(ahead),
                wanted=wanted,
                threshold=threshold,
                cap=cap,
                find=products.find,
            )
            with lock:
                gathering.add(near)

    starts = product(range(0, len(left.numbers), rows), range(0, len(right.numbers), rows))
    tiles = [(i, j) for i, j in starts if first + i < second + j + rows]
    with single_blas_thread():
        run_together(tiles, work)


def _before(ahead: int) -> Keep:
    """Which pairs of rows of two blocks, the first so far ahead of the second, are in their order."""
    return lambda i, j: np.asarray(i + ahead < j)


def _loaded(numbers: Ints, vectors: Vectors) -> Rows:
    """Phrases with their vectors; those that follow one another are not copied where they are float32."""
    first, last = int(numbers[0]), int(numbers[-1])
    which = slice(first, last + 1) if last - first + 1 == len(numbers) and np.all(np.diff(numbers) == 1) else numbers
    return Rows(numbers, float_rows(vectors, which))
