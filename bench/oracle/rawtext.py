"""From raw text with our own encoder: an index a profile, recall, agreement, batches against single calls, times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.checks import Check, equal
from bench.measure import Spread, spread
from bench.oracle.data import Oracle, Source
from hippogpu.config import PROFILES, MethodName, ProfileName, SearchConfig
from hippogpu.embed import Embedder
from hippogpu.index import Index
from hippogpu.openie import ReplayExtractor
from hippogpu.searcher import Searcher
from hippogpu.types import Floats, Ranking

METHODS: tuple[MethodName, ...] = ("hippo2", "dense")
DEPTHS = (1, 2, 5, 10, 20)
ORACLE_RECALL = {"hippo2": (25.69, 45.00, 67.92, 79.72, 85.00), "dense": (34.44, 48.61, 63.33, 70.83, 75.42)}
# At most this far from the oracle's recall: one of the 142 gold passages of 60 questions is worth 0.4 to 0.8 points.
RECALL_TOLERANCE = 0.84
STAGES = ("extract", "tables", "encode", "synonyms", "graph", "commit")


class CountingEmbedder:
    """Another encoder that counts the texts it is asked for."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.texts = 0
        self.name, self.width, self.window = inner.name, inner.width, inner.window
        self.query_to_fact, self.query_to_passage = inner.query_to_fact, inner.query_to_passage

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The inner encoder's rows; the texts are counted."""
        self.texts += len(texts)
        return self._inner.encode(texts, instruction=instruction)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """The inner encoder's counts: no model is asked."""
        return self._inner.token_counts(texts)


class Built(NamedTuple):
    """What building the index took, by stage in seconds, and how many texts went to the model."""

    seconds: Mapping[str, float]
    texts: int


def build_index(path: Path, source: Source, embedder: Embedder, profile: ProfileName) -> Built | None:
    """Builds the index; None when it was there already, whole."""
    counting = CountingEmbedder(embedder)
    started = time.perf_counter()
    with Index.open(
        path,
        extractor=ReplayExtractor(source.openie),
        embedder=counting,
        config=PROFILES[profile],
        encoder_spec="minilm",
    ) as index:
        index.add(source.passages)
        report = index.commit()
    if not report.changed:
        return None
    seconds = {stage: round(report.seconds[stage], 3) for stage in STAGES}
    return Built({**seconds, "whole": round(time.perf_counter() - started, 3)}, counting.texts)


def reindex(path: Path, source: Source, embedder: Embedder, profile: ProfileName) -> tuple[list[Check], dict[str, Any]]:
    """The same corpus again, three times: nothing is encoded and no generation is made."""
    seconds, texts, changed = [], 0, False
    for _ in range(3):
        counting = CountingEmbedder(embedder)
        started = time.perf_counter()
        with Index.open(
            path, extractor=ReplayExtractor(source.openie), embedder=counting, config=PROFILES[profile]
        ) as index:
            index.add(source.passages)
            changed |= index.commit().changed
        seconds.append(time.perf_counter() - started)
        texts += counting.texts
    checks = [
        equal(f"texts encoded by a re-index, {profile}", texts, 0),
        equal(f"new generations by a re-index, {profile}", int(changed), 0),
    ]
    return checks, {"seconds": spread(seconds), "texts_encoded": texts}


def compare_rankings(
    oracle: Oracle, source: Source, searcher: Searcher, profile: ProfileName
) -> tuple[list[Check], dict[str, Any]]:
    """Recall and top-20 sets of both methods beside the oracle's; a batch of 60 against 60 calls of one."""
    texts = [query.text for query in source.queries]
    row = {passage.id: number for number, passage in enumerate(source.passages)}
    checks: list[Check] = []
    figures: dict[str, Any] = {}
    for method in METHODS:
        config = SearchConfig(method=method)
        batch = searcher.rank(texts, k=20, config=config)
        single = [searcher.rank([text], k=20, config=config)[0] for text in texts]
        top = oracle.answers["top20" if method == "hippo2" else "dense_top20"]
        sets = sum(
            {row[i] for i in ids(ranking)} == set(best.tolist()) for ranking, best in zip(batch, top, strict=True)
        )
        found = recall(batch, source)
        same = sum(ids(a) == ids(b) for a, b in zip(batch, single, strict=True))
        checks.append(equal(f"batch of 60 = 60 single calls, id for id, {profile} {method}", same, len(texts)))
        if profile == "oracle":
            near = all(abs(a - b) <= RECALL_TOLERANCE for a, b in zip(found, ORACLE_RECALL[method], strict=True))
            name = f"recall within {RECALL_TOLERANCE} points of the oracle's, {method}"
            checks.append(Check(name, found, ORACLE_RECALL[method], near))
        figures[method] = {"recall": dict(zip(map(str, DEPTHS), found, strict=True)), "top20_sets_equal": sets}
    return checks, figures


def recall(rankings: Sequence[Ranking], source: Source) -> tuple[float, ...]:
    """Mean recall in percent at each depth."""
    gold = [set(query.supporting) for query in source.queries]
    tops = [[len(set(ids(r)[:k]) & g) / len(g) for r, g in zip(rankings, gold, strict=True)] for k in DEPTHS]
    return tuple(round(100 * sum(shares) / len(shares), 2) for shares in tops)


def ids(ranking: Ranking) -> list[str]:
    return [hit.passage.id for hit in ranking.hits]


def time_queries(source: Source, searcher: Searcher, *, repeats: int) -> dict[str, Any]:
    """Milliseconds a question by stage and whole, in one batch and alone, after one call of each to warm up."""
    texts = [query.text for query in source.queries]
    times: dict[str, Any] = {}
    for method in METHODS:
        config = SearchConfig(method=method)

        def ask(questions: Sequence[str], config: SearchConfig = config) -> Ranking:
            return searcher.rank(questions, k=20, config=config)[0]

        ask(texts), ask(texts[:1])
        batches = [_timed(ask, texts) for _ in range(repeats)]
        alone = [_timed(ask, [text]) for _ in range(repeats) for text in texts]
        times[method] = {"batch": _by_stage(batches), "single": _by_stage(alone)}
    return times


def _timed(ask: Callable[[Sequence[str]], Ranking], questions: Sequence[str]) -> Mapping[str, float]:
    started = time.perf_counter()
    ranking = ask(questions)
    whole = 1000 * (time.perf_counter() - started) / len(questions)
    return {**ranking.ms, "whole": whole}


def _by_stage(times: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    return {stage: spread([each[stage] for each in times]) for stage in times[0]}
