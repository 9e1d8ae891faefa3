"""The seam between passages and whatever reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from hippogpu.types import Passage, Record


class Extractor(Protocol):
    """Anything that reads passages and says which triples they state.

    name says which model and prompt (or which stored file) speaks; results under another name are not mixed.
    """

    @property
    def name(self) -> str: ...

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """One Record a passage, in any order, as each is finished. A failed passage yields a Record with error set."""
        ...
