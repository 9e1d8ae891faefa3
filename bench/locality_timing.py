"""Variants of one piece of work, timed in turns on one thread, so that what else goes on falls on all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

from bench.measure import spread

Work = Callable[[], Any]


def in_turns(works: Mapping[str, Work], base: str, repeats: int) -> dict[str, dict[str, Any]]:
    """For each piece of work milliseconds of processor and wall, and the ratio to the base of the same turn.

    The ratio is of processor time: median, least and greatest. A first turn that compiles and warms does not count.
    """
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for turn in range(repeats + 1):
            for name, work in works.items():
                wall, worked = time.perf_counter(), time.process_time()
                work()
                if turn:
                    spent[name].append((time.process_time() - worked, time.perf_counter() - wall))
    finally:
        numba.set_num_threads(threads)
    taken = {name: 1000 * np.asarray(times) for name, times in spent.items()}
    return {
        name: {
            "ms": spread(times[:, 0].tolist()),
            "wall_ms": spread(times[:, 1].tolist()),
            "ratio": spread((times[:, 0] / taken[base][:, 0]).tolist()),
        }
        for name, times in taken.items()
    }
