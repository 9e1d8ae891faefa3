"""Our own threads: every item once, no further item after an error, and the BLAS as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from hippogpu.backends.cpu import CpuBackend
from hippogpu.backends.threads import run_together, single_blas_thread
from hippogpu.testing.graphs import random_seeds, small_graph


def blas_threads() -> list[int]:
    return [int(library["num_threads"]) for library in threadpool_info() if library["user_api"] == "blas"]


def test_every_item_is_taken_once_and_in_order_on_each_thread() -> None:
    taken: list[list[int]] = []

    def work(items: Iterator[int]) -> None:
        taken.append(list(items))

    run_together(range(1000), work)
    assert sorted(number for part in taken for number in part) == list(range(1000))
    assert all(part == sorted(part) for part in taken)


def test_an_error_stops_the_others_and_is_raised() -> None:
    seen: list[int] = []

    def work(items: Iterator[int]) -> None:
        for number in items:
            seen.append(number)
            if number == 3:
                raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        run_together(range(100_000), work)
    assert len(seen) < 100_000


def test_the_blas_is_single_inside_and_as_it_was_after_nested_and_failing_users() -> None:
    before, inside = blas_threads(), []

    def fail() -> None:
        with single_blas_thread():
            with single_blas_thread():
                pass
            inside.append(set(blas_threads()))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (inside[0] <= {1}, blas_threads()) == (True, before)


def test_several_threads_may_solve_and_search_with_one_backend() -> None:
    backend, graph, keys = CpuBackend(), small_graph(500, seed=3), np.eye(300, 64, dtype=np.float32)
    put, seeds = backend.put_graph(graph), random_seeds(5, 500).astype(np.float32)
    wanted, best = backend.solve(put, seeds, damping=0.5, steps=20), backend.topk(keys[:9], keys, 3).ids
    wrong: list[str] = []

    def ask() -> None:
        for _ in range(10):
            if not np.array_equal(backend.solve(put, seeds, damping=0.5, steps=20), wanted):
                wrong.append("solve")
            if not np.array_equal(backend.topk(keys[:9], keys, 3).ids, best):
                wrong.append("topk")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_overflowed_before_does_not_reach_the_next_answer() -> None:
    backend, graph = CpuBackend(), small_graph(100, seed=1)
    put, columns = backend.put_graph(graph), np.ones((100, 3), np.float32)
    wanted = backend.diffuse(put, columns, damping=0.5, steps=9)
    with np.errstate(over="ignore", invalid="ignore"):
        backend.diffuse(put, columns * np.float32(3e38), damping=0.5, steps=9)
    assert np.array_equal(backend.diffuse(put, columns, damping=0.5, steps=9), wanted)


@pytest.mark.parametrize("queries", [1, 3, 4, 5, 31, 32, 33, 70])
@pytest.mark.parametrize("keys", [1, 7, 8, 9, 255, 256, 257, 1000])
def test_products_by_tiles_are_those_in_double_precision(queries: int, keys: int) -> None:
    random = np.random.default_rng(keys)
    asked, rows = random.standard_normal((queries, 37)), random.standard_normal((keys, 37))
    best = CpuBackend().topk(asked.astype(np.float32), rows.astype(np.float32), 1)
    assert best.high == pytest.approx((asked @ rows.T).max(axis=1), abs=1e-4)
    assert best.low == pytest.approx((asked @ rows.T).min(axis=1), abs=1e-4)
