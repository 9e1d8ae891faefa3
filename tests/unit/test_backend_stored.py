"""Keys that are stored in fewer bytes on the CPU: not copied, and refused where they are no numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hippogpu.backends import load_backend
from hippogpu.backends.cpu import CpuBackend
from hippogpu.backends.cpu_stored import TILED_BYTES, TILED_HALVES
from hippogpu.errors import UsageError
from hippogpu.precision import arrays_of, rounded
from hippogpu.store.files import write_array
from hippogpu.store.mapped import read_array
from hippogpu.testing.backends import STORED, check_stored_keys
from hippogpu.types import Floats

KINDS = ("float32", *STORED)


def unit_rows(rows: int, width: int) -> Floats:
    made = np.random.default_rng(rows).standard_normal((rows, width)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_mapped_keys_are_put_without_a_copy(kind, tmp_path: Path) -> None:
    stored = rounded(unit_rows(33, 37), kind)
    arrays = [read_array(tmp_path, write_array(tmp_path, "rows", array)) for array in arrays_of(stored)]
    mapped = type(stored)(*arrays) if kind == "int8" else arrays[0]
    put = load_backend("cpu").put(mapped)
    assert all(np.shares_memory(one, other) for one, other in zip(arrays_of(put), arrays, strict=True))


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("batch", [TILED_HALVES - 1, TILED_HALVES, TILED_BYTES - 1, TILED_BYTES])
def test_scores_are_those_of_the_rows_on_either_side_of_the_change_to_tiles(kind, batch: int) -> None:
    check_stored_keys(CpuBackend(2**20), kind, keys=301, batch=batch)


@pytest.mark.parametrize("kind", STORED)
def test_a_backend_in_float64_keeps_to_the_rows_too(kind) -> None:
    check_stored_keys(CpuBackend(2**20, precision="float64"), kind, keys=33, batch=7)


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("batch", [1, 33])
def test_keys_that_are_no_numbers_are_refused(kind, batch: int) -> None:
    stored = rounded(unit_rows(33, 37), kind)
    arrays_of(stored)[-1][7] = np.nan
    backend = load_backend("cpu")
    with pytest.raises(UsageError, match="NaN"):
        backend.topk(unit_rows(batch, 37), backend.put(stored), 3)
