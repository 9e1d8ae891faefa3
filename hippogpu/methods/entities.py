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
    """The reader of that source: the one given, or spaCy's; UsageError where the two do not go together."""
    if source == "spacy":
        return _spacy_reader(given)
    if given is None:
        raise UsageError(
            f"The entities of questions are to come from '{source}', and no reader was given. Name a file of them with "
            "--entities FILE, pass a reader to Searcher.open(entity_reader=...), or set 'entities' to 'spacy'."
        )
    return given


def _spacy_reader(given: EntityReader | None) -> EntityReader:
    # spaCy is an extra, and loaded by the first question that needs it.
    from hippogpu.methods.spacy_entities import SpacyEntities

    if given is None:
        return SpacyEntities()
    if not isinstance(given, SpacyEntities):
        raise UsageError(
            f"The reader '{given.name}' was given, and 'entities' of the settings is 'spacy'. Set it to 'given', or "
            "'llm', or pass no reader."
        )
    return given
