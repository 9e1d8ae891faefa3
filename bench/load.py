"""What the benches of load share: the searcher and its questions, the check before, and one closed loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from bench.checks import Check, equal
from bench.measure import Spread, spread
from hippogpu.config import BackendName, MethodName, RunConfig, SearchConfig, SolverName, as_mapping
from hippogpu.corpus import read_queries
from hippogpu.embed import Embedder, embedder_from_name, encode_all
from hippogpu.errors import EncoderError, UsageError
from hippogpu.searcher import Searcher
from hippogpu.store import current_manifest
from hippogpu.types import Floats, Ranking

SIZES = (1, 8, 32, 128)
SAMPLE = 32
LEAST_REQUESTS = 20
PERCENTILES = (50, 95, 99)

Index = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of the index.")]
Questions = Annotated[Path, typer.Option("--queries", metavar="FILE", help="The questions to ask, each text once.")]
Sizes = Annotated[list[int] | None, typer.Option("--batch", min=1, help="A batch size; repeatable (1, 8, 32, 128).")]
Hits = Annotated[int, typer.Option("-k", min=1, help="How many passages a question gets.")]
Method = Annotated[MethodName, typer.Option("--method", help="How passages are ranked.")]
Solver = Annotated[SolverName, typer.Option("--solver", help="How PageRank is solved.")]
Backend = Annotated[BackendName, typer.Option("--backend", help="Where the arithmetic runs.")]
NoEncoder = Annotated[bool, typer.Option("--no-encoder", help="Make the questions' vectors before anything is timed.")]
Seconds = Annotated[float, typer.Option("--seconds", min=0.01, help="How long each timing lasts.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="How often each timing is repeated.")]
Json = Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the result here.")]


class Load(NamedTuple):
    """Distinct questions and how each batch of them is asked."""

    searcher: Searcher
    texts: tuple[str, ...]
    config: SearchConfig
    k: int
    encoder: str

    def ask(self, texts: Sequence[str]) -> list[Ranking]:
        return self.searcher.rank(texts, k=self.k, config=self.config)


class Request(NamedTuple):
    """One timed batch: its size, its milliseconds, and those of each stage."""

    size: int
    ms: float
    stages: Mapping[str, float]


class VectorTable:
    """The vectors of known texts under the encoder's own name, so that an index opens with it; no model is asked."""

    def __init__(self, inner: Embedder, texts: Sequence[str]) -> None:
        self.name, self.width, self.window = inner.name, inner.width, inner.window
        self.query_to_fact, self.query_to_passage = inner.query_to_fact, inner.query_to_passage
        self._token_counts = inner.token_counts
        self._rows = {
            (instruction, text): row
            for instruction in {inner.query_to_fact, inner.query_to_passage}
            for text, row in zip(texts, encode_all(texts, inner, instruction=instruction), strict=True)
        }

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The rows of the table; EncoderError for a text that is not in it."""
        try:
            rows = [self._rows[instruction, text] for text in texts]
        except KeyError as error:
            raise EncoderError(f"{error.args[0]} was not encoded beforehand. Ask only the texts given.") from error
        return np.stack(rows) if rows else np.empty((0, self.width), np.float32)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """The inner encoder's counts."""
        return self._token_counts(texts)


def open_load(
    index: Path,
    queries: Path,
    config: SearchConfig,
    sizes: Sequence[int],
    *,
    k: int,
    backend: BackendName,
    encode: bool,
) -> Load:
    """The index's searcher and the file's distinct questions; UsageError when they do not fill the largest batch.

    A text asked twice in a batch is encoded once, which would flatter the batch.
    """
    texts = tuple(dict.fromkeys(query.text for query in read_queries(queries).queries))
    if len(texts) < max(sizes):
        raise UsageError(
            f"'{queries}' has {len(texts)} distinct questions, too few for a batch of {max(sizes)}. "
            "Give more questions, or smaller sizes with --batch."
        )
    embedder = embedder_from_name(current_manifest(index).encoder.spec)
    table = embedder if encode else VectorTable(embedder, texts)
    how = "timed" if encode else "vectors were made beforehand; the stage 'encode' is their look-up"
    return Load(Searcher.open(index, embedder=table, run=RunConfig(backend=backend)), texts, config, k, how)


def described(load: Load) -> dict[str, Any]:
    """What was asked of what: for the result."""
    manifest = load.searcher.manifest
    return {
        "index": {"encoder": manifest.encoder.name, **manifest.counts},
        "settings": {**as_mapping(load.config), "k": load.k, "backend": load.searcher.backend},
        "questions": len(load.texts),
        "encoder": load.encoder,
    }


def check_batches(load: Load, sizes: Sequence[int]) -> list[Check]:
    """For each size: questions of a sample whose ids in a batch are those they get alone, in order."""
    sample = load.texts[:SAMPLE]
    alone = [ids_of(load.ask([text])[0]) for text in sample]
    checks = []
    for size in sizes:
        rankings: list[Ranking] = []
        while len(rankings) < len(sample):
            rankings += load.ask([load.texts[(len(rankings) + i) % len(load.texts)] for i in range(size)])
        same = sum(ids_of(ranking) == ids for ranking, ids in zip(rankings, alone, strict=False))
        checks.append(equal(f"batches of {size} = single calls, id for id", same, len(sample)))
    return checks


def ids_of(ranking: Ranking) -> list[str]:
    return [hit.passage.id for hit in ranking.hits]


def closed_loop(load: Load, size: int, *, seconds: float) -> list[Request]:
    """Batches one after another, each asked when the one before is answered, for so long and at least 20 of them.

    One batch goes before and is not timed.
    """
    batches = batches_of(load.texts, size)
    load.ask(next(batches))
    requests: list[Request] = []
    ended = time.perf_counter() + seconds
    while time.perf_counter() < ended or len(requests) < LEAST_REQUESTS:
        requests.append(timed(load.ask, next(batches)))
    return requests


def batches_of(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Batches of one size without end, going round the texts."""
    endless = cycle(texts)
    while True:
        yield list(islice(endless, size))


def timed(ask: Callable[[Sequence[str]], list[Ranking]], texts: Sequence[str]) -> Request:
    """One request. Each ranking bears its share of its batch, so the sum over them is the batch's time by stage.

    What no stage accounts for, such as making the rankings' values, is the stage "rest".
    """
    started = time.perf_counter()
    rankings = ask(texts)
    ms = 1000 * (time.perf_counter() - started)
    names = dict.fromkeys(stage for ranking in rankings for stage in ranking.ms)
    stages = {name: sum(ranking.ms.get(name, 0.0) for ranking in rankings) for name in names}
    return Request(len(texts), ms, {**stages, "rest": ms - sum(stages.values())})


def percentiles(passes: Sequence[Sequence[float]]) -> dict[str, Spread]:
    """p50, p95 and p99 of each pass, as the spread over the passes. Below 100 figures p99 is about the greatest."""
    return {f"p{p}": spread([float(np.percentile(times, p)) for times in passes]) for p in PERCENTILES}


def questions_a_second(passes: Sequence[Sequence[Request]]) -> Spread:
    """Questions answered in the time spent answering, a figure a pass."""
    return spread([sum(r.size for r in requests) / (sum(r.ms for r in requests) / 1000) for requests in passes])
