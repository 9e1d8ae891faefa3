"""Questions that arrive by themselves, and one server that takes what is waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAIN_SHARE = 0.05
Doubles = NDArray[np.float64]


class Served(NamedTuple):
    """One pass: of each question the ms from arrival to answer and to the start of its batch; sizes of the batches.

    drain_s    seconds from the last arrival to the last answer
    sustained  whether the server kept up: the drain took at most 5 % of the pass and two of the longest batches
    """

    latency_ms: list[float]
    queueing_ms: list[float]
    batches: list[int]
    drain_s: float
    sustained: bool


def poisson_arrivals(rate: float, seconds: float, seed: int) -> Doubles:
    """Times of arrival in seconds, ascending, those before the end or else the first; the same for the same seed.

    The gaps are exponential with mean 1 / rate.
    """
    rng = np.random.default_rng(seed)
    times = rng.exponential(1 / rate, 1)
    while times[-1] < seconds:
        more = rng.exponential(1 / rate, max(16, int(rate * seconds / 4)))
        times = np.concatenate([times, times[-1] + np.cumsum(more)])
    return times[: max(1, int(np.searchsorted(times, seconds)))]


def serve(
    arrivals: Doubles,
    texts: Sequence[str],
    ask: Callable[[list[str]], Any],
    *,
    most: int,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> Served:
    """Answers the questions in order of arrival: whenever it is free it takes what waits, up to `most` at once.

    Arrivals do not wait for answers, so a slow answer delays all that arrived meanwhile and each delay is counted.
    """
    questions = cycle(texts)
    begun, ended, batches = np.empty(len(arrivals)), np.empty(len(arrivals)), list[int]()
    start, done = clock(), 0
    while done < len(arrivals):
        now = clock() - start
        waiting = int(np.searchsorted(arrivals, now, side="right")) - done
        if waiting == 0:
            sleep(arrivals[done] - now)
            continue
        size = min(waiting, most)
        ask(list(islice(questions, size)))
        begun[done : done + size], ended[done : done + size] = now, clock() - start
        batches.append(size)
        done += size
    drain = float(ended[-1] - arrivals[-1])
    kept_up = drain <= DRAIN_SHARE * float(arrivals[-1]) + 2 * float(np.max(ended - begun))
    return Served(_ms(ended - arrivals), _ms(begun - arrivals), batches, drain, kept_up)


def _ms(seconds: Doubles) -> list[float]:
    return [float(value) for value in 1000 * seconds]
