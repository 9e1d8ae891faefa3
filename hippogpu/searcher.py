"""Searcher: the reader of an index folder; a snapshot of one generation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from hippogpu.backends import Backend, load_backend
from hippogpu.config import RunConfig, SearchConfig
from hippogpu.embed import Embedder, embedder_from_name, encode_all
from hippogpu.errors import EncoderMismatchError, UsageError
from hippogpu.methods import Clock, Loaded, Queries, Ranked, load, rank_dense, rank_hippo2, solver_for
from hippogpu.store import Manifest, Snapshot, current_manifest, load_snapshot
from hippogpu.types import Hit, Passage, Ranking

# Rows of this many bytes a node and a passage are alive at once while a batch is solved and selected. A walk of few
# questions works on 8 columns.
_BYTES_A_NODE, _BYTES_A_PASSAGE = 64, 32


class Searcher:
    """Ranks passages of one generation; later commits to the folder do not change it."""

    def __init__(self, snapshot: Snapshot, embedder: Embedder, backend: Backend, *, budget_bytes: int) -> None:
        self._snapshot, self._embedder, self._backend = snapshot, embedder, backend
        self._budget_bytes = budget_bytes
        self._loaded: Loaded | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | None = None,
        run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
    ) -> Self:
        """The current generation of the index at the path.

        embedder : the one the index was built with when None; EncoderMismatchError when it is another
        """
        root = Path(path)
        manifest = current_manifest(root)
        snapshot = load_snapshot(root, manifest)
        embedder = embedder or _embedder_of(manifest, root)
        if (embedder.name, embedder.width) != (manifest.encoder.name, manifest.encoder.width):
            raise EncoderMismatchError(
                f"The index '{root}' was built with the encoder '{manifest.encoder.name}' (width "
                f"{manifest.encoder.width}), not with '{embedder.name}' (width {embedder.width}). Use that one."
            )
        backend = load_backend(run.backend, budget_bytes=run.budget_bytes)
        return cls(snapshot, embedder, backend, budget_bytes=run.budget_bytes)

    @property
    def manifest(self) -> Manifest:
        return self._snapshot.manifest

    @property
    def backend(self) -> str:
        return self._backend.name

    def passage(self, row: int) -> Passage:
        """The passage of a row, under the first of its ids."""
        return self._snapshot.passages.passage(row)

    def aliases(self) -> dict[str, list[str]]:
        """Every id of each passage, by its first; a chunk's parent is among the ids of the chunk."""
        passages = self._snapshot.passages
        first = [passages.ids[int(number)] for number in passages.first]
        names: dict[str, list[str]] = {id_: [] for id_ in first}
        for id_, row, meta in zip(passages.ids, passages.rows, passages.metas, strict=True):
            parent = json.loads(meta).get("chunk_of") if "chunk_of" in meta else None
            names[first[row]] += [id_] if parent is None else [id_, str(parent)]
        return names

    def rank(
        self,
        questions: Sequence[str],
        *,
        k: int = 10,
        config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    ) -> list[Ranking]:
        """The k best passages for each question (all, when there are fewer), in the questions' order.

        UsageError for an empty question or k < 1. Solved in batches that fit the byte budget.
        """
        return [ranking for batch in self.rank_batches(questions, k=k, config=config) for ranking in batch]

    def rank_batches(self, questions: Sequence[str], *, k: int, config: SearchConfig) -> Iterator[list[Ranking]]:
        """As rank, a batch at a time as each is finished."""
        if isinstance(questions, str):
            raise UsageError(f"Pass a list of questions, not one text: [{questions[:40]!r}].")
        if k < 1:
            raise UsageError(f"k must be at least 1. Got {k}.")
        for number, question in enumerate(questions, start=1):
            if not question.strip():
                raise UsageError(f"Question {number} is empty. Ask something, or leave it out.")
        size = self.batch_size(config)
        for start in range(0, len(questions), size):
            yield self._rank_batch(questions[start : start + size], k, config)

    def batch_size(self, config: SearchConfig = SearchConfig()) -> int:  # noqa: B008  (frozen)
        """Questions answered together under the byte budget: more where no walk holds a row of all nodes a question."""
        passages, nodes = len(self._snapshot.passages), self._snapshot.graph.nodes
        loaded = self._load()
        walks = config.method == "hippo2" and solver_for(loaded, config) != "diffused"
        return max(1, self._budget_bytes // (_BYTES_A_NODE * nodes * walks + _BYTES_A_PASSAGE * passages))

    def _rank_batch(self, questions: Sequence[str], k: int, config: SearchConfig) -> list[Ranking]:
        clock = Clock()
        with clock("encode"):
            queries = self._encoded(questions, facts=config.method == "hippo2")
        ranked = self._ranked(questions, queries, k, config, clock)
        ms = {stage: spent / len(questions) for stage, spent in clock.ms.items()}
        return [self._ranking(q, row, config.method, ms) for q, row in zip(questions, ranked, strict=True)]

    def _ranked(
        self, questions: Sequence[str], queries: Queries, k: int, config: SearchConfig, clock: Clock
    ) -> list[Ranked]:
        loaded = self._load()
        if config.method == "dense":
            return rank_dense(loaded, queries, k=k, clock=clock)
        return rank_hippo2(loaded, questions, queries, k=k, config=config, clock=clock)

    def _load(self) -> Loaded:
        if self._loaded is None:
            self._loaded = load(self._snapshot, self._backend)
        return self._loaded

    def _encoded(self, questions: Sequence[str], *, facts: bool) -> Queries:
        embedder = self._embedder
        to_passages = encode_all(questions, embedder, instruction=embedder.query_to_passage)
        if not facts or embedder.query_to_fact == embedder.query_to_passage:
            return Queries(to_passages, to_passages)
        return Queries(encode_all(questions, embedder, instruction=embedder.query_to_fact), to_passages)

    def _ranking(self, question: str, ranked: Ranked, method: str, ms: dict[str, float]) -> Ranking:
        passages = self._snapshot.passages
        hits = tuple(
            Hit(passages.passage(int(row)), float(score)) for row, score in zip(ranked.rows, ranked.scores, strict=True)
        )
        return Ranking(
            question,
            hits,
            method,
            ranked.solver,
            ranked.facts,
            ranked.seeds,
            certified=ranked.certified,
            fallback=ranked.fallback,
            ms=ms,
        )


def _embedder_of(manifest: Manifest, root: Path) -> Embedder:
    if not manifest.encoder.spec:
        raise UsageError(
            f"The index '{root}' was built with the encoder '{manifest.encoder.name}', which was made in Python. "
            "Pass it: Searcher.open(path, embedder=...)."
        )
    return embedder_from_name(manifest.encoder.spec)
