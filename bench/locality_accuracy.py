"""Whether hippo2 ranks otherwise over weights in 16 bits: its lists of 20 beside those in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.locality_layouts import decoded_weights, weight_codes
from hippogpu.backends.cpu import CpuBackend
from hippogpu.config import Precision, RunConfig, SearchConfig
from hippogpu.corpus import Query, read_queries
from hippogpu.embed.stored import stored_embedder
from hippogpu.evaluate import EncodedOnce, ask, evaluate
from hippogpu.methods import Tools
from hippogpu.searcher import Searcher
from hippogpu.store.opening import Opened
from hippogpu.types import Csr, Floats

DEPTH = 20
# The reference's masses are exact within this much in L1.
EXACT = 1e-12


def _fixed(weights: Floats) -> Floats:
    return decoded_weights(*weight_codes(weights))


WEIGHTS: dict[str, Callable[[Floats], Floats]] = {
    "float32": lambda weights: weights,
    "float16": lambda weights: weights.astype(np.float16).astype(np.float32),
    "16-bit fixed": _fixed,
}


def measure_accuracy(
    index: Path, opened: Opened, graph: Csr, questions: Path, prefix: str, count: int
) -> list[dict[str, Any]]:
    """A row a kind of weights: lists of 20 that hold the same passages, the same order, and R@5.

    The first `count` questions whose supporting passages, named with the prefix, are all in the index.
    """
    queries = _asked(opened, questions, prefix, count)
    encoder = opened.snapshot.manifest.encoder
    embedder = EncodedOnce(stored_embedder(encoder.spec, encoder.name, index))

    def lists(kind: Precision, tolerance: float, values: Floats) -> dict[str, list[str]]:
        snapshot = replace(opened.snapshot, graph=replace(graph, weights=values), diffused=None)
        searcher = Searcher(
            index,
            Opened(snapshot, opened.pointer),
            Tools(embedder),
            CpuBackend(precision=kind),
            run=RunConfig(backend="cpu"),
        )
        config = SearchConfig(method="hippo2", solver="power", tolerance=tolerance)
        rankings = ask(searcher, queries, k=DEPTH, config=config, passages=len(snapshot.passages))
        named = zip(queries, rankings, strict=True)
        return {query.id: [hit.passage.id for hit in ranking.hits] for query, ranking in named}

    exact = lists("float64", EXACT, graph.weights)
    gold = {query.id: dict.fromkeys(query.supporting, 1) for query in queries}
    rows = [{"weights": "float64", "recall@5": evaluate(exact, gold).values["recall@5"], "questions": len(queries)}]
    for name, rounded in WEIGHTS.items():
        found = lists("float32", SearchConfig().tolerance, rounded(graph.weights))
        rows.append({"weights": name, **_beside(found, exact), "recall@5": evaluate(found, gold).values["recall@5"]})
    return rows


def _asked(opened: Opened, questions: Path, prefix: str, count: int) -> Sequence[Query]:
    known = set(opened.snapshot.passages.ids)
    named = [
        query._replace(supporting=tuple(prefix + id_ for id_ in query.supporting))
        for query in read_queries(questions).queries
    ]
    return [query for query in named if query.supporting and known.issuperset(query.supporting)][:count]


def _beside(found: Mapping[str, Sequence[str]], exact: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    pairs = [(found[name], exact[name]) for name in exact]
    return {
        "questions": len(pairs),
        "sets_changed": sum(set(mine) != set(true) for mine, true in pairs),
        "orders_changed": sum(list(mine) != list(true) for mine, true in pairs),
        "passages_changed": sum(len(set(true) - set(mine)) for mine, true in pairs),
    }
