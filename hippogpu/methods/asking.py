"""From the texts of questions to what a method needs of them, and nothing more."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from hippogpu.config import EntitySource, SearchConfig
from hippogpu.embed import Embedder, encode_all
from hippogpu.errors import UsageError
from hippogpu.methods.entities import EntityReader, reader_of
from hippogpu.methods.filter import FactFilter, KeepAll
from hippogpu.methods.free_filters import AgreementFilter, GapFilter
from hippogpu.methods.linking import named_once
from hippogpu.methods.loaded import Clock, Queries
from hippogpu.methods.seam import Asked, EntityVectors, Needs
from hippogpu.text import TextRule, normalise


class Tools:
    """The models that questions are put to besides the index: its encoder, and what was given to judge and to read."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        fact_filter: FactFilter | None = None,
        entity_reader: EntityReader | None = None,
    ) -> None:
        self.embedder, self._filter, self._reader = embedder, fact_filter, entity_reader
        self._spacy: EntityReader | None = None
        self._opening = threading.Lock()

    def entity_reader(self, source: EntitySource) -> EntityReader:
        """The reader given, or spaCy's, opened at its first use; UsageError where the source needs another."""
        if source != "spacy" or self._reader is not None:
            return reader_of(source, self._reader)
        with self._opening:
            self._spacy = self._spacy or reader_of(source, None)
            return self._spacy

    def filter_for(self, config: SearchConfig) -> FactFilter:
        """The filter of the settings: the one given, where theirs needs a model; UsageError when none was."""
        if config.filter == "none":
            return KeepAll()
        if config.filter == "gap":
            return GapFilter(config.gap_share)
        if config.filter == "agreement":
            return AgreementFilter()
        if self._filter is None:
            raise UsageError(
                f"The filter '{config.filter}' needs a model, and none was given. Open one and pass it to "
                "Searcher.open(fact_filter=...), or set 'filter' to 'none'."
            )
        return self._filter


def ask(
    tools: Tools, questions: Sequence[str], needs: Needs, *, config: SearchConfig, rule: TextRule, clock: Clock
) -> Asked:
    """The questions with what is needed of them. rule: how the index normalises its phrases."""
    fact_filter = tools.filter_for(config) if needs.filter else KeepAll()
    entities = _entities(tools, questions, config, rule, clock) if needs.entities else None
    with clock("encode"):
        return Asked(questions, encoded(tools.embedder, questions, needs), fact_filter, entities)


def encoded(embedder: Embedder, questions: Sequence[str], needs: Needs) -> Queries:
    """The vectors that are needed, under the encoder's instructions; no columns for the others."""
    one = embedder.query_to_fact == embedder.query_to_passage
    nothing = np.empty((len(questions), 0), np.float32)
    wants_passages = needs.passages or (needs.facts and one)
    to_passages = encode_all(questions, embedder, instruction=embedder.query_to_passage) if wants_passages else nothing
    if one or not needs.facts:
        return Queries(to_passages, to_passages)
    return Queries(encode_all(questions, embedder, instruction=embedder.query_to_fact), to_passages)


def _entities(
    tools: Tools, questions: Sequence[str], config: SearchConfig, rule: TextRule, clock: Clock
) -> EntityVectors:
    """The questions' entities, normalised and encoded as phrases are: without an instruction."""
    with clock("entities"):
        reader = tools.entity_reader(config.entities)
        read = reader(questions)
        if len(read) != len(questions):
            raise UsageError(
                f"The reader '{reader.name}' gave the entities of {len(read)} questions for {len(questions)}. "
                "Return one row a question, in order."
            )
        named = named_once(read, rule)
    with clock("encode"):
        texts = [normalise(name, rule) for row in named for name in row.names]
        return EntityVectors(named, encode_all(texts, tools.embedder))
