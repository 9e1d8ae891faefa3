"""Vectors as they are stored: rounded once, the same after a second time, of length 1."""

from __future__ import annotations

import numpy as np
import pytest

from hippogpu.precision import (
    ScaledRows,
    empty_rows,
    float_columns,
    float_rows,
    is_small,
    kind_of,
    part,
    rounded,
    summed,
)
from hippogpu.types import Floats

KINDS = ("float32", "float16", "int8")
# Half of the last of 11 bits; half of a step of 127 to the greatest number of a row.
ROUNDOFF = {"float32": 0.0, "float16": 2.0**-11, "int8": 0.5 / 127}


def unit_rows(rows: int, width: int) -> Floats:
    made = np.random.default_rng(rows).standard_normal((rows, width)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 33, 1000])
@pytest.mark.parametrize("width", [1, 31, 384])
def test_a_second_rounding_changes_nothing(kind, rows: int, width: int) -> None:
    once = rounded(unit_rows(rows, width), kind)
    twice = rounded(float_rows(once, slice(None)), kind)
    assert (kind_of(once), is_small(once), once.shape) == (kind, kind != "float32", (rows, width))
    assert np.array_equal(float_rows(once, slice(None)), float_rows(twice, slice(None)))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_off_by_no_more_than_their_rounding_and_stay_unit_rows(kind) -> None:
    rows = unit_rows(1000, 384)
    found = float_rows(rounded(rows, kind), slice(None))
    off = np.abs(found - rows)
    greatest = np.abs(rows).max(axis=1, keepdims=True) if kind == "int8" else np.abs(rows)
    # int8 rows are scaled to length 1 after rounding, which moves every number by a small share.
    assert np.all(off <= ROUNDOFF[kind] * greatest + 2e-3 * np.abs(rows) * (kind == "int8") + 1e-7)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=5e-4 if kind == "float16" else 1e-6)


def test_the_greatest_number_of_an_int8_row_is_127() -> None:
    stored = rounded(unit_rows(100, 37), "int8")
    assert isinstance(stored, ScaledRows)
    assert np.all(np.abs(stored.values.astype(int)).max(axis=1) == 127)
    assert stored.nbytes == 100 * (37 + 4)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_columns_and_sums_are_those_of_the_float_rows(kind) -> None:
    stored = rounded(unit_rows(100, 37), kind)
    whole = float_rows(stored, slice(None))
    chosen = np.array([5, 3, 5, 99])
    assert np.array_equal(float_rows(stored, chosen), whole[chosen])
    assert np.array_equal(float_rows(part(stored, slice(7, 20)), slice(None)), whole[7:20])
    assert np.array_equal(float_columns(stored, slice(7, 20), slice(30, 99)), whole[7:20, 30:])
    assert np.allclose(summed(stored), whole.sum(axis=0, dtype=np.float64), rtol=1e-12, atol=1e-12)
    assert empty_rows(3, 37, kind).shape == (3, 37)


def test_float32_rows_are_not_copied() -> None:
    rows = unit_rows(9, 4)
    assert rounded(rows, "float32") is rows
    assert np.shares_memory(float_rows(rows, slice(2, 5)), rows)
