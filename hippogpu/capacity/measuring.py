"""Rates of this machine, from a few seconds of each kind of work."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from hippogpu.backends import load_backend
from hippogpu.capacity.rates import TWO_CORES, Rates
from hippogpu.embed import Embedder
from hippogpu.types import Csr, Floats

_SECONDS = 0.4
_KEYS, _WIDTH, _BATCH = 65_536, 384, 32
_NODES, _DEGREE, _STEPS = 100_000, 16, 2
_SORTED, _WRITTEN = 1 << 21, 64 << 20
# Keys that np.sort sorts in a second on the two cores whose sort_keys and tabulate_facts are the default.
_SORT_THERE = 1.7e7
_PHRASES, _PASSAGES = 96, 12
_WORDS = ("the", "river", "of", "a", "family", "film", "born", "in", "county", "which", "album", "president", "war")


def measured_rates(embedder: Embedder | None = None, *, start: Rates = TWO_CORES) -> Rates:
    """The rates of the CPU backend here, a fraction of a second each; with an encoder, its rates too.

    What stands for no stage by itself (sort_keys, tabulate_facts) is scaled from `start` as sorting goes here.
    """
    random = np.random.default_rng(0)
    sorting = _sorting(random) / _SORT_THERE
    read, product = _products(random)
    alone, together, diffuse = _walks(random)
    rates = replace(
        start,
        read_gbs=read,
        product_gflops=product,
        near_gflops=product,
        walk_edges=together,
        walk_edges_alone=alone,
        diffuse_edges=diffuse,
        sort_keys=start.sort_keys * sorting,
        tabulate_facts=start.tabulate_facts * sorting,
        write_gbs=_writing(random),
    )
    return rates if embedder is None else _with_encoder(rates, embedder)


def _products(random: np.random.Generator) -> tuple[float, float]:
    """GB/s of one question's product with many rows, and GFLOP/s of 32 questions'."""
    backend = load_backend("cpu", budget_bytes=2**28)
    keys = backend.put(_unit_rows(random, _KEYS))
    asked = _unit_rows(random, _BATCH)
    one = _best(lambda: backend.topk(asked[:1], keys, 5))
    all_ = _best(lambda: backend.topk(asked, keys, 5))
    return keys.nbytes / one / 1e9, 2.0 * keys.size * _BATCH / all_ / 1e9


def _walks(random: np.random.Generator) -> tuple[float, float, float]:
    """Edges times columns a second, as at a million nodes: of one question, of 32, and of a diffusion."""
    backend = load_backend("cpu", budget_bytes=2**30)
    graph = backend.put_graph(_random_graph(random))
    seeds = random.random((_BATCH, _NODES), np.float32)
    seeds /= seeds.sum(axis=1, keepdims=True)
    columns = np.ascontiguousarray(seeds.T)
    edges = len(graph.indices) * _STEPS
    alone = _best(lambda: backend.solve(graph, seeds[:1], damping=0.5, steps=_STEPS))
    together = _best(lambda: backend.solve(graph, seeds, damping=0.5, steps=_STEPS))

    def diffuse() -> None:
        found = backend.diffuse(graph, columns, damping=0.5, steps=_STEPS)
        backend.residual(graph, columns, found, damping=0.5)

    down = (_NODES / 1e6) ** TWO_CORES.decline
    return down * edges / alone, down * edges * _BATCH / together, down * edges * _BATCH / _best(diffuse)


def _random_graph(random: np.random.Generator) -> Csr:
    """A symmetric graph of edges between random nodes."""
    source, target = random.integers(_NODES, size=(2, _NODES * _DEGREE // 2))
    rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
    keys = np.unique(rows * _NODES + columns)
    keys = keys[keys // _NODES != keys % _NODES]
    indptr = np.zeros(_NODES + 1, np.int64)
    np.cumsum(np.bincount(keys // _NODES, minlength=_NODES), out=indptr[1:])
    return Csr(indptr, (keys % _NODES).astype(np.int32), np.ones(len(keys), np.float32))


def _sorting(random: np.random.Generator) -> float:
    keys = random.integers(2**62, size=_SORTED)
    return _SORTED / _best(lambda: np.sort(keys))


def _writing(random: np.random.Generator) -> float:
    """GB/s of bytes hashed, written to the folder of temporary files, and waited for."""
    data = random.bytes(_WRITTEN)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "written"

        def write() -> None:
            with path.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            hashlib.sha256(data).hexdigest()

        return _WRITTEN / _best(write) / 1e9


def _with_encoder(rates: Rates, embedder: Embedder) -> Rates:
    """The rates with an encoder's milliseconds a text and a letter, from short texts and long ones."""
    short = [" ".join(_WORDS[(i + j) % len(_WORDS)] for j in range(3)) for i in range(_PHRASES)]
    long = [" ".join(_WORDS[(i * j + j) % len(_WORDS)] for j in range(100)) for i in range(_PASSAGES)]
    # The first call may compile.
    embedder.encode(short[:4])
    (quick, few), (slow, many) = ((_a_text(embedder, texts), _letters(texts)) for texts in (short, long))
    letter = max(0.0, (slow - quick) / (many - few))
    return replace(rates, letter_ms=1e3 * letter, text_ms=1e3 * max(0.0, quick - few * letter))


def _a_text(embedder: Embedder, texts: list[str]) -> float:
    return _best(lambda: embedder.encode(texts)) / len(texts)


def _letters(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / len(texts)


def _unit_rows(random: np.random.Generator, rows: int) -> Floats:
    made = random.standard_normal((rows, _WIDTH), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def _best(work: Callable[[], object]) -> float:
    """Seconds of the quickest of some calls; the first one, which may compile, does not count."""
    work()
    best, until = np.inf, time.perf_counter() + _SECONDS
    while True:
        started = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - started)
        if now > until:
            return float(best)
