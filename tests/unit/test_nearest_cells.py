"""Facts in cells: what is found by them, and that the same vectors make the same cells."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from nearest_cases import ROUNDING, WIDTH, truth, unit_rows

from hippogpu.backends import load_backend
from hippogpu.errors import IndexDamagedError, StoredIndexError, UsageError
from hippogpu.nearest import CellRows, ExactRows
from hippogpu.nearest import filling as filling_module
from hippogpu.nearest.filling import fact_cells
from hippogpu.nearest.nearest_row import nearest_rows, table_of
from hippogpu.nearest.quantising import cells_for, pieces_for
from hippogpu.precision import Vectors, rounded
from hippogpu.store.fact_cells import FactCells
from hippogpu.types import Floats


def whole(rows: Vectors) -> CellRows:
    """Cells all of which are looked at, and all of whose facts are compared."""
    cells = fact_cells(rows)
    return CellRows(cells.check(*rows.shape), rows, probes=len(cells.indptr), shortlist=rows.shape[0])


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize(("rows", "queries", "k"), [(1, 1, 1), (31, 7, 99), (1000, 33, 5), (1000, 1, 1000)])
def test_all_cells_and_facts_give_what_a_look_at_every_row_gives(kind: Any, rows: int, queries: int, k: int) -> None:
    stored, asked = rounded(unit_rows(rows), kind), unit_rows(queries, seed=1)
    found, (ids, scores, low, high) = whole(stored).topk(asked, k), truth(stored, asked, k)
    np.testing.assert_allclose(found.scores, scores, atol=ROUNDING)
    np.testing.assert_allclose(np.stack([found.low, found.high]), np.stack([low, high]), atol=ROUNDING)
    apart = np.abs(np.diff(scores, axis=1, append=-2.0)) > ROUNDING
    clear = apart & np.roll(apart, 1, axis=1)
    assert (found.ids == ids)[clear].all()
    assert not found.exact


def test_equal_facts_come_in_the_order_of_their_numbers() -> None:
    rows = np.repeat(unit_rows(5), 9, axis=0)
    found = whole(rows).topk(rows[:1], 9)
    assert found.ids[0].tolist() == list(range(9))


def test_few_cells_find_most_of_the_nearest_and_scores_of_stored_rows() -> None:
    rows, asked = unit_rows(20_000), unit_rows(33, seed=2)
    found, (ids, _, low, high) = CellRows(fact_cells(rows), rows, probes=32).topk(asked, 5), truth(rows, asked, 5)
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found.ids.tolist(), ids.tolist(), strict=True)])
    assert recall > 0.9
    products = (asked[:, None, :].astype(np.float64) * rows[found.ids]).sum(axis=2)
    np.testing.assert_allclose(found.scores, products, atol=ROUNDING)
    assert (found.low >= low - ROUNDING).all()
    assert (found.high <= high + ROUNDING).all()


def test_a_batch_finds_what_its_questions_find_alone() -> None:
    rows, asked = unit_rows(3_000), unit_rows(7, seed=3)
    near = CellRows(fact_cells(rows), rows, probes=4, shortlist=16)
    together, alone = near.topk(asked, 5), [near.topk(asked[i : i + 1], 5) for i in range(7)]
    assert together.ids.tolist() == [one.ids[0].tolist() for one in alone]
    assert together.low.tolist() == [float(one.low[0]) for one in alone]


def test_more_cells_are_looked_at_until_there_are_k_facts() -> None:
    rows = unit_rows(2_000)
    found = CellRows(fact_cells(rows), rows, probes=1, shortlist=1).topk(rows[:3], 1_500)
    assert found.ids.shape == (3, 1_500)
    assert all(len(set(row)) == 1_500 for row in found.ids.tolist())


def test_no_question_finds_nothing() -> None:
    assert whole(unit_rows(7)).topk(np.empty((0, WIDTH), np.float32), 3).ids.shape == (0, 3)


@pytest.mark.parametrize(("queries", "k"), [(unit_rows(1), 0), (unit_rows(1, width=8), 1)])
def test_a_call_that_means_nothing_is_refused(queries: Floats, k: int) -> None:
    with pytest.raises(UsageError):
        whole(unit_rows(7)).topk(queries, k)


def test_a_question_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="NaN"):
        whole(unit_rows(7)).topk(np.full((1, WIDTH), np.nan, np.float32), 1)


@pytest.mark.parametrize("rows", [slice(None), slice(0, 1)])
def test_a_stored_row_that_is_no_number_is_refused(rows: slice) -> None:
    near, spoiled = whole(unit_rows(300)), unit_rows(300)
    spoiled[rows] = np.nan
    with pytest.raises(UsageError, match="not finite"):
        near._replace(rows=spoiled).topk(unit_rows(3), 5)


def test_cells_are_the_same_on_any_number_of_threads_and_in_any_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, before = unit_rows(5_000), numba.get_num_threads()
    made = fact_cells(rows)
    try:
        numba.set_num_threads(1)
        monkeypatch.setattr(filling_module, "_BLOCK_NUMBERS", 777 * WIDTH)
        again = fact_cells(rows, scratch=tmp_path / "cells")
    finally:
        numba.set_num_threads(before)
    assert all(np.array_equal(one, other) for one, other in zip(made, again, strict=True))


def test_a_run_that_was_cut_short_does_not_fill_finished_blocks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling_module, "_BLOCK_NUMBERS", 500 * WIDTH)
    rows, expected = unit_rows(2_100), fact_cells(unit_rows(2_100))
    with monkeypatch.context() as patched:
        counting(patched, filling_module, "quantised", stop_after=3)
        with pytest.raises(KeyboardInterrupt):
            fact_cells(rows, scratch=tmp_path)
    learned = counting(monkeypatch, filling_module, "learned")
    filled = counting(monkeypatch, filling_module, "quantised")
    again = fact_cells(rows, scratch=tmp_path)
    assert (learned(), filled()) == (0, 2)
    assert all(np.array_equal(one, other) for one, other in zip(expected, again, strict=True))


def test_a_finished_block_that_was_altered_is_filled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling_module, "_BLOCK_NUMBERS", 500 * WIDTH)
    rows = unit_rows(1_000)
    expected = fact_cells(rows, scratch=tmp_path)
    [block] = tmp_path.glob("codes_000001-*.npy")
    data = bytearray(block.read_bytes())
    data[-1] ^= 1
    block.write_bytes(data)
    filled = counting(monkeypatch, filling_module, "quantised")
    again = fact_cells(rows, scratch=tmp_path)
    assert filled() == 1
    assert all(np.array_equal(one, other) for one, other in zip(expected, again, strict=True))


def test_blocks_that_wait_in_the_folder_are_no_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling_module, "_BLOCK_NUMBERS", 20 * WIDTH)
    before, open_files = len(os.listdir("/proc/self/fd")), list[int]()
    fact_cells(
        unit_rows(1_000), scratch=tmp_path, on_progress=lambda *_: open_files.append(len(os.listdir("/proc/self/fd")))
    )
    assert len(list(tmp_path.glob("codes_*"))) == 50
    assert max(open_files) < before + 20


def test_a_full_disk_is_an_error_before_anything_is_written_to_a_mapping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(StoredIndexError, match="Make room"):
        fact_cells(unit_rows(100), scratch=tmp_path)


def counting(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, stop_after: int | None = None
) -> Callable[[], int]:
    """How often a function is called from now on; it is interrupted after so many calls."""
    calls, real = [0], getattr(module, name)

    def counted(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if stop_after is not None and calls[0] > stop_after:
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(module, name, counted)
    return lambda: calls[0]


def test_progress_ends_at_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    fact_cells(unit_rows(500), on_progress=lambda done, all_: seen.append((done, all_)))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


@pytest.mark.parametrize("rows", [1, 7, 33, 257])
def test_the_nearest_row_is_the_nearest_by_distance(rows: int) -> None:
    random = np.random.default_rng(5)
    table, vectors = (random.standard_normal((n, 13)).astype(np.float32) for n in (rows, 301))
    ids, scores = nearest_rows(vectors, table_of(table))
    distances = ((vectors[:, None, :].astype(np.float64) - table[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        np.take_along_axis(distances, ids[:, None].astype(int), 1)[:, 0], distances.min(axis=1), atol=1e-5
    )
    np.testing.assert_allclose(
        (vectors.astype(np.float64) ** 2).sum(axis=1) - 2 * scores, distances.min(axis=1), atol=1e-4
    )


def test_of_equal_rows_the_first_is_the_nearest() -> None:
    table = np.repeat(unit_rows(5)[2:], 40, axis=0)
    assert nearest_rows(table[::40], table_of(table))[0].tolist() == [0, 40, 80]


@pytest.mark.parametrize(
    ("facts", "width", "cells", "pieces"),
    [(1, 384, 1, 48), (17_033, 384, 128, 48), (12_100_000, 384, 4096, 48), (12_100_000, 4096, 1024, 64)],
)
def test_sizes_follow_from_the_facts(facts: int, width: int, cells: int, pieces: int) -> None:
    assert (cells_for(facts, width), pieces_for(width)[0]) == (cells, pieces)


CELLS = fact_cells(unit_rows(300))
DAMAGE: dict[str, dict[str, Any]] = {
    "fewer facts": {"facts": CELLS.facts[:-1], "codes": CELLS.codes[:-1]},
    "a fact twice": {"facts": np.where(np.arange(300) == 1, CELLS.facts[0], CELLS.facts)},
    "a fact beyond": {"facts": np.where(np.arange(300) == 1, 300, CELLS.facts)},
    "pointers that fall": {"indptr": CELLS.indptr[::-1].copy()},
    "codes of another width": {"codes": CELLS.codes[:, :-1]},
    "codebooks of another width": {"codebooks": CELLS.codebooks[:, :, :-3]},
    "fewer values": {"codebooks": CELLS.codebooks[:, :-1]},
    "a centroid too few": {"centroids": CELLS.centroids[:-1]},
    "no number": {"centroids": np.full_like(CELLS.centroids, np.nan)},
    "numbers whose sums are none": {"codebooks": np.full_like(CELLS.codebooks, -3e38)},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_cells_are_refused(damage: str) -> None:
    with pytest.raises(IndexDamagedError):
        CELLS._replace(**DAMAGE[damage]).check(300, WIDTH)


def test_the_exact_rows_are_those_of_the_backend() -> None:
    rows, asked = unit_rows(300), unit_rows(7, seed=1)
    backend = load_backend("cpu")
    found, expected = ExactRows(backend, backend.put(rows)).topk(asked, 5), backend.topk(asked, rows, 5)
    assert found.exact
    assert all(np.array_equal(a, b) for a, b in zip(found[:4], expected, strict=True))


def test_cells_hold_under_a_hundred_bytes_a_fact() -> None:
    cells = FactCells(*CELLS)
    assert CellRows(cells, unit_rows(300)).nbytes == sum(array.nbytes for array in cells)
