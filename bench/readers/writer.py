"""The writing process: python -m bench.readers.writer DIR GENERATIONS PASSAGES BACKEND."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, cast

from bench.readers.content import ENCODER, REGIONS, Stating, answers, change, passage, record_path, run_config
from hippogpu.config import BackendName
from hippogpu.embed import embedder_from_name
from hippogpu.index import Index
from hippogpu.searcher import Searcher


def write(root: Path, generations: int, passages: int, backend: BackendName) -> dict[str, Any]:
    """Commits the generations, and leaves beside the index what each answers when nobody else asks.

    Prints "ready" after the first, and goes on when a line comes in.
    """
    run, seconds = run_config(backend), []
    whole = passages - passages % REGIONS
    with Index.open(
        root, extractor=Stating(), embedder=embedder_from_name(ENCODER), run=run, encoder_spec=ENCODER
    ) as index:
        index.add([*(passage(number, 1) for number in range(whole)), passage(whole + 1, 1)])
        for generation in range(1, generations + 1):
            if generation > 1:
                put, gone = change(generation, whole)
                index.add(put)
                index.delete(gone)
            started = time.perf_counter()
            report = index.commit(diffuse="always")
            seconds.append(time.perf_counter() - started)
            assert report.generation == generation, report
            digests = answers(Searcher.open(root, run=run))
            record_path(root, generation).write_text(json.dumps(digests), encoding="ascii")
            if generation == 1:
                print("ready", flush=True)
                sys.stdin.readline()
    return {"commits": generations, "commit_s": seconds}


if __name__ == "__main__":
    folder, count, size, name = sys.argv[1:]
    print(json.dumps(write(Path(folder), int(count), int(size), cast("BackendName", name))))
