"""The entities that a question names, for the methods that link those to phrases. HippoRAG 1, section 2.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hippogpu.config import EntitySource
from hippogpu.errors import UsageError


class QuestionEntities(NamedTuple):
    """The entities of one question, as it names them.

    failure : why none could be read, None when they were; the question is then ranked by dense and says so
    """

    names: tuple[str, ...]
    failure: str | None = None


class EntityReader(Protocol):
    """Reads the entities of many questions at once."""

    @property
    def name(self) -> str: ...

    def __call__(self, questions: Sequence[str]) -> Sequence[QuestionEntities]:
        """The entities of each question, in order."""
        ...


def reader_of(source: EntitySource, given: EntityReader | None) -> EntityReader:
    """The reader given; UsageError when there is none."""
    if given is None:
        raise UsageError(
            f"The entities of questions are to come from '{source}', and no reader was given. Open one and pass it to "
            "Searcher.open(entity_reader=...)."
        )
    return given
