"""What each stage of a commit takes: seconds, and the most memory while it ran."""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]

SAMPLE_S = 0.05
_STATUS = "/proc/self/status"
# What no file backs: heap and arrays, and memory shared without a file.
_HELD = (b"RssAnon:", b"RssShmem:")


class Stages:
    """Seconds and peak bytes by stage, and progress passed on under the stage's name.

    peak_bytes : the most memory that the process held at any sample (20 a second), what it held before the stage
                 included. Mapped files are not counted, as the system drops their pages when it needs room
    """

    def __init__(self, on_progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes: dict[str, int] = {}
        self._on_progress = on_progress
        self._name = ""

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started, self._name = time.perf_counter(), name
        try:
            with _peak(name, self.peak_bytes):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def progress(self, done: int, whole: int) -> None:
        if self._on_progress is not None:
            self._on_progress(self._name, done, whole)


@contextmanager
def _peak(name: str, peaks: dict[str, int]) -> Iterator[None]:
    """Keeps under the name the most that was held at its begin, its end and in between."""
    ended = threading.Event()

    def sample() -> None:
        peaks[name] = max(peaks.get(name, 0), held_bytes())

    def watch() -> None:
        while not ended.wait(SAMPLE_S):
            sample()

    watcher = threading.Thread(target=watch, name="peak-memory", daemon=True)
    sample()
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        sample()


def held_bytes() -> int:
    """The memory that this process holds and that no file backs; where the system does not say, the most it ever had.

    Linux says it in /proc/self/status.
    """
    try:
        with open(_STATUS, "rb") as status:
            lines = [line.split() for line in status if line.startswith(_HELD)]
    except OSError:
        lines = []
    if lines:
        return 1024 * sum(int(line[1]) for line in lines)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
