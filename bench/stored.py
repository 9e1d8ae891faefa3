"""Real passages with the extractions that are stored beside them, from several corpora, for the benches that index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hippogpu.corpus import read_corpus
from hippogpu.errors import UsageError
from hippogpu.openie import ReplayExtractor
from hippogpu.text import identity
from hippogpu.types import Passage, Record


class StoredExtractor:
    """Says of each passage what was read for its id."""

    name = "stored"

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """The record of each passage, under the passage's id."""
        for passage in passages:
            yield replace(self._records[passage.id], passage_id=passage.id)


class Stored(NamedTuple):
    """Passages in the order of their corpora, and who reads them."""

    passages: tuple[Passage, ...]
    extractor: StoredExtractor


def read_stored(corpora: Sequence[Path], extractions: Sequence[Path]) -> Stored:
    """The passages of all corpora that have an extraction, each text once, each id after the number of its corpus.

    extractions : one file a corpus, in the same order
    """
    if len(corpora) != len(extractions):
        raise UsageError(f"{len(corpora)} corpora and {len(extractions)} files of --openie. Give one for each corpus.")
    passages: list[Passage] = []
    records: dict[str, Record] = {}
    texts: set[str] = set()
    for number, (corpus, extraction) in enumerate(zip(corpora, extractions, strict=True)):
        own = tuple(read_corpus([corpus]).passages)
        for passage, record in zip(own, ReplayExtractor(extraction).extract(own), strict=True):
            text = identity(passage.title, passage.text)
            if record.error is None and text not in texts:
                texts.add(text)
                passages.append(passage._replace(id=f"{number}/{passage.id}"))
                records[passages[-1].id] = record
    return Stored(tuple(passages), StoredExtractor(records))
