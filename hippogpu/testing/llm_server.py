"""A stand-in for an OpenAI-compatible chat server that fails as it is told to; in a thread, or as a process of its own.

    python -m hippogpu.testing.llm_server --port 0 --faults '{"shares": {"busy": 0.1}, "seed": 7}'

prints one JSON line with its address, {"url": "http://127.0.0.1:PORT/v1"}, and serves until it is ended.
POST {url}/chat/completions is answered by a rule, not a model. GET {url}/counts gives what was asked so far,
GET {url}/texts the last user message of each request by its digest; POST {url}/faults replaces the faults.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Thread
from types import MappingProxyType, TracebackType
from typing import Any, Self

from hippogpu.testing.llm_answers import (
    CHARACTERS_A_TOKEN,
    Answer,
    Asked,
    Refusal,
    completion,
    encoded,
    error,
    faulty,
    refusal,
)
from hippogpu.testing.llm_faults import Faults
from hippogpu.testing.llm_reader import last_user_message, read_passage

Model = Callable[[Mapping[str, Any]], str]
Rule = Callable[[Asked], Answer | None]


@dataclass(slots=True)
class Counts:
    """What a server has seen.

    requests       chat requests that came
    in_flight      how many of them wait for their answer now
    peak_in_flight the most that ever waited at once
    statuses       answers by HTTP status
    faults         faults by name
    asked          how often each request came, by the digest of its body
    answered       how often each was given a whole, good answer
    """

    requests: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)

    def as_mapping(self) -> dict[str, Any]:
        """A copy in plain values, ready for JSON."""
        numbers = {name: getattr(self, name) for name in ("requests", "in_flight", "peak_in_flight")}
        return numbers | {name: dict(getattr(self, name)) for name in ("statuses", "faults", "asked", "answered")}


class LlmServer:
    """A chat server on this machine, running in a thread between start (or `with`) and close.

    model    gives the text of a good answer from the body of a request
    faults   what goes wrong; may be replaced while it runs
    rule     may answer a request in its own way; where it gives None the request takes the usual way
    refuses  parameters that are refused with status 400, as models and servers do that do not know them
    key      when given, requests need it as their bearer token; else they get 401
    headers  sent with every answer
    drip     bytes of a drop of endless blanks, and seconds between two
    """

    def __init__(
        self,
        *,
        port: int = 0,
        model: Model = read_passage,
        faults: Faults | None = None,
        rule: Rule | None = None,
        refuses: frozenset[Refusal] = frozenset(),
        key: str = "",
        headers: Mapping[str, str] = MappingProxyType({}),
        drip: tuple[int, float] = (16, 0.01),
    ) -> None:
        self.model, self.rule, self.refuses, self.key, self.headers, self.drip = (
            *(model, rule, refuses, key, headers, drip),
        )
        self.faults = faults or Faults()
        self.counts = Counts()
        self.texts: dict[str, str] = {}
        self.prefixes: set[str] = set()
        self._port = port
        self._connections: set[_Connection] = set()
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The base of the API."""
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> Self:
        """Begins to listen; an OSError when the port is taken."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="llm server", daemon=True)
        self._thread.start()
        try:
            self._listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        except OSError:
            self._end_loop()
            raise
        self._port = self._listening.sockets[0].getsockname()[1]
        return self

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self.faults = Faults()

    def close(self) -> None:
        """Ends every connection and stops listening."""
        if self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
            self._end_loop()

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._connection, "127.0.0.1", self._port, backlog=4096)

    def _connection(self) -> _Connection:
        return _Connection(self, self._connections)

    async def _shut(self) -> None:
        self._listening.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Connection(asyncio.Protocol):
    """One connection, kept alive between requests."""

    def __init__(self, server: LlmServer, connections: set[_Connection]) -> None:
        self._server, self._connections = server, connections
        self._received = bytearray()
        self._pending: asyncio.TimerHandle | None = None
        self._waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._pending is not None:
            self._pending.cancel()
        self._release()

    def abort(self) -> None:
        """Ends the connection without another word."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self._received[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", "0"))
        if len(self._received) < end + 4 + size:
            return
        body = bytes(self._received[end + 4 : end + 4 + size])
        self._received.clear()
        verb, path, _ = first.split(" ", 2)
        self._take(verb, path, headers, body)

    def _take(self, verb: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        if (verb, path) == ("POST", "/v1/chat/completions"):
            self._chat(headers, body)
        elif (verb, path) == ("POST", "/v1/faults"):
            self._server.faults = Faults.from_mapping(json.loads(body))
            self._send(Answer(200, self._server.faults.as_mapping()))
        elif (verb, path) in {("GET", "/v1/counts"), ("GET", "/v1/texts")}:
            counted = self._server.counts.as_mapping()
            self._send(Answer(200, counted if path.endswith("counts") else self._server.texts))
        else:
            self._send(Answer(404, error(f"There is nothing at {path}.")))

    def _chat(self, headers: Mapping[str, str], raw: bytes) -> None:
        server, counts = self._server, self._server.counts
        body = json.loads(raw)
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        counts.requests += 1
        counts.asked[digest] += 1
        counts.in_flight += 1
        counts.peak_in_flight = max(counts.peak_in_flight, counts.in_flight)
        self._waiting = True
        server.texts.setdefault(digest, last_user_message(body))
        asked = Asked(digest, counts.asked[digest], headers, body)
        delay = server.faults.delay(digest, asked.number)
        if delay > 0:
            self._pending = asyncio.get_running_loop().call_later(delay, self._answer, asked)
        else:
            self._answer(asked)

    def _answer(self, asked: Asked) -> None:
        own = refusal(asked, self._server.refuses, self._server.key)
        own = own or (self._server.rule(asked) if self._server.rule else None)
        if own is not None:
            self._reply(own)
            return
        fault = self._server.faults.befalling(asked.digest, asked.number)
        if fault is None:
            self._server.counts.answered[asked.digest] += 1
            self._reply(Answer(200, self._completion(asked)))
            return
        self._server.counts.faults[fault] += 1
        if fault == "dropped":
            self.abort()
        elif fault == "cut":
            self._cut(encoded(Answer(200, self._completion(asked))))
        elif fault == "whitespace":
            self._transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            self._drop_blanks()
        else:
            self._reply(faulty(fault, self._completion(asked), self._server.faults.retry_after))

    def _reply(self, answer: Answer) -> None:
        self._release()
        self._server.counts.statuses[answer.status] += 1
        self._send(answer._replace(headers={**self._server.headers, **answer.headers}))

    def _completion(self, asked: Asked) -> dict[str, Any]:
        """All messages but the last count as cached once they have been seen."""
        server = self._server
        prefix = "\n".join(str(message.get("content", "")) for message in asked.body["messages"][:-1])
        cached = len(prefix) // CHARACTERS_A_TOKEN if prefix in server.prefixes else 0
        server.prefixes.add(prefix)
        return completion(asked, server.model(asked.body), cached)

    def _send(self, answer: Answer) -> None:
        self._transport.write(encoded(answer))

    def _cut(self, message: bytes) -> None:
        self._transport.write(message[: -len(message) // 4])
        self._transport.close()

    def _drop_blanks(self) -> None:
        size, seconds = self._server.drip
        self._transport.write(b"%x\r\n%b\r\n" % (size, b" " * size))
        self._pending = asyncio.get_running_loop().call_later(seconds, self._drop_blanks)

    def _release(self) -> None:
        if self._waiting:
            self._waiting = False
            self._server.counts.in_flight -= 1


def main() -> None:
    """Serves until the process is ended."""
    parser = argparse.ArgumentParser(description="A chat server for tests that fails as it is told to.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--faults", type=json.loads, default={}, help="a JSON object with the fields of Faults")
    options = parser.parse_args()
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with LlmServer(port=options.port, faults=Faults.from_mapping(options.faults)) as server:
        print(json.dumps({"url": server.url}), flush=True)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
