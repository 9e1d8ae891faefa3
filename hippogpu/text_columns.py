"""Texts in a row, mapped from a file or lying in memory: decoded one at a time, as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError

_BLOCK_TEXTS = 65536


class TextColumn(Sequence[str]):
    """Texts of a buffer; for one that is no UTF-8 what `refuse` makes of the reason is raised.

    starts : (rows + 1) int64, ascending inside the letters: where each text begins and the one before it ends
    errors : "surrogatepass" for texts that may hold half a character
    """

    __slots__ = ("_errors", "_letters", "_refuse", "_starts")

    def __init__(
        self,
        starts: NDArray[np.int64],
        letters: memoryview,
        *,
        refuse: Callable[[str], IndexDamagedError],
        errors: str = "strict",
    ) -> None:
        self._starts, self._letters, self._refuse, self._errors = starts, letters, refuse, errors

    @property
    def starts(self) -> NDArray[np.int64]:
        """(rows + 1) int64: where each text begins in the letters and the one before it ends."""
        return self._starts

    @property
    def letters(self) -> NDArray[np.uint8]:
        """The texts in a row, as they lie in the buffer."""
        return np.frombuffer(self._letters, np.uint8)

    def arrow(self, first: int = 0, last: int | None = None) -> pa.Array[Any]:
        """The texts [first, last) as an Arrow array over the same bytes."""
        last = len(self) if last is None else last
        starts, letters = pa.py_buffer(self._starts.data), pa.py_buffer(self._letters)
        return pa.LargeStringArray.from_buffers(last - first, starts, letters, None, 0, first)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        at = range(len(self))[i]
        return self._text(int(self._starts[at]), int(self._starts[at + 1]))

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _BLOCK_TEXTS):
            places = self._starts[first : first + _BLOCK_TEXTS + 1].tolist()
            for start, end in pairwise(places):
                yield self._text(start, end)

    def _text(self, start: int, end: int) -> str:
        try:
            return str(self._letters[start:end], "utf-8", self._errors)
        except UnicodeDecodeError as error:
            raise self._refuse(f"a text of it is no UTF-8 ({error})") from error


def texts_array(texts: Sequence[str]) -> pa.Array[Any]:
    """Texts as an Arrow array; without a pass over them where they lie in a buffer."""
    if isinstance(texts, TextColumn):
        return texts.arrow()
    return pa.array(texts, pa.large_string())
