"""Searcher: the reader of an index folder; each answer is of one generation, whatever is committed meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from hippogpu.backends import Backend, load_backend
from hippogpu.config import RunConfig, SearchConfig
from hippogpu.embed import Embedder
from hippogpu.embed.stored import stored_embedder
from hippogpu.errors import EncoderMismatchError, UsageError
from hippogpu.methods import (
    Clock,
    EntityReader,
    FactFilter,
    Loaded,
    Queries,
    Ranked,
    Tools,
    ask,
    encoded,
    load,
    method_of,
)
from hippogpu.store import Manifest, Snapshot
from hippogpu.store.opening import Opened, open_current, read_pointer
from hippogpu.types import Explanation, Hit, Passage, Ranking

# Rows of this many bytes a node are alive at once while a batch is solved. A walk of few questions works on 8 columns.
_BYTES_A_NODE = 64


class _Generation:
    """A snapshot, and from its first use on its arrays on a backend. A rank call works on one from start to end."""

    def __init__(self, snapshot: Snapshot, backend: Backend, run: RunConfig) -> None:
        self.snapshot, self._backend, self._run = snapshot, backend, run
        self._lock = threading.Lock()
        self._loaded: Loaded | None = None
        self._rows: Mapping[str, int] | None = None

    def loaded(self, *, earlier: Loaded | None = None) -> Loaded:
        """The arrays on the backend, loaded once; those that an earlier generation holds too are taken from it."""
        with self._lock:
            if self._loaded is None:
                self._loaded = load(self.snapshot, self._backend, earlier=earlier, run=self._run)
            return self._loaded

    def rows(self) -> Mapping[str, int]:
        """The row of the passage of each id, made at the first use."""
        if self._rows is None:
            passages = self.snapshot.passages
            self._rows = dict(zip(passages.ids, passages.rows.tolist(), strict=True))
        return self._rows

    def held(self) -> Loaded | None:
        """The arrays on the backend, None before the first use."""
        return self._loaded


_NOTHING = Ranked(np.empty(0, np.int32), np.empty(0, np.float32), fallback="the index holds no passage")


class Searcher:
    """Ranks passages of one generation; later commits to the folder change nothing before refresh takes them in.

    Safe to use from several threads, refresh among them: what a rank call began with, it ends with.
    """

    def __init__(self, root: Path, opened: Opened, tools: Tools, backend: Backend, *, run: RunConfig) -> None:
        self._root, self._tools, self._backend, self._run = root, tools, backend, run
        self._budget_bytes = run.budget_bytes
        self._refreshing = threading.Lock()
        self._generation, self._pointer = _Generation(opened.snapshot, backend, run), opened.pointer

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | None = None,
        run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
        fact_filter: FactFilter | None = None,
        entity_reader: EntityReader | None = None,
    ) -> Self:
        """The current generation of the index at the path.

        embedder      : the one the index was built with when None; EncoderMismatchError when it is another, UsageError
                        when the index names one that contacts an address or loads a model by name (embed.stored)
        fact_filter   : what judges candidate facts where SearchConfig.filter names a filter that needs a model
        entity_reader : what reads the entities of questions where a method links those
        """
        root = Path(path)
        opened = open_current(root)
        built = opened.snapshot.manifest.encoder
        embedder = embedder or stored_embedder(built.spec, built.name, root)
        _check_encoder(opened.snapshot.manifest, embedder, root)
        backend = load_backend(run.backend, budget_bytes=run.budget_bytes)
        tools = Tools(embedder, fact_filter=fact_filter, entity_reader=entity_reader)
        return cls(root, opened, tools, backend, run=run)

    def refresh(self) -> bool:
        """Takes in the newest generation; False, after a look at CURRENT alone, when that is the one there is.

        Rank calls under way end with the generation they began with. After an error (EncoderMismatchError,
        IndexDamagedError, …) the generation stays the one there was.
        """
        if self._is_newest():
            return False
        with self._refreshing:
            # Of several calls at once the first one has taken it in.
            if self._is_newest():
                return False
            snapshot, pointer = open_current(self._root)
            held = self._generation
            changed = snapshot.manifest != held.snapshot.manifest
            if changed:
                _check_encoder(snapshot.manifest, self._tools.embedder, self._root)
                newest = _Generation(snapshot, self._backend, self._run)
                # What is damaged is found here, and the first question after pays for no loading of arrays. What
                # single methods derive (other graphs) is made when it is first asked for.
                newest.loaded(earlier=held.held())
                self._generation = newest
            self._pointer = pointer
            return changed

    def _is_newest(self) -> bool:
        return read_pointer(self._root) == self._pointer

    @property
    def manifest(self) -> Manifest:
        return self._generation.snapshot.manifest

    @property
    def backend(self) -> str:
        return self._backend.name

    def passage(self, row: int) -> Passage:
        """The passage of a row of the generation there is now, under the first of its ids."""
        return self._generation.snapshot.passages.passage(row)

    def aliases(self) -> dict[str, list[str]]:
        """Every id of each passage there is now, by its first; a chunk's parent is among the ids of the chunk."""
        passages = self._generation.snapshot.passages
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
        """As rank, a batch at a time as each is finished; all of the generation there is when this is called."""
        if isinstance(questions, str):
            raise UsageError(f"Pass a list of questions, not one text: [{questions[:40]!r}].")
        if k < 1:
            raise UsageError(f"k must be at least 1. Got {k}.")
        for number, question in enumerate(questions, start=1):
            if not question.strip():
                raise UsageError(f"Question {number} is empty. Ask something, or leave it out.")
        return self._batches(self._generation, questions, k, config)

    def explain(
        self,
        rankings: Sequence[Ranking],
        *,
        k: int = 5,
        passages: Sequence[str] = (),
        config: SearchConfig = SearchConfig(),  # noqa: B008  (frozen)
    ) -> list[list[Explanation]]:
        """What carried mass to the first k hits of each ranking, in the order of the rankings.

        passages : ids of passages to explain instead, also such as are no hits; their scores are worked out
        config   : that of rank
        UsageError for k < 1, an id that the index does not have, a ranking of another generation or other settings.
        """
        # Numba is loaded when something is explained, not before.
        from hippogpu.methods.explaining import explain_rankings, needs_of, wanted_of

        if k < 1:
            raise UsageError(f"k must be at least 1. Got {k}.")
        generation = self._generation
        wanted = wanted_of(
            rankings, k, passages, rows=generation.rows(), generation=generation.snapshot.manifest.generation
        )

        def encode(texts: Sequence[str]) -> Queries:
            return encoded(self._tools.embedder, texts, needs_of(rankings))

        return explain_rankings(generation.loaded(), rankings, wanted, encode, config=config)

    def batch_size(self, config: SearchConfig = SearchConfig()) -> int:  # noqa: B008  (frozen)
        """Questions answered together under the byte budget: more where no walk holds a row of all nodes a question."""
        return self._batch_size(self._generation, config)

    def _batch_size(self, generation: _Generation, config: SearchConfig) -> int:
        passages, nodes = len(generation.snapshot.passages), generation.snapshot.graph.nodes
        needs = method_of(config.method).needs(generation.loaded(), config)
        a_question = _BYTES_A_NODE * nodes * needs.walks + needs.passage_bytes * passages
        return max(1, self._budget_bytes // max(a_question, 1))

    def _batches(
        self, generation: _Generation, questions: Sequence[str], k: int, config: SearchConfig
    ) -> Iterator[list[Ranking]]:
        if not len(generation.snapshot.passages):
            yield [_ranking(generation.snapshot, question, _NOTHING, config.method, {}) for question in questions]
            return
        size = self._batch_size(generation, config)
        for start in range(0, len(questions), size):
            yield self._rank_batch(generation, questions[start : start + size], k, config)

    def _rank_batch(
        self, generation: _Generation, questions: Sequence[str], k: int, config: SearchConfig
    ) -> list[Ranking]:
        clock, loaded, method = Clock(), generation.loaded(), method_of(config.method)
        needs, rule = method.needs(loaded, config), generation.snapshot.manifest.config.text_rule
        asked = ask(self._tools, questions, needs, config=config, rule=rule, clock=clock)
        ranked = method.rank(loaded, asked, k=k, config=config, clock=clock)
        ms = {stage: spent / len(questions) for stage, spent in clock.ms.items()}
        return [
            _ranking(generation.snapshot, q, row, config.method, ms) for q, row in zip(questions, ranked, strict=True)
        ]


def _ranking(snapshot: Snapshot, question: str, ranked: Ranked, method: str, ms: dict[str, float]) -> Ranking:
    passages = snapshot.passages
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
        generation=snapshot.manifest.generation,
        filter_failure=ranked.filter_failure,
        fact_search=ranked.fact_search,
        entities=ranked.entities,
    )


def _check_encoder(manifest: Manifest, embedder: Embedder, root: Path) -> None:
    built = manifest.encoder
    if (embedder.name, embedder.width) != (built.name, built.width):
        raise EncoderMismatchError(
            f"The index '{root}' was built with the encoder '{built.name}' (width {built.width}), not with "
            f"'{embedder.name}' (width {embedder.width}). Use that one."
        )
