"""The one thing the rest of the program asks: an engine, the replies it remembers, and what they cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import NamedTuple, Protocol, Self, runtime_checkable

from hippogpu.errors import UsageError
from hippogpu.llm.cache import ReplyCache
from hippogpu.llm.engine import Engine, KeepingEngine, NextRequest
from hippogpu.llm.values import Reply, Request
from hippogpu.types import NO_TOKENS, Usage

# Remembered replies that wait for the caller at most.
MOST_WAITING = 64


class Spent(NamedTuple):
    """What was asked so far, and what it took.

    requests       requests that have their reply, remembered and failed ones included
    tries          how often requests were sent
    remembered     replies that came from the reply cache
    failed         requests that have a failure for a reply
    usage          tokens of the replies that were not remembered; failed tries are in no server's count
    peak_in_flight most requests that the engine held at once
    uncounted      replies whose tokens the server did not tell; they are missing from usage
    """

    requests: int = 0
    tries: int = 0
    remembered: int = 0
    failed: int = 0
    usage: Usage = NO_TOKENS
    peak_in_flight: int = 0
    uncounted: int = 0


@runtime_checkable
class Noting(Protocol):
    """An engine that has something to tell of how it went."""

    @property
    def notes(self) -> tuple[str, ...]: ...


class Llm:
    """Asks an engine, but remembered replies first. Closing it closes both. One stream at a time.

    Where the engine can (KeepingEngine), a reply is remembered as soon as it is finished, else when it is taken.
    """

    def __init__(self, engine: Engine, replies: ReplyCache | None = None) -> None:
        self._engine, self._replies = engine, replies
        self._spent = Spent()
        self._closed = False

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._engine.model

    @property
    def endpoint(self) -> str:
        """Where it runs."""
        return self._engine.endpoint

    @property
    def spent(self) -> Spent:
        """What was asked so far."""
        return self._spent

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know: parts of the protocol that a server refused, a damaged reply cache."""
        told = self._engine.notes if isinstance(self._engine, Noting) else ()
        return (*told, *(self._replies.notes if self._replies else ()))

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        """One Reply a request, in any order, each as soon as it is there; remembered ones at once.

        next_request is called when there is room for one more, as in Engine.stream; the stream ends when it gives
        None while nothing is under way. A remembered reply takes no room of the engine and never waits for one that
        does. At most 64 remembered replies wait for the caller. UsageError when this is closed, before or meanwhile.
        """
        run = _Run(self, next_request)
        try:
            yield from run.replies()
        finally:
            run.close()

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        """The reply to each request, in their order."""
        replies: list[Reply | None] = [None] * len(requests)
        numbered = ((number, request) for number, request in enumerate(requests))

        def next_request() -> Request | None:
            found = next(numbered, None)
            return None if found is None else replace(found[1], tag=found[0])

        for reply in self.stream(next_request):
            number = reply.request.tag
            replies[number] = replace(reply, request=requests[number])
        return [reply for reply in replies if reply is not None]

    def reject(self, reply: Reply) -> None:
        """Says that the reply could not be used: it is not remembered, and its request will be asked again."""
        if self._replies is not None:
            self._replies.forget(reply.request, model=self.model, endpoint=self.endpoint)

    def forget(self) -> None:
        """Lets all remembered replies go: every request is asked again."""
        if self._replies is not None:
            self._replies.clear()

    def close(self) -> None:
        """Closes the engine and the reply cache; a second close does nothing."""
        self._closed = True
        with ExitStack() as both:
            if self._replies is not None:
                both.callback(self._replies.close)
            both.callback(self._engine.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError(f"The language model '{self.model}' is closed. Open it again to ask.")

    def _begin(self, next_request: NextRequest) -> Iterator[Reply]:
        """The engine's stream."""
        if self._replies is not None and isinstance(self._engine, KeepingEngine):
            return iter(self._engine.stream_keeping(next_request, self._keep))
        return iter(self._engine.stream(next_request))

    def _keep(self, reply: Reply) -> None:
        if self._replies is not None:
            self._replies.put(reply, model=self.model, endpoint=self.endpoint)

    def _recall(self, request: Request) -> Reply | None:
        if self._replies is None:
            return None
        reply = self._replies.get(request, model=self.model, endpoint=self.endpoint)
        if reply is not None:
            self._spent = self._spent._replace(requests=self._spent.requests + 1, remembered=self._spent.remembered + 1)
        return reply

    def _take(self, reply: Reply, held: int) -> None:
        """Counts a reply of the engine, which held so many requests when it came; remembers it if that is to do."""
        if not isinstance(self._engine, KeepingEngine):
            self._keep(reply)
        spent, failed = self._spent, reply.finish == "failed"
        self._spent = Spent(
            spent.requests + 1,
            spent.tries + reply.tries,
            spent.remembered,
            spent.failed + failed,
            spent.usage.plus(reply.usage),
            max(spent.peak_in_flight, min(held, self._engine.in_flight)),
            spent.uncounted + (not failed and reply.usage == NO_TOKENS),
        )


class _Run:
    """One stream: requests on their way to the engine, and remembered replies that wait for the caller."""

    def __init__(self, llm: Llm, next_request: NextRequest) -> None:
        self._llm, self._next_request, self._engine = llm, next_request, llm._engine
        self._fresh: deque[Request] = deque()
        self._remembered: deque[Reply] = deque()
        self._held = 0
        self._answers: Iterator[Reply] | None = None

    def replies(self) -> Iterator[Reply]:
        while True:
            self._llm._require_open()
            self._look_ahead()
            if self._remembered:
                yield self._remembered.popleft()
                continue
            reply = self._answer()
            if reply is not None:
                yield reply
            elif not self._fresh and not self._remembered and not self._held:
                return

    def close(self) -> None:
        """Gives up what the engine holds."""
        close = getattr(self._answers, "close", None)
        if close is not None:
            close()

    def _look_ahead(self) -> None:
        """Takes requests while the engine has room for more: so what is remembered goes out before it is waited for."""
        while self._held + len(self._fresh) < self._engine.in_flight and not self._remembered:
            request = self._next_request()
            if request is None:
                return
            self._sort(request)

    def _sort(self, request: Request) -> None:
        reply = self._llm._recall(request)
        if reply is None:
            self._fresh.append(request)
        else:
            self._remembered.append(reply)

    def _take(self) -> Request | None:
        """What the engine is given when it has room: more may have finished since it was looked ahead."""
        while not self._fresh and len(self._remembered) < MOST_WAITING:
            request = self._next_request()
            if request is None:
                return None
            self._sort(request)
        if not self._fresh:
            return None
        self._held += 1
        return self._fresh.popleft()

    def _answer(self) -> Reply | None:
        """The engine's next reply; None when it has none, and its stream has ended."""
        if self._answers is None:
            self._answers = self._llm._begin(self._take)
        reply = next(self._answers, None)
        if reply is None:
            self._answers = None
            return None
        self._llm._take(reply, self._held)
        self._held -= 1
        return reply
