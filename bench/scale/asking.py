"""Questions to an index, timed in this process: python -m bench.scale.asking INDEX QUERIES CASE.

CASE is a method, with a solver behind a space where the method has them, or "facts": the search of facts alone. Prints
one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BATCH, K = 32, 20
SECONDS, MOST, LEAST = 20.0, 256, 8
"""How long a timing lasts at most, how many calls it has at most, and how many at least, whatever they take."""
LEAST_BATCHES, MOST_BATCHES = 1, 8
COMPARED = 32
SAME = 1e-4
"""Scores of one place are the same when they differ by less than this share of the ranking's greatest: they are float32
sums of up to a million terms, and those of hippo are sums of both signs."""

CASES = (
    "dense",
    "bm25",
    "hippo2 power",
    "hippo2 chebyshev",
    "hippo2 diffused",
    "hippo",
)


def asked(index: Path, queries: Path, case: str) -> dict[str, Any]:
    """Opens the index and asks: milliseconds of opening, of the first question, of single ones and in batches of 32.

    lists    : the passages of the first 32 questions, asked alone
    as_alone : how many of them had the same scores in a batch
    """
    from hippogpu.config import RunConfig, SearchConfig, with_values
    from hippogpu.corpus import read_queries
    from hippogpu.searcher import Searcher

    method, _, solver = case.partition(" ")
    config = with_values(SearchConfig(), {"method": method, **({"solver": solver} if solver else {})})
    texts = [query.text for query in read_queries(queries).queries]
    spent: dict[str, Any] = {}
    started = time.perf_counter()
    searcher = Searcher.open(index, run=RunConfig(backend="cpu"))
    spent["open_ms"] = _since(started)

    def ask(some: Sequence[str]) -> list[Any]:
        return searcher.rank(some, k=K, config=config)

    started = time.perf_counter()
    ask(texts[:1])
    spent["first_ms"] = _since(started)
    alone, single = _timed(ask, ([text] for text in cycle(texts)), least=LEAST, most=MOST)
    rows = [ranking for rankings in alone[:COMPARED] for ranking in rankings]
    together, batches = _timed(ask, _batches(texts), least=LEAST_BATCHES, most=MOST_BATCHES)
    lists = [[hit.passage.id for hit in ranking.hits] for ranking in rows]
    same = sum(_as_alone(one, other) for one, other in zip(together[0], rows, strict=False))
    golds = {query.text: set(query.supporting) for query in read_queries(queries).queries}
    found = [bool(golds[one.query] & {hit.passage.id for hit in one.hits[:5]}) for one in together[0]]
    certified = [ranking.certified for ranking in rows if ranking.certified is not None]
    return {
        **spent,
        "single": _figures(single),
        "batched": _figures(batches, BATCH),
        "stages_ms": _stages(alone),
        "batched_stages_ms": _stages(together),
        "questions": len(rows),
        "as_alone": same,
        "gold_in_5": sum(found),
        "of_batch": len(found),
        "certified": sum(certified) if certified else None,
        "solver": rows[0].solver,
        "fact_search": rows[0].fact_search,
        "lists": lists,
        "scores": [[hit.score for hit in ranking.hits] for ranking in rows],
    }


def facts_found(index: Path, queries: Path) -> dict[str, Any]:
    """The index's own search of facts beside the product with every fact: milliseconds, and how many of 5 it finds."""
    from hippogpu.backends import load_backend
    from hippogpu.config import SearchConfig
    from hippogpu.corpus import read_queries
    from hippogpu.embed import embedder_from_name, encode_all
    from hippogpu.methods import load
    from hippogpu.methods.facts import facts_by
    from hippogpu.store import current_manifest, load_snapshot

    manifest = current_manifest(index)
    embedder = embedder_from_name(manifest.encoder.spec)
    texts = [query.text for query in read_queries(queries).queries]
    vectors = encode_all(texts, embedder, instruction=embedder.query_to_fact)
    loaded = load(load_snapshot(index, manifest), load_backend("cpu"))
    own, every = facts_by(loaded, SearchConfig()), facts_by(loaded, SearchConfig(exact_facts=True))
    value: dict[str, Any] = {"facts": every.shape[0], "width": every.shape[1], "stored": manifest.config.fact_vectors}
    searches = {"every": every, **({} if own.exact else {"own": own})}
    lists = {}
    for name, search in searches.items():

        def near(rows: Any, search: Any = search) -> Any:
            return search.topk(rows, 5)

        near(vectors[:1])
        _, single = _timed(near, (vectors[i : i + 1] for i in cycle(range(len(vectors)))), least=LEAST, most=MOST)
        starts = cycle(range(0, len(vectors) - BATCH + 1, BATCH))
        _, batches = _timed(near, (vectors[i : i + BATCH] for i in starts), least=LEAST_BATCHES, most=MOST_BATCHES)
        lists[name] = [near(vectors[i : i + BATCH]) for i in range(0, len(vectors), BATCH)]
        value[name] = {
            "name": search.name,
            "bytes": search.nbytes,
            "single": _figures(single),
            "batched": _figures(batches, BATCH),
        }
    if "own" in lists:
        value["recall"] = _recall(lists["own"], lists["every"])
    return value


