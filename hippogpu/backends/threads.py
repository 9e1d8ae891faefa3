"""Our own threads around BLAS products of one thread each: no thread waits for, or spins beside, another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Item = TypeVar("Item")

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
    entered = False
    try:
        with _lock:
            if not _users:
                _before = [library.num_threads for library in _libraries()]
                for library in _libraries():
                    library.set_num_threads(1)
            _users, entered = _users + 1, True
        yield
    finally:
        with _lock:
            _users -= entered
            if not _users:
                for library, threads in zip(_libraries(), _before, strict=True):
                    library.set_num_threads(threads)


class Shared(Iterator[Item]):
    """Items that several threads take from, in order, until they are stopped."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items, self._lock = iter(items), threading.Lock()
        self.stopped = False

    def __next__(self) -> Item:
        with self._lock:
            if self.stopped:
                raise StopIteration
            return next(self._items)


def threads() -> int:
    """Threads that may work at once."""
    import numba

    return int(numba.get_num_threads())


def run_together(items: Sequence[Item], work: Callable[[Iterator[Item]], None]) -> None:
    """Runs the work on as many threads as numba may use, this one among them; each takes the next item when it is done.

    After an error, or an interruption of this thread, no further item is taken, and the error is raised.
    """
    shared, errors = Shared(items), list[BaseException]()

    def guarded() -> None:
        try:
            work(shared)
        except BaseException as error:
            shared.stopped = True
            errors.append(error)

    others = [threading.Thread(target=guarded) for _ in range(min(threads(), len(items)) - 1)]
    started = []
    try:
        for thread in others:
            thread.start()
            started.append(thread)
        work(shared)
    except BaseException:
        shared.stopped = True
        raise
    finally:
        for thread in started:
            thread.join()
    if errors:
        raise errors[0]
