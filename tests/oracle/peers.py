"""One corpus put through hippogpu and through the naive peer, by the same vectors."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import naive
import numpy as np

from hippogpu.config import PROFILES, ProfileName
from hippogpu.demo import demo_folder
from hippogpu.embed import Embedder
from hippogpu.index import Index
from hippogpu.openie import ReplayExtractor
from hippogpu.searcher import Searcher
from hippogpu.store import Snapshot, current_manifest, load_snapshot
from hippogpu.types import Floats, Passage

EXPECTED = Path(__file__).parent / "expected.npz"


class Source(NamedTuple):
    """The shipped passages, what was extracted of each, and the questions."""

    passages: list[Passage]
    extractions: list[dict[str, Any]]
    questions: list[str]


class Peer(NamedTuple):
    """The naive side: its corpus, edges by pair of nodes, and its answers in the questions' order."""

    corpus: naive.Corpus
    edges: dict[tuple[naive.Node, naive.Node], float]
    answers: list[naive.Answer]


class StoredEmbedder:
    """Vectors stored by text, as whole numbers: scaled to length 1. A text that is not stored is a KeyError."""

    name = "stored"
    window = None
    query_to_fact = ""
    query_to_passage = ""

    def __init__(self, texts: Sequence[str], numbers: np.ndarray) -> None:
        rows = numbers.astype(np.float64)
        unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        self.width = numbers.shape[1]
        self._rows = dict(zip(texts, unit, strict=True))

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        return np.stack([self._rows[text] for text in texts]) if texts else np.empty((0, self.width), np.float32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def read_source() -> Source:
    folder = demo_folder()
    passages = [Passage(row["_id"], row["title"], row["text"]) for row in _rows(folder / "corpus.jsonl.gz")]
    stored = {row["_id"]: row for row in _rows(folder / "openie.jsonl.gz")}
    questions = [row["question"] for row in _rows(folder / "queries.jsonl.gz")]
    return Source(passages, [stored[passage.id] for passage in passages], questions)


def texts_of(source: Source, profile: ProfileName) -> list[str]:
    """Every text that is encoded under a profile: phrases, facts, passages, questions, each once."""
    rules = naive.PROFILES[profile]
    corpus = naive.read(source.extractions, rules)
    facts = [naive.fact_text(fact, rules) for fact in corpus.facts]
    passages = [f"{passage.title}\n{passage.text}" for passage in source.passages]
    return list(dict.fromkeys([*corpus.phrases, *facts, *passages, *source.questions]))


def run_peer(source: Source, embedder: Embedder, profile: ProfileName) -> Peer:
    """The naive side of one profile."""
    rules = naive.PROFILES[profile]
    corpus = naive.read(source.extractions, rules)
    near = naive.synonyms(corpus.phrases, embedder.encode(corpus.phrases), rules)
    edges = naive.edges(corpus, near, rules)
    walk = naive.walker(corpus, edges)
    facts = embedder.encode([naive.fact_text(fact, rules) for fact in corpus.facts])
    passages = embedder.encode([f"{passage.title}\n{passage.text}" for passage in source.passages])
    answers = [
        naive.answer(question, corpus, fact_vectors=facts, passage_vectors=passages, walk=walk)
        for question in embedder.encode(source.questions)
    ]
    return Peer(corpus, edges, answers)


def run_hippogpu(path: Path, source: Source, embedder: Embedder, profile: ProfileName) -> tuple[Snapshot, Searcher]:
    """hippogpu's side of one profile, through an index on disk."""
    extractor = ReplayExtractor(demo_folder() / "openie.jsonl.gz")
    with Index.open(path, extractor=extractor, embedder=embedder, config=PROFILES[profile]) as index:
        index.add(source.passages)
        index.commit()
    return load_snapshot(path, current_manifest(path)), Searcher.open(path, embedder=embedder)


def edges_of(snapshot: Snapshot) -> dict[tuple[naive.Node, naive.Node], float]:
    """hippogpu's edges by pair of nodes, as the naive side has them."""
    passages, graph = len(snapshot.passages), snapshot.graph
    nodes: list[naive.Node] = [("passage", number) for number in range(passages)]
    nodes += [("phrase", phrase) for phrase in snapshot.tables.phrases]
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    upper = rows < graph.indices
    ends = zip(rows[upper].tolist(), graph.indices[upper].tolist(), graph.weights[upper].tolist(), strict=True)
    return {(nodes[a], nodes[b]): weight for a, b, weight in ends}


def stored_embedder() -> StoredEmbedder:
    """The embedder of the stored expectations."""
    with np.load(EXPECTED) as stored:
        texts = stored_texts()
        assert str(stored["key"]) == key_of(texts), "the shipped corpus changed: run python tests/oracle/make.py"
        return StoredEmbedder(texts, stored["numbers"])


def stored_texts() -> list[str]:
    """The texts that vectors are stored for, in order: those of both profiles, each once."""
    source = read_source()
    return list(dict.fromkeys(text for profile in PROFILES for text in texts_of(source, profile)))


def key_of(texts: Sequence[str]) -> str:
    """What the stored vectors' texts must hash to."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
