"""Times of one step on an index, over and over in this process: python -m bench.opening_step DIR STEP TIMES."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Seconds = Mapping[str, float]


def search(root: Path) -> dict[str, float]:
    """A reader from its opening to its second question, and a refresh that finds nothing new."""
    from hippogpu.config import SearchConfig
    from hippogpu.searcher import Searcher

    spent: dict[str, float] = {}
    with timed(spent, "open"):
        searcher = Searcher.open(root)
    question = searcher.passage(searcher.manifest.counts["passages"] // 2).text[:100] or "?"
    for name in ("first question", "next question"):
        with timed(spent, name):
            searcher.rank([question], config=SearchConfig(method="hippo2"))
    with timed(spent, "refresh"):
        assert not searcher.refresh()
    return spent


def info(root: Path) -> dict[str, float]:
    """The verb info, its output thrown away."""
    from hippogpu.cli import inspecting

    spent: dict[str, float] = {}
    with timed(spent, "info"), contextlib.redirect_stdout(io.StringIO()):
        inspecting.info(root, json=True)
    return spent


def verify(root: Path) -> dict[str, float]:
    """The fast check."""
    return _verified(root, full=False)


def verify_full(root: Path) -> dict[str, float]:
    """The check of every byte, without the logs of extractions."""
    return _verified(root, full=True)


def _verified(root: Path, *, full: bool) -> dict[str, float]:
    from hippogpu.store import verify as verified

    spent: dict[str, float] = {}
    with timed(spent, "verify full" if full else "verify"):
        problems = verified(root, full=full)
    assert not problems, problems
    return spent


STEPS: Mapping[str, Callable[[Path], dict[str, float]]] = {
    "search": search,
    "info": info,
    "verify": verify,
    "verify_full": verify_full,
}


@contextlib.contextmanager
def timed(spent: dict[str, float], name: str) -> Iterator[None]:
    """Puts the seconds of what is inside under the name."""
    started = time.perf_counter()
    yield
    spent[name] = time.perf_counter() - started


def peak_bytes() -> int:
    """The most memory this process has held at once: resident pages, those of mapped files among them."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main(root: str, step: str, times: str) -> None:
    """Prints a JSON array: seconds by name each time, with what importing took and the peak memory in the first."""
    started = time.perf_counter()
    # The compiler is loaded by the first kernel that anything uses; with it in the imports, steps show their own work.
    import numba  # noqa: F401

    import hippogpu.cli.inspecting
    import hippogpu.searcher  # noqa: F401

    imported, found = time.perf_counter() - started, []
    for number in range(int(times)):
        seconds = STEPS[step](Path(root))
        found.append({"seconds": seconds, **({"import": imported, "peak": peak_bytes()} if number == 0 else {})})
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
