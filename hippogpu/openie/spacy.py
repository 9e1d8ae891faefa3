"""Extraction without a language model: spaCy finds sentences and entities, and rules make facts of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from hippogpu.errors import UsageError
from hippogpu.openie.sentence_facts import RULES_VERSION
from hippogpu.openie.spacy_model import find_model
from hippogpu.openie.spacy_processes import Workers
from hippogpu.types import Passage, Record

_BATCH_PASSAGES, _BATCH_CHARACTERS = 32, 60_000
# One process is done with fewer passages before another has loaded its model.
_FEW = 200


class SpacyExtractor:
    """Sentence facts by a spaCy model, on all cores.

    model     : "" for the small English model; else the name of an installed model package, or a folder
    processes : how many processes read, each with its own copy of the model; 0 for one a core, or a single one where
                there are few passages
    MissingExtraError without spaCy, ConfigError when the model is not installed. A passage in another language than
    the model's, one that spaCy fails on, and one longer than it reads give a Record with error set.
    """

    def __init__(self, model: str = "", *, processes: int = 0) -> None:
        if processes < 0:
            raise UsageError(f"'processes' must be 0 (one a core) or more. Got {processes}.")
        self._model = find_model(model)
        self._processes = processes

    @property
    def name(self) -> str:
        """Model, its version, and the version of the rules: what the facts depend on."""
        return f"spacy-{self._model.name}-{self._model.version}-{RULES_VERSION}"

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """One Record a passage, in any order, as each is finished; only the passages in work are held."""
        passages = iter(passages)
        first = list(islice(passages, _FEW + 1)) if self._processes == 0 else []
        count = self._processes or (1 if len(first) <= _FEW else len(os.sched_getaffinity(0)))
        if first or self._processes:
            with Workers(self._model, count) as workers:
                yield from workers.read(_batches(chain(first, passages)))


def _batches(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    """The passages in order, as many together as one process reads at a time."""
    batch: list[Passage] = []
    characters = 0
    for passage in passages:
        batch.append(passage)
        characters += len(passage.text)
        if len(batch) == _BATCH_PASSAGES or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
