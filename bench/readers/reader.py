"""A reading process: python -m bench.readers.reader DIR THREADS BACKEND."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, cast

from bench.readers.content import QUESTIONS, SETTINGS, digest, run_config
from hippogpu.config import BackendName
from hippogpu.searcher import Searcher

# A thread takes the batches of a call so slowly that commits fall between them.
_SLOWLY_S = 0.01
_SAMPLE_S = 0.02


class Sample(NamedTuple):
    """What the process holds when a generation is first seen: bytes, open files, mapped files of the index."""

    generation: int
    rss: int
    files: int
    maps: int


class Reading:
    """One thread's questions and what came back."""

    def __init__(self, searcher: Searcher, *, slowly: bool) -> None:
        self._searcher, self._slowly = searcher, slowly
        self.digests: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.questions = self.mixed = self.backwards = 0
        self.last = 0

    def ask(self) -> None:
        """All questions under all settings, after a refresh."""
        self._searcher.refresh()
        for name, config in SETTINGS.items():
            rankings = []
            for batch in self._searcher.rank_batches(QUESTIONS, k=10, config=config):
                rankings += batch
                time.sleep(_SLOWLY_S if self._slowly else 0)
            generations = {ranking.generation for ranking in rankings}
            self.mixed += len(generations) > 1
            self.backwards += min(generations) < self.last
            self.last = max(generations)
            self.questions += len(rankings)
            for number, ranking in enumerate(rankings):
                self.digests[ranking.generation][f"{name} {number}"].add(digest(ranking))


def read(root: Path, threads: int, backend: BackendName) -> dict[str, Any]:
    """What the threads saw until a line came in and each had asked the newest generation once more.

    Prints "reading" when every thread has an answer.
    """
    searcher, stop = Searcher.open(root, run=run_config(backend)), threading.Event()
    readings = [Reading(searcher, slowly=number % 4 == 3) for number in range(threads)]

    def work(reading: Reading) -> None:
        last = False
        while not last:
            last = stop.is_set()
            reading.ask()

    with ThreadPoolExecutor(threads) as pool:
        workers = [pool.submit(work, reading) for reading in readings]
        while not all(reading.questions or worker.done() for reading, worker in zip(readings, workers, strict=True)):
            time.sleep(_SAMPLE_S)
        print("reading", flush=True)
        threading.Thread(target=_stop_at_line, args=(stop,), daemon=True).start()
        started = time.perf_counter()
        samples = list(_samples(searcher, root, workers))
    end = sample(searcher.manifest.generation, root)
    errors = [f"{type(error).__name__}: {error}" for worker in workers if (error := worker.exception())]
    return {
        "errors": errors,
        "questions": sum(reading.questions for reading in readings),
        "seconds": time.perf_counter() - started,
        "mixed": sum(reading.mixed for reading in readings),
        "backwards": sum(reading.backwards for reading in readings),
        "last": [reading.last for reading in readings],
        "digests": _joined(readings),
        "samples": [sample._asdict() for sample in samples],
        "end": end._asdict(),
        "layer": _layer(),
    }


def _stop_at_line(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


def _samples(searcher: Searcher, root: Path, workers: Sequence[Future[None]]) -> Iterator[Sample]:
    """One sample for each generation that is current here for a while, as long as a worker works."""
    seen = 0
    while not all(worker.done() for worker in workers):
        generation = searcher.manifest.generation
        if generation > seen:
            seen = generation
            yield sample(generation, root)
        time.sleep(_SAMPLE_S)


def sample(generation: int, root: Path) -> Sample:
    """What this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").count(f"{root.resolve()}/files/")
    return Sample(generation, pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd")), maps)


def _joined(readings: list[Reading]) -> dict[int, dict[str, list[str]]]:
    found: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for reading in readings:
        for generation, digests in reading.digests.items():
            for key, values in digests.items():
                found[generation][key] |= values
    return {
        generation: {key: sorted(values) for key, values in digests.items()} for generation, digests in found.items()
    }


def _layer() -> str | None:
    """numba's threading layer, None where no parallel kernel has run."""
    from numba.np.ufunc.parallel import threading_layer

    try:
        return str(threading_layer())  # type: ignore[no-untyped-call]
    except ValueError:
        return None


if __name__ == "__main__":
    folder, count, name = sys.argv[1:]
    print(json.dumps(read(Path(folder), int(count), cast("BackendName", name))))
