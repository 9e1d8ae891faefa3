"""What float16 and int8 vectors save: python -m bench vector-types --keys 1000000 --passages 100000."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, get_args

import numpy as np
import typer
from rich.console import Console

from bench.checks import Check, all_passed, at_most
from bench.report import machine, print_checks, write_json
from bench.synthetic_index import passages_for, tables_of, unit_rows
from hippogpu.backends import load_backend
from hippogpu.config import IndexConfig, VectorType
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.index.encoding import encode
from hippogpu.precision import Vectors, arrays_of, empty_rows, float_rows, part, rounded
from hippogpu.store import StoredVectors
from hippogpu.types import Floats

BATCHES, TOP = (1, 4, 8, 32), 5
_BLOCK, _CHECKED_ROWS, _SCORE_TOLERANCE = 1 << 14, 10_000, 1e-5


def vector_types(
    keys: Annotated[int, typer.Option(help="Keys to search among.")] = 1_000_000,
    passages: Annotated[int, typer.Option(help="Synthetic passages to encode, 0 for none.")] = 100_000,
    width: Annotated[int, typer.Option(help="Length of a vector.")] = 384,
    repeats: Annotated[int, typer.Option(min=1, help="Times each search, types in turn.")] = 7,
    work: Annotated[Path | None, typer.Option(help="Where the encoded files go for the time of the run.")] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write the result here.")] = None,
) -> None:
    """Time the search among keys of each stored type and the encoding of an index, and measure memory.

    Exit 1 when a search does not give the scores of its rows: then nothing is timed.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    random = np.random.default_rng(0)
    rows = unit_rows(keys, width, random)
    stored: dict[VectorType, Vectors] = {kind: _stored(rows, kind) for kind in get_args(VectorType)}
    asked = unit_rows(max(BATCHES), width, random)
    checks = [check for kind, vectors in stored.items() for check in _checks(kind, vectors, asked)]
    words = f"python -m bench vector-types --keys {keys} --passages {passages} --width {width} --repeats {repeats}"
    result: dict[str, Any] = {"bench": "vector-types", "command": words, "machine": machine()}
    result |= {"keys": keys, "passages": passages, "width": width}
    result |= {"passed": all_passed(checks), "checks": [check._asdict() for check in checks]}
    print_checks(checks, console)
    if result["passed"]:
        result["searches"] = searched(stored, asked, repeats)
        del rows, stored
        if passages:
            result["encoding"] = {kind: encoded(passages, kind, width, work) for kind in get_args(VectorType)}
        console.print_json(data={name: result[name] for name in ("searches", "encoding") if name in result})
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def _stored(rows: Floats, kind: VectorType) -> Vectors:
    """The rows as that type, made a block at a time."""
    if kind == "float32":
        return rows
    made = empty_rows(*rows.shape, kind)
    for first in range(0, len(rows), _BLOCK):
        block = rounded(rows[first : first + _BLOCK], kind)
        for into, values in zip(arrays_of(made), arrays_of(block), strict=True):
            into[first : first + _BLOCK] = values
    return made


def _checks(kind: VectorType, vectors: Vectors, asked: Floats) -> Iterator[Check]:
    """Best scores and extremes of each batch against float64 products of the rows that are stored."""
    backend, some = load_backend("cpu"), part(vectors, slice(0, _CHECKED_ROWS))
    products = asked.astype(np.float64) @ float_rows(some, slice(None)).astype(np.float64).T
    for batch in BATCHES:
        found, exact = backend.topk(asked[:batch], backend.put(some), TOP), products[:batch]
        wanted = (-np.sort(-exact, axis=1)[:, :TOP], exact.min(axis=1), exact.max(axis=1))
        got = (found.scores, found.low, found.high)
        off = max(float(np.abs(a - b).max()) for a, b in zip(got, wanted, strict=True))
        yield at_most(f"{kind}, batch of {batch}: scores are off by", off, _SCORE_TOLERANCE)


def searched(stored: dict[VectorType, Vectors], asked: Floats, repeats: int) -> list[dict[str, Any]]:
    """Milliseconds of a search by type and batch; of each the least, as others' work only adds."""
    backend = load_backend("cpu")
    put = {kind: backend.put(vectors) for kind, vectors in stored.items()}
    times: dict[tuple[VectorType, int], list[tuple[float, float]]] = {}
    for _ in range(repeats + 1):
        for kind, keys in put.items():
            for batch in BATCHES:
                wall, cpu = time.perf_counter(), time.process_time()
                backend.topk(asked[:batch], keys, TOP)
                spent = (time.perf_counter() - wall, time.process_time() - cpu)
                times.setdefault((kind, batch), []).append(spent)
    return [
        {
            "type": kind,
            "batch": batch,
            "ms": 1000 * min(wall for wall, _ in all_[1:]),
            "cpu_ms": 1000 * min(cpu for _, cpu in all_[1:]),
            "key_bytes": put[kind].nbytes,
        }
        for (kind, batch), all_ in times.items()
    ]


def encoded(passages: int, kind: VectorType, width: int, work: Path | None) -> dict[str, Any]:
    """Seconds, texts a second and memory of our own of the encoding of a synthetic index, from nothing."""
    tables = tables_of(passages, np.random.default_rng(0))
    held = passages_for(tables)
    config = IndexConfig(passage_vectors=kind, phrase_vectors=kind, fact_vectors=kind)
    texts = len(tables.phrases) + len(tables.facts) + len(held)
    with TemporaryDirectory(dir=work) as folder, own_memory() as memory:
        root, embedder = Path(folder), HashingEmbedder(width)
        known = StoredVectors(root / "vectors", embedder.name, width)
        wall, cpu = time.perf_counter(), time.process_time()
        encode(root, held, tables, embedder=embedder, known=known, config=config, budget_bytes=512 * 2**20)
        seconds, cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        size = sum(path.stat().st_size for path in (root / "files").iterdir())
    return {
        "texts": texts,
        "s": seconds,
        "cpu_s": cpu_s,
        "texts_per_cpu_s": texts / cpu_s,
        "bytes": size,
        "added_bytes": memory[1] - memory[0],
    }


@contextmanager
def own_memory() -> Iterator[list[int]]:
    """The bytes of memory of the process's own, without mapped files: before, and at most until the end."""
    seen, done = [_anonymous()] * 2, threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            seen[1] = max(seen[1], _anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def _anonymous() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
