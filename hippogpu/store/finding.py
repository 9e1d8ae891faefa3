"""Where a text stands among sorted texts, without a table of them: by halving, on the letters as they lie on disk."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from hippogpu.text_columns import TextColumn
from hippogpu.types import Longs


def places_of(column: Sequence[str], texts: Sequence[str]) -> Longs:
    """The number of each text in a column sorted by code point, −1 for one that is not there, (texts,) int64.

    Of a stored column no text is decoded: each look-up compares the letters of log2(rows) of them.
    """
    if not isinstance(column, TextColumn):
        return np.array([_place(column, text) for text in texts], np.int64)
    # Numba is loaded when something is looked up, not when an index is opened.
    from hippogpu.store.finding_kernels import find_rows

    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    return find_rows(column.starts, column.letters, ends, letters)


def _place(column: Sequence[str], text: str) -> int:
    place = bisect_left(column, text)
    return place if place < len(column) and column[place] == text else -1
