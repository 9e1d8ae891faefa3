"""The stored answers of the authors' library, and an encoder that knows only its vectors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hippogpu.corpus import Query, read_corpus, read_queries
from hippogpu.tables import fact_text
from hippogpu.text import identity
from hippogpu.types import AnyFloats, Floats, Passage


class Oracle(NamedTuple):
    """Phrases and facts as texts, edges by column, vectors and answers by name, one question a row."""

    phrases: list[str]
    facts: list[tuple[str, str, str]]
    graph: Mapping[str, Any]
    vectors: Mapping[str, Floats]
    answers: Mapping[str, Any]
    questions: list[Mapping[str, Any]]


class Source(NamedTuple):
    """What both sides indexed and were asked: passages, questions, and the file of stored extractions."""

    passages: Sequence[Passage]
    queries: Sequence[Query]
    openie: Path


def read_oracle(path: Path) -> Oracle:
    """The oracle's folder, read whole."""
    return Oracle(
        _json(path / "phrases.json.gz"),
        [tuple(fact) for fact in _json(path / "facts.json.gz")],
        dict(np.load(path / "graph.npz")),
        dict(np.load(path / "vectors.npz")),
        dict(np.load(path / "answers.npz")),
        [json.loads(line) for line in (path / "questions.jsonl").read_text(encoding="utf-8").splitlines()],
    )


def read_source(path: Path) -> Source:
    """The folder of the corpus; AssertionError when a row was refused, as then the figures would not compare."""
    reading, queries = read_corpus([path]), read_queries(path / "queries.jsonl")
    passages = tuple(reading.passages)
    assert not reading.refusals, reading.refusals
    assert not queries.refusals, queries.refusals
    return Source(passages, queries.queries, path / "openie.jsonl.gz")


def reset_vectors(oracle: Oracle) -> AnyFloats:
    """Its reset vectors, (60, n) float64, each summing to 1, from the stored seeds."""
    place = {phrase: len(oracle.vectors["passage"]) + row for row, phrase in enumerate(oracle.phrases)}
    passages = oracle.answers["passage_seed"]
    resets = np.zeros((len(passages), passages.shape[1] + len(oracle.phrases)))
    resets[:, : passages.shape[1]] = passages
    for row, question in zip(resets, oracle.questions, strict=True):
        for seed in question["phrase_seeds"]:
            row[place[seed["phrase"]]] = seed["weight"]
    normalised: AnyFloats = resets / resets.sum(axis=1, keepdims=True)
    return normalised


class OracleEmbedder:
    """The oracle's vectors as an encoder: a text it has no vector for is a KeyError."""

    name = "oracle-vectors"
    width = 384
    window = None
    query_to_fact = ""
    query_to_passage = ""

    def __init__(self, oracle: Oracle, source: Source) -> None:
        vectors = oracle.vectors
        texts = [
            (oracle.phrases, vectors["phrase"]),
            ([fact_text(fact, "tuple") for fact in oracle.facts], vectors["fact"]),
            ([identity(passage.title, passage.text) for passage in source.passages], vectors["passage"]),
            ([query.text for query in source.queries], vectors["query"]),
        ]
        self._rows = {text: row for keys, rows in texts for text, row in zip(keys, rows, strict=True)}

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The stored rows, (len(texts), 384) float32."""
        assert not instruction
        return np.stack([self._rows[text] for text in texts]) if len(texts) else np.empty((0, self.width), np.float32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many words each text has."""
        return [len(text.split()) for text in texts]


def _json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))
