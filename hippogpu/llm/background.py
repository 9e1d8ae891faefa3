"""An event loop in a thread of its own, so that asynchronous work also runs below a caller's running loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """A running event loop, until close. The thread is a daemon: it does not keep the program alive."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in the loop's own thread, where waiting for the loop would never end."""
        return threading.current_thread() is self._thread

    def soon(self, function: Callable[..., object], *values: Any) -> None:
        """Calls the function in the loop's thread, after everything handed over before."""
        self._loop.call_soon_threadsafe(function, *values)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, which the caller's thread waits for."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Ends the loop and its thread; a second close does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
