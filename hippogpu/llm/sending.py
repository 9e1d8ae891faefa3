"""One chat request to a server, as often as it takes, and what all requests to that server share."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError, require_extra
from hippogpu.llm.chat import Answered, Dialect, Problem, adapted, body_of, largest_body, read_answer
from hippogpu.llm.pause import Chance, Clock, Pause, Sleep
from hippogpu.llm.retry import asked_wait_s, rate_limit_reset_s, wait_s
from hippogpu.llm.values import Failure, Reply, Request

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

    answered       requests that were answered
    notes          what the server would not take and is no longer sent, a sentence each
    peak_in_flight most requests that were on their way at once
    """

    def __init__(self, config: LlmConfig, *, clock: Clock, sleep: Sleep, chance: Chance) -> None:
        self._httpx = cast("Any", require_extra("httpx", package="httpx", extra="http", purpose="The http engine"))
        self._config = config
        try:
            self._address: httpx.URL = self._httpx.URL(f"{config.url.rstrip('/')}/chat/completions")
        except self._httpx.InvalidURL as error:
            raise ConfigError(f"The 'url' of LlmConfig is no address: {error}. Got '{config.url}'.") from error
        self._key = _key(config.key_variable)
        self._sleep, self._chance = sleep, chance
        self._pause = Pause(clock, sleep, chance)
        self._places = asyncio.Semaphore(config.in_flight)
        self._dialect = Dialect()
        self._certificates: ssl.SSLContext | None = None
        self._clients: list[httpx.AsyncClient] = []
        self._idle: list[httpx.AsyncClient] = []
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
        for client in self._clients:
            await client.aclose()
        self._clients, self._idle = [], []

    async def _send(self, request: Request, dialect: Dialect) -> _Received:
        async with self._place() as client:
            try:
                async with asyncio.timeout(self._config.timeout_s):
                    body = body_of(request, self._config.model, dialect)
                    return await self._post(client, body, largest_body(request))
            except TimeoutError:
                problem = f"no whole answer within {self._config.timeout_s:g} s"
            except self._httpx.HTTPError as error:
                problem = f"{type(error).__name__}: {error}"
        return _Received(Problem(problem, again=True), {})

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[httpx.AsyncClient]:
        """One of in_flight places, with a connection that no other request uses meanwhile."""
        async with self._places:
            client = self._idle.pop() if self._idle else self._connected()
            self._on_the_way += 1
            self.peak_in_flight = max(self.peak_in_flight, self._on_the_way)
            try:
                yield client
            finally:
                self._on_the_way -= 1
                self._idle.append(client)

    async def _post(self, client: httpx.AsyncClient, body: bytes, most: int) -> _Received:
        async with client.stream("POST", self._address, content=body) as response:
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
        if self._certificates is None:
            self._certificates = self._httpx.create_ssl_context()
        client: httpx.AsyncClient = self._httpx.AsyncClient(
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            limits=self._httpx.Limits(max_connections=1, max_keepalive_connections=1),
            timeout=None,
            verify=self._certificates,
        )
        self._clients.append(client)
        return client

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
            self.notes.append(f"The server at '{self._config.url}' refused {refused}. It said: {self._safe(problem)}")
        return True

    def _spent(self, tries: _Tries) -> bool:
        most = self._config.attempts
        return tries.attempts >= most or tries.sent >= _PATIENCE * most

    def _failed(self, request: Request, problem: Problem, tries: _Tries) -> Reply:
        reason = self._safe(problem) + (f" ({tries.sent} tries)" if tries.sent > 1 else "") + self._advice(problem)
        alone = problem.again and not tries.others_pass(self.answered)
        unreachable = alone or problem.status in {401, 403, 404}
        return Reply(request, "", "failed", failure=Failure(reason, unreachable), tries=tries.sent)

    def _advice(self, problem: Problem) -> str:
        if problem.status in {401, 403}:
            return f". Check the key in {self._config.key_variable} and its right to '{self._config.model}'."
        if problem.status == 404:
            return f". Check the address '{self._config.url}' and the model '{self._config.model}'."
        return ""

    def _safe(self, problem: Problem) -> str:
        return problem.reason.replace(self._key, "***") if self._key else problem.reason


def _key(variable: str) -> str:
    """The key in an environment variable; empty when there is none."""
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"The key in {variable} has characters that no HTTP header can hold. Set it again.")
    return key
