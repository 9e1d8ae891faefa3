"""Centres of cells on the sphere, in two levels, by k-means on a sample; and the cells nearest to a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hippogpu.backends.threads import run_together, single_blas_thread
from hippogpu.precision import Vectors, float_rows
from hippogpu.synonyms.kept_centres import Centres, keep_centres, kept_centres
from hippogpu.types import AnyInts, Floats, Ints, Longs

# Blocks have one size whatever the budget: a product may differ in its last digit with the size of its blocks, and a
# vector on the border of two cells would change sides.
BLOCK_ROWS = 8192
_ITERATIONS = 6
_TOP_SAMPLE, _SAMPLE = 128, 32
_MOST_CHILDREN = 4
_ROUNDS = 3


class Reach(NamedTuple):
    """How fine cells are, and how many are looked at.

    phrases : of a cell, on average · cells : nearest cells whose phrases a phrase is compared with
    groups  : nearest groups of cells among whose cells those are looked for
    """

    phrases: int = 64
    cells: int = 16
    groups: int = 16


_MOVING = Reach(cells=1, groups=4)


def find_centres(
    vectors: Vectors,
    reach: Reach,
    *,
    folder: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Centres:
    """Centres for about E / reach.phrases cells in about the square root of that many groups.

    A group has cells by its share of a sample of up to 32 phrases a cell, so that dense places have many. Then centres
    move among all groups, and groups are made of the cells anew. The same vectors have the same centres. Memory: four
    copies of the centres.
    folder : where the centres of the last finished round are kept, and looked for. Progress counts rounds.
    """
    count = vectors.shape[0]
    cells = -(-count // reach.phrases)
    groups = max(1, round(cells**0.5))
    random = np.random.default_rng(0)
    sample = _some(np.arange(count), _SAMPLE * cells, random)
    done, made = _begun(folder, random)
    with single_blas_thread():
        while done <= _ROUNDS:
            moved = (
                _moved(vectors, sample, made) if made is not None else _first(vectors, sample, cells, groups, random)
            )
            made = _grouped(moved, groups, random)
            if folder is not None:
                keep_centres(folder, done, made, random)
                (folder / f"centres-{done - 1}").unlink(missing_ok=True)
            done += 1
            if on_progress:
                on_progress(done, _ROUNDS + 1)
    assert made is not None
    return made


def _begun(folder: Path | None, random: np.random.Generator) -> tuple[int, Centres | None]:
    """How many rounds an earlier run has finished, and their centres; the draw goes on where it stood."""
    for number in range(_ROUNDS, -1, -1):
        there = kept_centres(folder, number) if folder is not None else None
        if there is not None:
            random.bit_generator.state = there[1]
            return number + 1, there[0]
    return 0, None


def _first(vectors: Vectors, sample: Longs, cells: int, groups: int, random: np.random.Generator) -> Floats:
    tops = _centres(float_rows(vectors, _some(sample, _TOP_SAMPLE * groups, random)), groups, random)
    return _divided(vectors, sample, tops, cells)


def _divided(vectors: Vectors, sample: Longs, tops: Floats, cells: int) -> Floats:
    """Centres of so many cells, those of each group from its phrases alone."""
    groups = len(tops)
    label = np.empty(len(sample), np.int32)

    def place(starts: Iterator[int]) -> None:
        for start in starts:
            part = slice(start, start + BLOCK_ROWS)
            label[part] = np.argmax(float_rows(vectors, sample[part]) @ tops.T, axis=1)

    run_together(range(0, len(sample), BLOCK_ROWS), place)
    order, bounds = np.argsort(label, kind="stable"), np.searchsorted(np.sort(label), np.arange(groups + 1))
    children: list[Floats] = [tops[:0]] * groups

    def divide(numbers: Iterator[int]) -> None:
        for group in numbers:
            rows = np.sort(sample[order[bounds[group] : bounds[group + 1]]])
            own = np.random.default_rng([1, group])
            wanted = min(max(round(len(rows) / len(sample) * cells), 1), _MOST_CHILDREN * groups)
            some = _some(rows, _SAMPLE * wanted, own)
            children[group] = _centres(float_rows(vectors, some), wanted, own) if len(rows) else tops[[group]]

    run_together(range(groups), divide)
    return np.concatenate(children)


def _moved(vectors: Vectors, sample: Longs, centres: Centres) -> Floats:
    """The cells' centres moved to the middle of the sample's phrases nearest to them, whatever group those came of."""
    label = np.empty(len(sample), np.int32)

    def place(starts: Iterator[int]) -> None:
        for start in starts:
            part = slice(start, start + BLOCK_ROWS)
            label[part] = nearest_cells(float_rows(vectors, sample[part]), centres, _MOVING)[:, 0]

    run_together(range(0, len(sample), BLOCK_ROWS), place)
    sums = np.zeros_like(centres.cells)
    # One thread adds, in one order: sums of floats differ with theirs.
    for start in range(0, len(sample), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        order = np.argsort(label[part], kind="stable")
        cells, firsts = np.unique(label[part][order], return_index=True)
        sums[cells] += np.add.reduceat(float_rows(vectors, sample[part])[order], firsts, axis=0)
    lengths = np.linalg.norm(sums, axis=1)
    sums /= np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]
    sums[lengths == 0] = centres.cells[lengths == 0]
    return sums


def _grouped(cells: Floats, groups: int, random: np.random.Generator) -> Centres:
    """Cells in groups of near ones."""
    tops = _centres(cells, groups, random)
    label = _nearest(cells, tops)
    order = np.argsort(label, kind="stable")
    return Centres(tops, cells[order], np.searchsorted(label[order], np.arange(len(tops) + 1)))


def _nearest(rows: Floats, centres: Floats) -> Longs:
    """The nearest centre of each row."""
    return np.concatenate(
        [np.argmax(rows[start : start + BLOCK_ROWS] @ centres.T, axis=1) for start in range(0, len(rows), BLOCK_ROWS)]
    )


def nearest_cells(rows: Floats, centres: Centres, reach: Reach) -> Ints:
    """The nearest cells of each row, nearest first, (m, reach.cells) int32; −1 where there are fewer.

    They are looked for among the cells of the nearest groups.
    """
    from hippogpu.synonyms.best_kernel import keep_best

    near = _greatest(rows @ centres.groups.T, min(reach.groups, len(centres.groups)))
    scores = np.full((len(rows), reach.cells), -np.inf, np.float32)
    cells = np.full(scores.shape, -1, np.int32)
    flat = near.ravel()
    order = np.argsort(flat, kind="stable")
    bounds = np.searchsorted(flat[order], np.arange(len(centres.groups) + 1))
    for group in np.unique(flat):
        row = order[bounds[group] : bounds[group + 1]] // near.shape[1]
        first, last = centres.starts[group], centres.starts[group + 1]
        keep_best(rows[row] @ centres.cells[first:last].T, row, int(first), scores, cells)
    return cells


def _greatest(scores: Floats, k: int) -> AnyInts:
    """The columns of the k greatest values of each row, in any order."""
    if k == scores.shape[1]:
        return np.broadcast_to(np.arange(k), scores.shape)
    return np.argpartition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k :]


def _some(rows: Longs, most: int, random: np.random.Generator) -> Longs:
    """At most so many of the rows, ascending."""
    if len(rows) <= most:
        return rows
    return np.sort(random.choice(rows, most, replace=False, shuffle=False))


def _centres(rows: Floats, wanted: int, random: np.random.Generator) -> Floats:
    """Centres of so many cells, or of as many as there are rows, by spherical k-means from rows drawn at random."""
    wanted = min(wanted, len(rows))
    centres = rows[np.sort(random.choice(len(rows), wanted, replace=False))].copy()
    for _ in range(_ITERATIONS if wanted > 1 else 1):
        label = _nearest(rows, centres)
        order, counts = np.argsort(label, kind="stable"), np.bincount(label, minlength=wanted)
        filled = counts > 0
        sums = np.add.reduceat(rows[order], (np.cumsum(counts) - counts)[filled], axis=0)
        centres[filled] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        # A centre that nobody is nearest to starts again somewhere else.
        centres[~filled] = rows[random.choice(len(rows), int(np.count_nonzero(~filled)))]
    return centres
