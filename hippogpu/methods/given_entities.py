"""The entities of questions from a file, as some model named them before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from hippogpu.corpus.reader import rows_of
from hippogpu.corpus.rows import RowError, as_object, kind_of, storable, text_field
from hippogpu.errors import CorpusError
from hippogpu.methods.entities import QuestionEntities
from hippogpu.types import Refusal

NOT_GIVEN = "the given entities have none for this question"


class GivenEntities:
    """Hands out entities by the text of the question, runs of white space as one space."""

    def __init__(self, entities: Mapping[str, Sequence[str]]) -> None:
        self._entities = {_key(question): tuple(names) for question, names in entities.items()}
        content = json.dumps(sorted(self._entities.items()), ensure_ascii=True)
        self.name = f"given sha256 {sha256(content.encode()).hexdigest()[:16]}"

    def __call__(self, questions: Sequence[str]) -> list[QuestionEntities]:
        """The entities of each question; a question that is not there has none, and says so."""
        found = (self._entities.get(_key(question)) for question in questions)
        return [QuestionEntities((), NOT_GIVEN) if names is None else QuestionEntities(names) for names in found]


class EntityFile(NamedTuple):
    """The entities of a file, and the rows that are none."""

    entities: GivenEntities
    refusals: tuple[Refusal, ...]


def read_entities(path: Path) -> EntityFile:
    """The entities of a file of rows {"question", "entities": [text, ...]}, in any form of docs/corpus.md, or gzipped.

    A question again with other entities is refused, the first is kept. CorpusError when the file cannot be read, or has
    none.
    """
    entities: dict[str, tuple[str, ...]] = {}
    refusals: list[Refusal] = []
    for row in rows_of(Path(path)):
        if isinstance(row, Refusal):
            refusals.append(row)
            continue
        try:
            question, names = _entities_of(row.value)
            if entities.setdefault(_key(question), names) != names:
                raise RowError("this question came before with other entities; the first were kept")
        except RowError as error:
            refusals.append(Refusal(row.where, str(error)))
    if not entities:
        why = f"{len(refusals)} refused, the first: {refusals[0]}" if refusals else "empty"
        raise CorpusError(f"No entities of questions in '{path}' ({why}). Give rows with 'question' and 'entities'.")
    return EntityFile(GivenEntities(entities), tuple(refusals))


def _entities_of(row: object) -> tuple[str, tuple[str, ...]]:
    fields = as_object(row)
    question, names = text_field(fields, ("question", "text")), fields.get("entities")
    if question is None or not question.strip():
        raise RowError("no 'question' (or 'text'), or an empty one")
    if not isinstance(names, list):
        raise RowError(f"'entities' is not a list but {kind_of(names)}")
    return question, tuple(storable(name, "entities") for name in names)


def _key(question: str) -> str:
    return " ".join(question.split())