def _as_alone(one: Any, other: Any) -> bool:
    """Whether the rankings are one but for the rounding of scores."""
    here, there = (np.array([hit.score for hit in ranking.hits]) for ranking in (one, other))
    return len(here) == len(there) and np.allclose(here, there, rtol=0, atol=SAME * np.abs(here).max())


def _recall(own: Sequence[Any], every: Sequence[Any]) -> dict[str, Any]:
    """What approximate search finds of the true first five: by score, so that equal facts may stand for each other.

    low_off, high_off : the greatest error of the extremes that min-max goes by
    """
    wanted, found, low, high = (
        [np.concatenate([getattr(near, name) for near in nears]) for nears in (every, own)]
        for name in ("scores", "scores", "low", "high")
    )
    least = wanted[0][:, -1:]
    hits = (found[1] >= least - 1e-6).sum(axis=1)
    return {
        "questions": len(hits),
        "recall_5": float(hits.mean() / wanted[0].shape[1]),
        "all_5": float((hits == wanted[0].shape[1]).mean()),
        "first": float((np.abs(found[1][:, 0] - wanted[0][:, 0]) <= 1e-6).mean()),
        "low_off": float(np.abs(low[0] - low[1]).max()),
        "high_off": float(np.abs(high[0] - high[1]).max()),
    }


class _Call(NamedTuple):
    """Milliseconds of a call: by the clock, and of processor in all threads."""

    ms: float
    cpu_ms: float


def _timed(
    call: Callable[[Any], Any], inputs: Iterator[Any], *, least: int, most: int
) -> tuple[list[Any], list[_Call]]:
    """What the calls gave, and the time of each: at most so many, and no further ones after twenty seconds."""
    given: list[Any] = []
    spent: list[_Call] = []
    ends = time.perf_counter() + SECONDS
    for one in islice(inputs, most):
        if len(spent) >= least and time.perf_counter() > ends:
            break
        started, worked = time.perf_counter(), time.process_time()
        given.append(call(one))
        spent.append(_Call(_since(started), 1000 * (time.process_time() - worked)))
    return given, spent


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    endless = cycle(texts)
    while True:
        yield list(islice(endless, BATCH))


def _figures(calls: Sequence[_Call], questions: int = 1) -> dict[str, float]:
    """Milliseconds a question, and those of processor, which other work on the machine changes little."""
    ms, cpu_ms = (np.array(column) / questions for column in zip(*calls, strict=True))
    found = {"median": np.median(ms), "p95": np.percentile(ms, 95), "least": ms.min(), "cpu": np.median(cpu_ms)}
    return {**{name: float(f"{value:.4g}") for name, value in found.items()}, "calls": len(calls)}


def _stages(rankings: Sequence[Sequence[Any]]) -> dict[str, float]:
    """The median milliseconds a question of each stage that a ranking tells of."""
    rows = [ranking.ms for some in rankings for ranking in some]
    return {name: float(f"{np.median([row[name] for row in rows if name in row]):.4g}") for name in rows[0]}


def _since(started: float) -> float:
    return 1000 * (time.perf_counter() - started)


def main(index: str, queries: str, case: str) -> None:
    """Prints what was found."""
    # The compiler is loaded by the first kernel that anything uses; opening shows its own work without it.
    import numba  # noqa: F401

    value = facts_found(Path(index), Path(queries)) if case == "facts" else asked(Path(index), Path(queries), case)
    print(json.dumps(value))


if __name__ == "__main__":
    main(*sys.argv[1:])
