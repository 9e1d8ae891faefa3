"""The entities of questions by the small spaCy model that also reads passages: no language model, no key."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from hippogpu.methods.entities import QuestionEntities
from hippogpu.methods.question_names import Span, names_in
from hippogpu.openie.sentence_facts import DROPPED_LABELS
from hippogpu.openie.spacy_model import find_model, load_pipeline
from hippogpu.text import readable

_BATCH = 64
# What spaCy's pipes raise on a text.
_PIPE_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError)


class SpacyEntities:
    """Names the entities of questions: what the model marks but dates and numbers, quotations, capitalised words.

    model : a package or folder; "" for the small English one. MissingExtraError without spaCy, ConfigError without it
    """

    name = "spacy"

    def __init__(self, model: str = "") -> None:
        found = find_model(model)
        self._pipeline, self._language = load_pipeline(found), found.language
        self._reading = threading.Lock()  # spaCy's memory zones are not for several threads

    def __call__(self, questions: Sequence[str]) -> list[QuestionEntities]:
        """The entities of each question; a question that a pipe fails on has none, and says why."""
        with self._reading:
            return self._read([readable(question) for question in questions])

    def _read(self, questions: Sequence[str]) -> list[QuestionEntities]:
        """A text that a pipe fails on takes its batch with it, so the batch is then read one by one."""
        try:
            with self._pipeline.memory_zone():
                documents = self._pipeline.pipe(questions, batch_size=_BATCH)
                return [QuestionEntities(_names(document, self._language)) for document in documents]
        except _PIPE_ERRORS as error:
            if len(questions) == 1:
                return [QuestionEntities((), f"spaCy failed on it: {type(error).__name__}: {error}")]
            return [row for question in questions for row in self._read([question])]


def _names(document: Any, language: str) -> tuple[str, ...]:
    marked = [entity for entity in document.ents if entity.label_ not in DROPPED_LABELS]
    return names_in(document.text, [Span(entity.start_char, entity.end_char) for entity in marked], language)
