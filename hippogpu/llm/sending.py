"""One chat request to a server, as often as it takes, and what all requests to that server share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hippogpu.config import LlmConfig
from hippogpu.errors import require_extra
from hippogpu.llm.access import access_to, certificates, client
from hippogpu.llm.chat import Answered, Dialect, Problem, adapted, body_of, largest_body, read_answer
from hippogpu.llm.faults import Concern, advice, concern
from hippogpu.llm.pause import Chance, Clock, Pause, Sleep
from hippogpu.llm.retry import asked_wait_s, rate_limit_reset_s, wait_s
from hippogpu.llm.values import Failure, Reply, Request
from hippogpu.llm.words import without_stop

if TYPE_CHECKING:
    import httpx

LONGEST_ASKED_WAIT_S = 600.0
_LONGEST_OWN_WAIT_S = 60.0
# A request that a rate limit turns away while others are answered is sent this many times the attempts at most.
_PATIENCE = 10


class _Received(NamedTuple):
    outcome: Answered | Problem
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Tries:
    """How one request has fared.

    sent            how often it was sent
    attempts        how many of those count
    answered_before how many others were answered when it first failed; -1 when it has not
    """

    sent: int = 0
    attempts: int = 0
    answered_before: int = -1

    def others_pass(self, answered: int) -> bool:
        """Whether the server has answered others since this request first failed."""
        return 0 <= self.answered_before < answered

    def failed(self, problem: Problem, answered: int) -> None:
        """Counts a failed try, but for a rate limit that lets others through."""
        if problem.status != 429 or not self.others_pass(answered):
            self.attempts += 1
        if self.answered_before < 0:
            self.answered_before = answered


class Sender:
    """The connections to one server, and the pauses and refusals that concern all requests; used in one event loop.

    endpoint       the base address, without a password
    answered       requests that were answered
    notes          what the server would not take and is no longer sent, a sentence each
    peak_in_flight most requests that were on their way at once
    ConfigError for an address, a key, certificates or a proxy that cannot be used.
    """

    def __init__(self, config: LlmConfig, *, clock: Clock, sleep: Sleep, chance: Chance) -> None:
        self._httpx = cast("Any", require_extra("httpx", package="httpx", extra="http", purpose="The http engine"))
        self._config = config
        self._access = access_to(config, self._httpx)
        self.endpoint = self._access.endpoint
        self._sleep, self._chance = sleep, chance
        self._pause = Pause(clock, sleep, chance)
        self._places = asyncio.Semaphore(config.in_flight)
        self._dialect = Dialect()
        self._certificates = certificates(self._httpx)
        # The first one is made here, so that what cannot be used is told before anything is asked.
        self._clients: list[httpx.AsyncClient] = [self._connected()]
        self._idle = list(self._clients)
        self._on_the_way = 0
        self.answered = 0
        self.notes: list[str] = []
        self.peak_in_flight = 0

    async def ask(self, request: Request) -> Reply:
        """The reply to a request; a failure when its tries are used up or another could not help."""
        tries = _Tries()
        while True:
            await self._pause.passed()
            dialect = self._dialect
            outcome, headers = await self._send(request, dialect)
            tries.sent += 1
            if isinstance(outcome, Answered):
                self.answered += 1
                return Reply(request, outcome.text, outcome.finish, outcome.usage, tries=tries.sent)
            if self._adapts(dialect, request, outcome):
                continue
            tries.failed(outcome, self.answered)
            seconds = self._wait_s(tries.sent, headers)
            if outcome.status == 429:
                self._pause.hold(seconds)
            if not outcome.again or self._spent(tries):
                return self._failed(request, outcome, tries)
            if outcome.status != 429:
                await self._sleep(seconds)

    async def close(self) -> None:
        """Ends the connections."""
        for one in self._clients:
            await one.aclose()
        self._clients, self._idle = [], []

    async def _send(self, request: Request, dialect: Dialect) -> _Received:
        async with self._place() as one:
            try:
                async with asyncio.timeout(self._config.timeout_s):
                    body = body_of(request, self._config.model, dialect)
                    return await self._post(one, body, largest_body(request))
            except TimeoutError:
                problem = Problem(f"no whole answer within {self._config.timeout_s:g} s", again=True)
            except self._httpx.HTTPError as error:
                problem = Problem(type(error).__name__, again=True, words=str(error))
        return _Received(problem, {})

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[httpx.AsyncClient]:
        """One of in_flight places, with a connection that no other request uses meanwhile."""
        async with self._places:
            one = self._idle.pop() if self._idle else self._another()
            self._on_the_way += 1
            self.peak_in_flight = max(self.peak_in_flight, self._on_the_way)
            try:
                yield one
            finally:
                self._on_the_way -= 1
                self._idle.append(one)

    async def _post(self, one: httpx.AsyncClient, body: bytes, most: int) -> _Received:
        async with one.stream("POST", self._access.target, content=body) as response:
            raw = bytearray()
            async for part in response.aiter_bytes():
                raw += part
                if len(raw) > most:
                    return _Received(Problem(f"an answer of more than {most:,} bytes", again=True), response.headers)
        reset = rate_limit_reset_s(response.headers)
        if reset is not None:
            self._pause.hold(min(reset, LONGEST_ASKED_WAIT_S))
        return _Received(read_answer(response.status_code, bytes(raw)), response.headers)

    def _connected(self) -> httpx.AsyncClient:
        """A client of a single connection: the pool of one for all looks at each connection for each, at each request.

        With 64 connections that is 5 of the 7.6 ms of processor time that a request takes (httpcore 1.0.9).
        """
        return client(self._access, self._httpx, self._certificates)

    def _another(self) -> httpx.AsyncClient:
        self._clients.append(self._connected())
        return self._clients[-1]

    def _wait_s(self, sent: int, headers: Mapping[str, str]) -> float:
        asked = asked_wait_s(headers, now=datetime.now(UTC))
        longest = _LONGEST_OWN_WAIT_S if asked is None else LONGEST_ASKED_WAIT_S
        return wait_s(sent - 1, asked, self._chance(), longest_s=longest)

    def _adapts(self, sent: Dialect, request: Request, problem: Problem) -> bool:
        """Whether the request is to be sent once more at once, because the server is now asked in another dialect."""
        change = adapted(sent, request, problem)
        if change is None:
            return False
        if sent == self._dialect:
            self._dialect, refused = change
            self.notes.append(f"The server at '{self.endpoint}' refused {refused}. It said: {self._told(problem)}")
        return True

    def _spent(self, tries: _Tries) -> bool:
        most = self._config.attempts
        return tries.attempts >= most or tries.sent >= _PATIENCE * most

    def _failed(self, request: Request, problem: Problem, tries: _Tries) -> Reply:
        about = concern(problem)
        alone = problem.again and not tries.others_pass(self.answered)
        reason = self._told(problem) + (f" ({tries.sent} tries)" if tries.sent > 1 else "")
        if about is not None:
            reason = f"{reason}. {self._advice(about)}"
        return Reply(request, "", "failed", failure=Failure(reason, alone or about is not None), tries=tries.sent)

    def _advice(self, about: Concern) -> str:
        config = self._config
        return advice(about, endpoint=self.endpoint, model=config.model, key_variable=config.key_variable)

    def _told(self, problem: Problem) -> str:
        return without_stop(problem.told(self._access.secrets))
