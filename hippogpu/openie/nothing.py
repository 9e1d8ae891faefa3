"""No extractor: an index of structural records alone, without a language model and without entity recognition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hippogpu.types import Passage, Record


class NoExtractor:
    """Says of each passage, successfully, that it states nothing."""

    name = "none"

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """One empty success a passage."""
        for passage in passages:
            yield Record(passage.id, ())
