"""Replies from any server that speaks the OpenAI chat protocol, many requests at a time."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any

from hippogpu.config import LlmConfig
from hippogpu.config.checks import without_login
from hippogpu.errors import ConfigError, UsageError
from hippogpu.llm.background import BackgroundLoop
from hippogpu.llm.engine import Keep, NextRequest
from hippogpu.llm.pause import Chance, Clock, Sleep
from hippogpu.llm.sending import Sender
from hippogpu.llm.values import Reply, Request

_Outcome = Reply | BaseException
_Asking = Callable[[], Coroutine[Any, Any, Reply]]


class HttpEngine:
    """A model behind POST {url}/chat/completions, url being the base of the API (https://host/v1).

    At most config.in_flight requests are on their way at once, over as many kept connections, from an event loop in
    a thread of its own; so it also works below a caller's running loop. config.timeout_s is for one whole sending.
    A request that finds the server busy, broken or gone is sent config.attempts times at most. Status 429 and a
    spent rate limit (x-ratelimit-remaining-…: 0) hold every request back until the time that the server names (10
    minutes at most), other faults only the request that met them. A 429 is no attempt while others are answered.
    The key comes from the environment variable config.key_variable and goes nowhere but into the request; so do a
    name and password in the url, which go before the key. endpoint is the url without them.

    Its failures are `unreachable` when nothing else was answered since the request first failed, and for faults that
    concern every request: a wrong key, model or address, a redirect, no credit. ConfigError, when it is made, for an
    address, certificates or a proxy that cannot be used.
    """

    def __init__(
        self,
        config: LlmConfig,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        chance: Chance = random.random,
    ) -> None:
        if not config.url or not config.model:
            raise ConfigError(
                f"The http engine needs 'url' and 'model'. Got '{without_login(config.url)}' and '{config.model}'."
            )
        self.model = config.model
        self.in_flight = config.in_flight
        self._sender = Sender(config, clock=clock, sleep=sleep, chance=chance)
        self.endpoint = self._sender.endpoint
        self._loop: BackgroundLoop | None = None
        self._closed = False
        self._lock = Lock()

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each part of the protocol that the server refused and that is left out since."""
        return tuple(self._sender.notes)

    @property
    def peak_in_flight(self) -> int:
        """Most requests that were on their way at once."""
        return self._sender.peak_in_flight

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        """One Reply a request, as they finish; see Engine.stream. At most in_flight replies wait for the caller.

        UsageError when the engine is closed, before or meanwhile.
        """
        return self.stream_keeping(next_request, lambda reply: None)

    def stream_keeping(self, next_request: NextRequest, keep: Keep) -> Iterator[Reply]:
        """As stream; each reply is handed to keep in the thread of the connections. See KeepingEngine."""
        finished: SimpleQueue[_Outcome] = SimpleQueue()
        ready: deque[_Outcome] = deque()
        tasks: set[asyncio.Task[Reply]] = set()
        under_way = 0
        try:
            while True:
                loop = self._running()
                under_way -= _collect(finished, ready)
                while under_way < self.in_flight and len(ready) < self.in_flight:
                    request = next_request()
                    if request is None:
                        break
                    loop.soon(self._begin, partial(self._kept, request, keep), tasks, finished)
                    under_way += 1
                if not ready and not under_way:
                    return
                if not ready:
                    ready.append(finished.get())
                    under_way -= 1
                yield _reply(ready.popleft())
        finally:
            if self._loop is not None:
                _give_up(self._loop, tasks)

    def close(self) -> None:
        """Gives up what is in flight and ends the connections; a second close does nothing."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.run(self._end())
            loop.close()

    def _running(self) -> BackgroundLoop:
        with self._lock:
            if self._closed:
                raise UsageError(f"The engine for '{self.endpoint}' is closed. Make a new one.")
            if self._loop is None:
                self._loop = BackgroundLoop("hippogpu llm")
            return self._loop

    async def _kept(self, request: Request, keep: Keep) -> Reply:
        reply = await self._sender.ask(request)
        keep(reply)
        return reply

    def _begin(self, asking: _Asking, tasks: set[asyncio.Task[Reply]], finished: SimpleQueue[_Outcome]) -> None:
        def end(task: asyncio.Task[Reply]) -> None:
            tasks.discard(task)
            if task.cancelled():
                finished.put(UsageError(f"The engine for '{self.endpoint}' was closed before all replies were there."))
            else:
                finished.put(task.exception() or task.result())

        task = asyncio.get_running_loop().create_task(asking())
        tasks.add(task)
        task.add_done_callback(end)

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._sender.close()


def _collect(finished: SimpleQueue[_Outcome], ready: deque[_Outcome]) -> int:
    """Moves what has finished over; how many that were."""
    before = len(ready)
    while True:
        try:
            ready.append(finished.get_nowait())
        except Empty:
            return len(ready) - before


def _reply(outcome: _Outcome) -> Reply:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _give_up(loop: BackgroundLoop, tasks: set[asyncio.Task[Reply]]) -> None:
    """Cancels the tasks of a stream and waits until their connections are closed."""

    async def cancel() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # A collector may close a forgotten stream in the loop's own thread, which cannot wait for itself.
    if loop.is_here:
        for task in tasks:
            task.cancel()
    else:
        loop.run(cancel())
