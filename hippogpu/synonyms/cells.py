"""Phrases sorted into cells, so that each is compared with those of its nearest cells alone."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hippogpu.backends.threads import run_together, single_blas_thread
from hippogpu.precision import Vectors, float_rows
from hippogpu.synonyms.centres import BLOCK_ROWS, Reach, find_centres, nearest_cells
from hippogpu.synonyms.found import Gathering
from hippogpu.synonyms.kept import keep, kept, room
from hippogpu.synonyms.kept_centres import Centres
from hippogpu.synonyms.pairs import Wanted
from hippogpu.synonyms.tiles import ROWS, Rows, near_pairs
from hippogpu.types import AnyInts, Bools, Ints, Longs

REACH = Reach()
_STRETCH_ROWS = 32 * BLOCK_ROWS
_SCAN_ROWS = 1 << 16
_CELL_ROWS = 8 * ROWS
# Of a step: phrases in all their cells, and what each takes while they are sorted by cell.
_MOST_VISITS, _VISIT_BYTES = 1 << 21, 128


class Cells(NamedTuple):
    """near (E, cells looked at) int32: the cells nearest to each phrase, its own one first, −1 where there are fewer;
    own (E,) int32: the first column; visits, members (C,): phrases that look at a cell, and phrases whose own it is.
    """

    near: Ints
    own: Ints
    visits: Longs
    members: Longs


class CellStep(NamedTuple):
    """Cells first to last, and how many phrases they have."""

    first: int
    last: int
    members: int


def sort_into_cells(
    vectors: Vectors,
    *,
    reach: Reach,
    folder: Path | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Cells:
    """The cells of all phrases; the same vectors have the same. Progress counts phrases.

    folder : where centres and sorted phrases are kept, and looked for
    Memory beside them: 4·w/64 bytes a phrase for the centres, and about 100 MB for the products.
    """
    count = vectors.shape[0]
    # Learning the centres takes about as long as sorting the phrases into them.
    half = count // 2

    def learnt(rounds: int, whole: int) -> None:
        if on_progress:
            on_progress(half * rounds // whole)

    centres = find_centres(vectors, reach, folder=folder, on_progress=learnt)
    near: Ints = room((count, reach.cells), np.int32, folder, "near")
    for start in range(0, count, _STRETCH_ROWS):
        stretch = near[start : start + _STRETCH_ROWS]
        _sort_stretch(vectors, start, stretch, centres, reach, folder)
        if on_progress:
            on_progress(half + (count - half) * (start + len(stretch)) // count)
    visits = np.zeros(len(centres.cells), np.int64)
    for start in range(0, count, _SCAN_ROWS):
        visits += np.bincount(near[start : start + _SCAN_ROWS].ravel() + 1, minlength=len(visits) + 1)[1:]
    own = np.ascontiguousarray(near[:, 0])
    return Cells(near, own, visits, np.bincount(own, minlength=len(visits)))


def cell_steps(cells: Cells, budget_bytes: int) -> list[CellStep]:
    """The cells in steps of as many as stay in the budget, and at least one."""
    most = min(_MOST_VISITS, budget_bytes // _VISIT_BYTES)
    steps, first, visits = list[CellStep](), 0, 0
    for cell, count in enumerate(cells.visits.tolist()):
        if cell > first and visits + count > most:
            steps.append(CellStep(first, cell, int(cells.members[first:cell].sum())))
            first, visits = cell, 0
        visits += count
    steps.append(CellStep(first, len(cells.visits), int(cells.members[first:].sum())))
    return steps


def search_cells(
    step: CellStep, cells: Cells, vectors: Vectors, gathering: Gathering, wanted: Wanted, threshold: float, cap: int
) -> None:
    """Gathers the near pairs of the phrases of some cells with all phrases that look at those cells."""
    rows, bounds = _visitors(step, cells)
    lock = threading.Lock()

    def work(parts: Iterator[tuple[int, int, int]]) -> None:
        for cell, begin, end in parts:
            everyone = rows[bounds[cell - step.first] : bounds[cell - step.first + 1]]
            members = everyone[cells.own[everyone] == cell]
            for left in _loaded(rows[begin:end], vectors):
                for right in _loaded(members, vectors):
                    keep_ = _once(cell, left.numbers, right.numbers, cells)
                    near = near_pairs(left, right, keep=keep_, wanted=wanted, threshold=threshold, cap=cap)
                    with lock:
                        gathering.add(near)

    parts = [
        (cell, begin, min(begin + _CELL_ROWS, int(bounds[cell - step.first + 1])))
        for cell in range(step.first, step.last)
        if cells.members[cell]
        for begin in range(int(bounds[cell - step.first]), int(bounds[cell - step.first + 1]), _CELL_ROWS)
    ]
    with single_blas_thread():
        run_together(parts, work)


def _sort_stretch(
    vectors: Vectors, start: int, stretch: Ints, centres: Centres, reach: Reach, folder: Path | None
) -> None:
    """Fills the nearest cells of some phrases, unless an earlier run did and the digest of what it left says so."""
    mark = folder / f"near-{start:010d}" if folder is not None else None
    if mark is not None and (there := kept(mark)) and there.body.tobytes() == _digest(stretch):
        return

    def work(blocks: Iterator[int]) -> None:
        for first in blocks:
            last = min(first + BLOCK_ROWS, len(stretch))
            rows = float_rows(vectors, slice(start + first, start + last))
            stretch[first:last] = nearest_cells(rows, centres, reach)

    with single_blas_thread():
        run_together(range(0, len(stretch), BLOCK_ROWS), work)
    if mark is not None:
        keep(mark, start, len(stretch), [np.frombuffer(_digest(stretch), np.uint8)])


def _digest(stretch: Ints) -> bytes:
    return hashlib.sha256(stretch.data).digest()


def _visitors(step: CellStep, cells: Cells) -> tuple[Ints, Longs]:
    """The phrases that look at each cell of a step, ascending inside a cell, and where each cell's begin."""
    rows, where = [], []
    for start in range(0, len(cells.near), _SCAN_ROWS):
        part = cells.near[start : start + _SCAN_ROWS]
        row, column = np.nonzero((part >= step.first) & (part < step.last))
        where.append(part[row, column])
        rows.append((row + start).astype(np.int32))
    cell = np.concatenate(where)
    order = np.argsort(cell, kind="stable")
    bounds = np.searchsorted(cell[order], np.arange(step.first, step.last + 1))
    return np.concatenate(rows)[order], bounds


def _loaded(numbers: Ints, vectors: Vectors) -> Iterator[Rows]:
    """The phrases with their vectors, as many at a time as a product takes."""
    for start in range(0, len(numbers), ROWS):
        part = numbers[start : start + ROWS]
        yield Rows(part, float_rows(vectors, part))


def _once(cell: int, visitors: Ints, members: Ints, cells: Cells) -> Callable[[AnyInts, AnyInts], Bools]:
    """Which pairs of a visitor and a member count here: those that the member, as a visitor, does not meet earlier."""

    def keep(i: AnyInts, j: AnyInts) -> Bools:
        visitor, member = visitors[i], members[j]
        home = cells.own[visitor]
        again: Bools = (cells.near[member] == home[:, None]).any(axis=1)
        return ~again | (cell < home) | ((cell == home) & (visitor < member))

    return keep
