"""A spaCy pipeline that reads batches of passages: one record each, whatever one of them does to spaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hippogpu.openie.language import foreign_language, language_name
from hippogpu.openie.sentence_facts import SENTENCE_CHARACTERS, Entity, Sentence, sentence_facts
from hippogpu.openie.spacy_model import Model, load_pipeline
from hippogpu.text import readable
from hippogpu.types import Passage, Record

_BATCH = 32
# What spaCy's pipes raise on a text. Anything else ends the process, and its neighbours are read by another.
_PIPE_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError)


class SpacyReader:
    """A loaded model. What spaCy allocates for a batch is freed after it, so memory does not grow with a corpus."""

    def __init__(self, model: Model) -> None:
        self._pipeline = load_pipeline(model)
        self._language = model.language

    @property
    def pipes(self) -> tuple[str, ...]:
        """The names of the pipes that run, in order."""
        return tuple(self._pipeline.pipe_names)

    def read(self, passages: Sequence[Passage]) -> list[Record]:
        """The record of each passage, in order.

        A text that a pipe fails on takes the batch with it, so the batch is then read one by one; what fails alone
        gives a Record with error set, and so does a text in another language or beyond the model's max_length.
        """
        refused = {number: record for number, passage in enumerate(passages) if (record := self._refused(passage))}
        waiting = [passage for number, passage in enumerate(passages) if number not in refused]
        read = iter(self._read_safely(waiting))
        return [refused.get(number) or next(read) for number in range(len(passages))]

    def _read_safely(self, passages: Sequence[Passage]) -> list[Record]:
        try:
            return self._read(passages)
        except _PIPE_ERRORS as error:
            if len(passages) > 1:
                return [record for passage in passages for record in self._read_safely([passage])]
            reason = f"spaCy failed on the passage: {type(error).__name__}: {error}"
            return [Record(passages[0].id, (), error=reason)]

    def _refused(self, passage: Passage) -> Record | None:
        """The record of a passage that is not given to spaCy."""
        limit = self._pipeline.max_length
        if len(passage.text) > limit:
            error = (
                f"the passage has {len(passage.text)} characters; the spaCy model reads at most {limit}. "
                "Split long passages with --chunk"
            )
            return Record(passage.id, (), error=error)
        strange = foreign_language(passage.text, self._language)
        if strange is None:
            return None
        reads = "languages with spaces" if self._language == "xx" else language_name(self._language)
        error = (
            f"the passage seems to be {strange}; the spaCy model reads {reads}. Name a model for it with spacy_model "
            "under [extract], or configure a language model"
        )
        return Record(passage.id, (), error=error)

    def _read(self, passages: Sequence[Passage]) -> list[Record]:
        with self._pipeline.memory_zone():
            texts = [readable(passage.text) for passage in passages]
            return [
                sentence_facts(passage.id, readable(passage.title), _sentences(document), self._language)
                for passage, document in zip(passages, self._pipeline.pipe(texts, batch_size=_BATCH), strict=True)
            ]


def _sentences(document: Any) -> Iterator[Sentence]:
    """The sentences of a document with their entities, long ones in pieces, white space in runs as one space."""
    for sentence in document.sents:
        for span in _pieces(sentence):
            text = " ".join(span.text.split())
            if text:
                yield Sentence(text, [Entity(entity.text, entity.label_, len(entity)) for entity in span.ents])


def _pieces(sentence: Any) -> Iterator[Any]:
    """The sentence itself, or when it is long parts of it that end between words and not inside an entity."""
    begin, document = sentence.start, sentence.doc
    if sentence.end_char - sentence.start_char > SENTENCE_CHARACTERS:
        for token in sentence:
            long = token.idx + len(token) - document[begin].idx > SENTENCE_CHARACTERS
            if long and token.i > begin and token.ent_iob_ != "I":
                yield document[begin : token.i]
                begin = token.i
    yield document[begin : sentence.end]
