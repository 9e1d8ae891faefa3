"""What the machine can do at best, measured in the same run: copying, and reading rows at random places."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numba
import numpy as np

from bench.measure import Spread, spread
from hippogpu.types import Floats, Ints

# Far beyond the last-level caches of today's servers.
COPY_BYTES = 1 << 30
GATHERED_BYTES = 1 << 31
MOST_ROWS = 1 << 25
_CHUNK = 64

if TYPE_CHECKING:

    def copy_all(source: Floats, target: Floats) -> None: ...
    def gather_all(table: Floats, numbers: Ints, sums: Floats) -> None: ...

else:

    @numba.njit(parallel=True, nogil=True, cache=True)
    def copy_all(source, target):
        """target = source, on all threads."""
        for i in numba.prange(len(source)):
            target[i] = source[i]

    @numba.njit(parallel=True, nogil=True, cache=True, fastmath={"contract", "reassoc"})
    def gather_all(table, numbers, sums):
        """Each row of sums is the sum of 64 rows of the table, by number: reads at random, next to no writes."""
        batch = table.shape[1]
        for i in numba.prange(len(sums)):
            total = sums[i]
            for b in range(batch):
                total[b] = 0
            for j in range(i * _CHUNK, (i + 1) * _CHUNK):
                row = table[numbers[j]]
                for b in range(batch):
                    total[b] += row[b]


def copy_roof(*, size_bytes: int = COPY_BYTES, repeats: int = 5) -> Spread:
    """GB/s of copying an array of that size; bytes read and written count, lines fetched to be overwritten do not."""
    source = np.ones(size_bytes // 4, np.float32)
    target = np.zeros_like(source)
    return _rates(lambda: copy_all(source, target), 2 * source.nbytes, repeats)


def gather_roof(nodes: int, batch: int, *, size_bytes: int = GATHERED_BYTES, repeats: int = 5, seed: int = 0) -> Spread:
    """GB/s of reading rows of an (n, B) float32 array at uniformly random numbers; the numbers do not count."""
    table = np.ones((nodes, batch), np.float32)
    # Rows of one question are single floats: fewer of them take as long.
    chunks = max(min(size_bytes // (4 * batch), MOST_ROWS) // _CHUNK, 1)
    numbers = np.random.default_rng(seed).integers(nodes, size=chunks * _CHUNK, dtype=np.int32)
    sums = np.empty((chunks, batch), np.float32)
    return _rates(lambda: gather_all(table, numbers, sums), numbers.size * batch * 4, repeats)


def _rates(work: Callable[[], None], moved_bytes: int, repeats: int) -> Spread:
    """Rates of the repeats after one that compiles and touches every page."""
    work()
    rates = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        rates.append(moved_bytes / (time.perf_counter() - start) / 1e9)
    return spread(rates)
