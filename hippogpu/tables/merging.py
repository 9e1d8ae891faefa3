"""Sorted texts of several runs made one sorted column, a stretch of the alphabet after another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hippogpu.tables.scratch import GrowingTexts
from hippogpu.text_columns import TextColumn
from hippogpu.types import Ints

# What a text takes while it is sorted, beside its letters three times: places, order, numbers.
_TEXT_BYTES, _COPIES = 48, 3
_LEAST_SAMPLES = 16

Column = Sequence[str]


def merge_texts(columns: Sequence[Column], ranks: Sequence[Ints], into: GrowingTexts, *, budget_bytes: int) -> None:
    """Writes the distinct texts of all columns, by code point, and for each column the number of each of its texts.

    columns : each sorted by code point, without repeats · ranks : an array a column, filled in
    UTF-8 in the order of its bytes is text in the order of its code points.
    """
    for bounds in _stretches(columns, budget_bytes):
        parts = [_part(column, *bound) for column, bound in zip(columns, bounds, strict=True)]
        whole = pa.concat_arrays(parts)
        order = pc.sort_indices(whole)
        ordered = whole.take(order)
        new = np.ones(len(whole), bool)
        if len(whole) > 1:
            new[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
        numbers = np.empty(len(whole), np.int32)
        numbers[order.to_numpy()] = into.count + np.cumsum(new) - 1
        into.append(ordered.filter(pa.array(new)))
        ends = np.cumsum([last - first for first, last in bounds])[:-1]
        for rank, (first, last), found in zip(ranks, bounds, np.split(numbers, ends), strict=True):
            rank[first:last] = found


def _stretches(columns: Sequence[Column], budget_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """Places first:last in every column, by stretches of the alphabet whose texts are sorted within the budget."""
    firsts = [0] * len(columns)
    for splitter in _splitters(columns, budget_bytes):
        lasts = [bisect_left(column, splitter, first) for column, first in zip(columns, firsts, strict=True)]
        yield list(zip(firsts, lasts, strict=True))
        firsts = lasts
    yield [(first, len(column)) for first, column in zip(firsts, columns, strict=True)]


def _splitters(columns: Sequence[Column], budget_bytes: int) -> list[str]:
    """Texts at which the alphabet is cut: from samples, each of which stands for as many bytes."""
    pieces = max(_LEAST_SAMPLES, len(columns))
    size = budget_bytes / 2 / pieces
    samples: list[str] = []
    for column in columns:
        if len(column):
            every = max(1, int(size * len(column) / _sorting_bytes(column)))
            samples.extend(column[i] for i in range(every - 1, len(column) - 1, every))
    samples.sort()
    return sorted(set(samples[pieces - 1 :: pieces]))


def _sorting_bytes(column: Column) -> int:
    letters = int(column.starts[-1]) if isinstance(column, TextColumn) else sum(map(len, column))
    return _COPIES * letters + _TEXT_BYTES * len(column)


def _part(column: Column, first: int, last: int) -> pa.Array[Any]:
    if isinstance(column, TextColumn):
        return column.arrow(first, last)
    return pa.array(column[first:last], pa.large_string())
