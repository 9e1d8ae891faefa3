"""The running best of rows of scores, compiled at first use: one pass finds the k greatest and the extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from hippogpu.types import AnyFloats, Bools, Ints

# Scores that are looked at together: their greatest decides whether any of them can enter.
_RUN = 256


class Best(NamedTuple):
    """The best so far of each row: heaps of scores (B, k) with the least on top, their ids, and the extremes (B,).

    low, high and scores are of the scores' type; bad (B,) tells rows in which something was no number.
    """

    ids: Ints
    scores: AnyFloats
    low: AnyFloats
    high: AnyFloats
    bad: Bools


def nothing_yet(rows: int, k: int, dtype: np.dtype[np.floating]) -> Best:
    """Best of no score."""
    least = np.full((rows, k), -np.inf, dtype)
    # An id beyond every real one loses each tie.
    none = np.full((rows, k), np.iinfo(np.int32).max, np.int32)
    low, high = np.full(rows, np.inf, dtype), np.full(rows, -np.inf, dtype)
    return Best(none, least, low, high, np.zeros(rows, bool))


if TYPE_CHECKING:

    def _take_in(
        scores: AnyFloats, start: int, ids: Ints, best: AnyFloats, low: AnyFloats, high: AnyFloats, bad: Bools
    ) -> None: ...

    def sift(scores: AnyFloats, ids: Ints, size: int) -> None: ...

else:

    @numba.njit(nogil=True, cache=True, inline="always")
    def _worse(score, number, than, than_number):
        return score < than or (score == than and number > than_number)

    @numba.njit(nogil=True, cache=True)
    def sift(scores, ids, size):
        """Moves the top of a heap (worst first) down to its place."""
        at, score, number = 0, scores[0], ids[0]
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            if below + 1 < size and _worse(scores[below + 1], ids[below + 1], scores[below], ids[below]):
                below += 1
            if not _worse(scores[below], ids[below], score, number):
                break
            scores[at], ids[at] = scores[below], ids[below]
            at = below
        scores[at], ids[at] = score, number

    @numba.njit(nogil=True, cache=True)
    def _take_in_row(row, start, ids, scores):
        """One row of take_in; its least, its greatest, and whether something was no number."""
        k, low, high = len(ids), row[0], row[0]
        bad = False
        for first in range(0, len(row), _RUN):
            run = row[first : first + _RUN]
            least, greatest, wrong = run[0], run[0], 0
            for value in run:
                least, greatest = min(least, value), max(greatest, value)
                wrong += value != value
            low, high, bad = min(low, least), max(high, greatest), bad or wrong > 0
            if greatest <= scores[0]:
                continue
            for place in range(len(run)):
                # Later scores have higher numbers, so an equal one never enters.
                if run[place] > scores[0]:
                    scores[0], ids[0] = run[place], start + first + place
                    sift(scores, ids, k)
        return low, high, bad

    @numba.njit(nogil=True, cache=True)
    def _take_in(scores, start, ids, best, low, high, bad):
        for row in range(len(scores)):
            least, greatest, wrong = _take_in_row(scores[row], start, ids[row], best[row])
            low[row] = min(low[row], least)
            high[row] = max(high[row], greatest)
            bad[row] = bad[row] or wrong


def take_in(scores: AnyFloats, start: int, best: Best) -> None:
    """Takes in scores (B, columns) of the keys start, start + 1, …; keys must come in ascending order."""
    _take_in(scores, start, best.ids, best.scores, best.low, best.high, best.bad)


def merged(parts: Sequence[Best]) -> Best:
    """The best of all parts, in descending order, ties by lower number."""
    ids, scores = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("ids", "scores"))
    order = np.lexsort((ids, -scores), axis=1)[:, : parts[0].ids.shape[1]]
    low, high = np.min([part.low for part in parts], axis=0), np.max([part.high for part in parts], axis=0)
    bad = np.any([part.bad for part in parts], axis=0)
    return Best(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1), low, high, bad)
