"""Times on a CUDA device by its own clock, and what it can copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.measure import Spread, spread

COPY_BYTES = 1 << 30
REPEATS = 7


def device_ms(cupy: Any, work: Callable[[], object], *, repeats: int = REPEATS) -> Spread:
    """Milliseconds between two events around the work, after two calls that compile, record and fill the caches."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for number in range(repeats + 2):
        start.record()
        work()
        end.record()
        end.synchronize()
        if number > 1:
            times.append(float(cupy.cuda.get_elapsed_time(start, end)))
    return spread(times)


def copy_gbs(cupy: Any, *, size_bytes: int = COPY_BYTES) -> Spread:
    """GB/s of copying an array of that size on the device; bytes read and written count."""
    source = cupy.ones(size_bytes // 4, cupy.float32)
    target = cupy.empty_like(source)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    rates = []
    for number in range(REPEATS + 2):
        start.record()
        target[...] = source
        end.record()
        end.synchronize()
        if number > 1:
            rates.append(2 * source.nbytes / cupy.cuda.get_elapsed_time(start, end) / 1e6)
    return spread(rates)
