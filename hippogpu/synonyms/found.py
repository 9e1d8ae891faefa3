"""Pairs that were found, step by step: in memory, or in a folder from which a run that was killed goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.disk import failures_of, make_own_folder, refuse_link
from hippogpu.errors import IndexDamagedError
from hippogpu.synonyms.kept import keep, kept, mapped_body
from hippogpu.synonyms.pairs import NO_PAIRS, PAIR_BYTES, Pairs, joined, nearest
from hippogpu.types import Ints

_UNIT_ROWS = 4096


class _Run(NamedTuple):
    """Pairs sorted by source, in memory or in a file; low and high are the least and greatest source."""

    size: int
    low: int
    high: int
    pairs: Pairs
    path: Path | None

    def columns(self) -> Pairs:
        return self.pairs if self.path is None else _columns(mapped_body(self.path), self.size)


class Found:
    """The pairs of numbered steps.

    folder : None, or where each finished step leaves its pairs, sorted by source, in files that are there whole, with
             their digest, or not at all; the caller names it after everything that decides the pairs and the steps
    """

    def __init__(self, folder: Path | None, cap: int) -> None:
        self.folder, self._cap = folder, cap
        self._runs: list[_Run] = []
        if folder is not None:
            with failures_of(folder):
                refuse_link(folder.parent)
                make_own_folder(folder)

    @property
    def count(self) -> int:
        """All pairs."""
        return sum(run.size for run in self._runs)

    def has(self, step: int) -> bool:
        """Whether an earlier run finished the step; then its pairs count from now on. Damaged files do not count."""
        if self.folder is None:
            return False
        last = kept(_path(self.folder, step, 0))
        if last is None:
            return False
        paths = [_path(self.folder, step, part) for part in range(last.second)]
        parts = [last, *map(kept, paths[1:])]
        runs = [_run(part.first, part.body, path) for part, path in zip(parts, paths, strict=True) if part]
        if len(runs) < last.second:
            return False
        self._runs.extend(runs)
        return True

    def gather(self, step: int, limit_bytes: int) -> Gathering:
        """Takes the pairs of a step; with a folder, those that exceed the limit are put down in between."""
        if self.folder is not None:
            # A step of which something was damaged is made anew: what says that it is finished goes first, lest parts
            # of both makings be taken for one.
            path = _path(self.folder, step, 0)
            with failures_of(path):
                path.unlink(missing_ok=True)
        return Gathering(self, step, self._cap, limit_bytes)

    def put(self, step: int, part: int, pairs: Pairs, parts: int) -> None:
        """Keeps pairs sorted by source. Part 0 comes last and says how many there are: then the step is finished."""
        if self.folder is None:
            self._runs.append(_Run(len(pairs.source), *_span(pairs), pairs, None))
            return
        path = _path(self.folder, step, part)
        keep(path, len(pairs.source), parts, pairs)
        self._runs.append(_Run(len(pairs.source), *_span(pairs), NO_PAIRS, path))

    def ranges(self, rows: int, limit_bytes: int) -> Iterator[tuple[int, int, Pairs]]:
        """All pairs by ranges [low, high) of sources that cover the rows, unsorted: about so many bytes at a time."""
        bounds = np.append(np.arange(0, rows, _UNIT_ROWS), rows)
        counts = np.zeros(len(bounds) - 1, np.int64)
        for run in self._runs:
            counts += np.diff(np.searchsorted(run.columns().source, bounds))
        first, total = 0, 0
        for unit, count in enumerate(counts.tolist()):
            if unit > first and (total + count) * PAIR_BYTES > limit_bytes:
                yield self._range(int(bounds[first]), int(bounds[unit]), rows)
                first, total = unit, 0
            total += count
        if len(counts):
            yield self._range(int(bounds[first]), rows, rows)

    def _range(self, low: int, high: int, rows: int) -> tuple[int, int, Pairs]:
        parts = []
        for run in self._runs:
            if run.low < high and run.high >= low:
                columns = run.columns()
                first, last = np.searchsorted(columns.source, [low, high])
                parts.append(columns.where(np.arange(first, last)))
        found = joined(parts)
        if not (_inside(found.source, low, high) and _inside(found.target, 0, rows)):
            raise IndexDamagedError(
                f"Unfinished work in '{self.folder}' names phrases that are not there. Remove that folder and run "
                "again; finished extractions are kept."
            )
        return low, high, found


class Gathering:
    """Pairs of a step as they come, no more of a phrase than may be among its nearest."""

    def __init__(self, found: Found, step: int, cap: int, limit_bytes: int) -> None:
        self._found, self._step, self._cap = found, step, cap
        self._most = max(1, limit_bytes // PAIR_BYTES)
        self._parts: list[Pairs] = []
        self._held = self._put = 0
        self._next_cut = self._most

    def add(self, pairs: Pairs) -> None:
        """Takes pairs in any order; to be called by one thread at a time."""
        self._parts.append(pairs)
        self._held += len(pairs.source)
        if self._held <= self._next_cut:
            return
        self._cut()
        if self._found.folder is not None and self._held > self._most // 2:
            self._put += 1
            self._found.put(self._step, self._put, self._parts.pop(), 0)
            self._held = 0
        self._next_cut = self._held + self._most

    def finish(self) -> None:
        """The step is done: what it found is kept."""
        self._cut()
        self._found.put(self._step, 0, self._parts.pop(), self._put + 1)

    def _cut(self) -> None:
        self._parts = [nearest(joined(self._parts), self._cap)]
        self._held = len(self._parts[0].source)


def _inside(numbers: Ints, low: int, high: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= low and int(numbers.max()) < high)


def _path(folder: Path, step: int, part: int) -> Path:
    return folder / f"pairs-{step:06d}-{part:03d}"


def _run(count: int, body: NDArray[np.uint8], path: Path) -> _Run:
    return _Run(count, *_span(_columns(body, count)), NO_PAIRS, path)


def _span(pairs: Pairs) -> tuple[int, int]:
    return (int(pairs.source[0]), int(pairs.source[-1])) if len(pairs.source) else (0, -1)


def _columns(body: NDArray[np.uint8], count: int) -> Pairs:
    source, target, cosine = np.split(body, [4 * count, 8 * count])
    return Pairs(source.view(np.int32), target.view(np.int32), cosine.view(np.float64))
