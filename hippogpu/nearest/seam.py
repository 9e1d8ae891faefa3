"""The seam: rows that are near to questions, whatever finds them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hippogpu.types import AnyFloats, Floats, Ints


class Near(NamedTuple):
    """The k nearest rows of each question by inner product, descending, ties by lower number; and the extremes.

    ids (B, k) int32 · scores (B, k) the exact products of those rows, as they are stored
    low (B,) · high (B,): the least and the greatest product over all rows. Where exact is False some of the nearest
    rows may be missing, and low and high are those of rows that were looked at: never beyond the true ones.
    """

    ids: Ints
    scores: AnyFloats
    low: AnyFloats
    high: AnyFloats
    exact: bool


class Nearest(Protocol):
    """Finds near rows. name tells what it is, as rankings repeat it; nbytes what it holds beyond the stored rows.

    exact: whether it looks at every row, so that none of the nearest can be missing
    """

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def exact(self) -> bool: ...

    def looking(self, *, probes: int, shortlist: int) -> Nearest:
        """The same with so much looked at: cells, and rows of them by what is stored; itself where all rows are."""
        ...

    def topk(self, queries: Floats, k: int) -> Near:
        """The min(k, rows) nearest rows of each query (B, w); UsageError for k < 1 or another width."""
        ...
