"""The seam between passages and whatever reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class AnswersById(Protocol):
    """An extractor whose answer may hang on the passage's id (stored extractions may know only one of several).

    Where it fails at a text under one id, the next id of that text is tried.
    """

    @property
    def answers_by_id(self) -> bool: ...


@runtime_checkable
class Remembering(Protocol):
    """An extractor that answers from memory what it was asked before."""

    def forget(self) -> None:
        """Lets what is remembered go, so that it is asked again."""
