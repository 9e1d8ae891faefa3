"""Our own threads around BLAS products of one thread each: no thread waits for, or spins beside, another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
_users = 0
_before: list[int] = []


@cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """BLAS works on the calling thread alone, for as long as any caller is inside.

    A BLAS that has just worked on all cores keeps spinning on them for some milliseconds: on two cores that doubled
    the time of what came next.
    """
    global _users, _before
    with _lock:
        if not _users:
            _before = [library.num_threads for library in _libraries()]
            for library in _libraries():
                library.set_num_threads(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                for library, threads in zip(_libraries(), _before, strict=True):
                    library.set_num_threads(threads)


def run_together(work: Callable[[], None], most: int) -> None:
    """Runs the work on as many threads as numba may use, `most` at most, this one among them; any error is raised."""
    import numba

    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    others = [threading.Thread(target=guarded) for _ in range(min(int(numba.get_num_threads()), most) - 1)]
    for thread in others:
        thread.start()
    try:
        work()
    finally:
        for thread in others:
            thread.join()
    if errors:
        raise errors[0]
