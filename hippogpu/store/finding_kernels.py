"""Halving over texts as UTF-8, whose order by bytes is that by code points; compiled at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hippogpu.types import Longs

    def find_rows(
        starts: Longs, letters: NDArray[np.uint8], asked: Longs, asked_letters: NDArray[np.uint8]
    ) -> Longs: ...

else:

    @numba.njit(nogil=True, cache=True)
    def find_rows(starts, letters, asked, asked_letters):
        """The row of each text asked for, -1 where there is none; both are given as starts (rows + 1) and letters."""
        found = np.empty(len(asked) - 1, np.int64)
        for i in range(len(found)):
            first, last = asked[i], asked[i + 1]
            low, high = 0, len(starts) - 1
            while low < high:
                middle = (low + high) // 2
                if _compared(letters, starts[middle], starts[middle + 1], asked_letters, first, last) < 0:
                    low = middle + 1
                else:
                    high = middle
            is_there = low < len(starts) - 1 and (
                _compared(letters, starts[low], starts[low + 1], asked_letters, first, last) == 0
            )
            found[i] = low if is_there else -1
        return found

    @numba.njit(nogil=True, cache=True)
    def _compared(letters, start, end, others, first, last):
        """Below 0 where the text comes before the other one, 0 where it is the same."""
        for at in range(min(end - start, last - first)):
            one, other = letters[start + at], others[first + at]
            if one != other:
                return -1 if one < other else 1
        return (end - start) - (last - first)
