"""What the tests of the language model's room share: requests, time that does not pass, a served engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from hippogpu.config import LlmConfig
from hippogpu.llm import Engine, Message, Reply, Request
from hippogpu.llm.engine import NextRequest
from hippogpu.llm.http import HttpEngine
from hippogpu.testing.llm_server import LlmServer

SCHEMA = {"type": "object", "properties": {"entities": {"type": "array", "items": {"type": "string"}}}}


class FakeTime:
    """A clock that only sleeping moves; waits are the sleeps it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Served(NamedTuple):
    engine: HttpEngine
    server: LlmServer
    time: FakeTime

    def ask(self, *requests: Request) -> list[Reply]:
        """The replies, in the order they came."""
        return list(self.engine.stream(source(requests)))


@contextmanager
def served(server: LlmServer | None = None, **settings: Any) -> Iterator[Served]:
    """An engine for a running server; it waits in fake time, and always the longest that its chance allows."""
    with server or LlmServer() as running:
        time = FakeTime()
        config = LlmConfig(**{"url": running.url, "model": "m", "attempts": 3, **settings})
        engine = HttpEngine(config, clock=time.clock, sleep=time.sleep, chance=lambda: 1.0)
        try:
            yield Served(engine, running, time)
        finally:
            engine.close()


def request(
    text: str = "Oliver Badman", *, tag: Any = None, most: int = 200, schema: dict[str, Any] | None = None, **other: Any
) -> Request:
    return Request(tag, (Message("system", "Read."), Message("user", text)), most, schema, **other)


def source(requests: Iterable[Request]) -> NextRequest:
    """Gives the requests one by one, then None."""
    left = iter(requests)
    return lambda: next(left, None)


class Echo:
    """An engine of this process that repeats the last message, at once and in order."""

    def __init__(self, in_flight: int = 4, change: Callable[[Reply], Reply] = lambda reply: reply) -> None:
        self.model, self.endpoint, self.in_flight = "echo", "here", in_flight
        self.asked: list[str] = []
        self.closed = 0
        self._change = change

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        held: list[Request] = []
        while True:
            while len(held) < self.in_flight and (found := next_request()) is not None:
                held.append(found)
            if not held:
                return
            first = held.pop(0)
            self.asked.append(first.messages[-1].content)
            yield self._change(Reply(first, self.asked[-1], "stop"))

    def close(self) -> None:
        self.closed += 1


_: type[Engine] = Echo
