"""Which phrases each passage mentions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hippogpu.tables.pairs import user_pairs
from hippogpu.types import Edges, Facts, Ints, Longs, Ragged

_STATEMENTS = 1 << 20


def mention_blocks(statements: Ragged, facts: Facts, user_edges: Edges, phrases: int) -> Iterator[tuple[Longs, Ints]]:
    """How many distinct phrases each passage's statements and user edges name, and which, ascending; by blocks."""
    width, passages = max(phrases, 1), len(statements)
    own = user_pairs(user_edges, passages).mentions
    for first, last in _blocks(statements.indptr):
        part = statements.values[statements.indptr[first] : statements.indptr[last]]
        row = np.repeat(np.arange(last - first, dtype=np.int64) * width, np.diff(statements.indptr[first : last + 1]))
        given = (own.low >= first) & (own.low < last)
        keys = [row + facts.subject[part], row + facts.object[part], (own.low[given] - first) * width + own.high[given]]
        distinct = np.unique(np.concatenate(keys))
        yield np.bincount(distinct // width, minlength=last - first), (distinct % width).astype(np.int32)


def _blocks(indptr: Longs) -> Iterator[tuple[int, int]]:
    """Ranges of passages with about a million statements each; one where there is none at all."""
    first, passages = 0, len(indptr) - 1
    while True:
        last = int(np.searchsorted(indptr, indptr[first] + _STATEMENTS, side="right")) - 1
        last = min(max(last, first + 1), passages)
        yield first, last
        if last >= passages:
            return
        first = last
