"""An embeddings server on this machine whose replies a test writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import MappingProxyType
from typing import Any, NamedTuple

from hippogpu.embed.hashing import HashingEmbedder


class Reply(NamedTuple):
    """What the server answers: a status, a JSON value or text, and headers."""

    status: int
    body: Any
    headers: Mapping[str, str] = MappingProxyType({})


class Seen(NamedTuple):
    """A request that came: path, headers, body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def hashing_reply(seen: Seen) -> Reply:
    """Vectors of width 16, three times too long, last first."""
    rows = HashingEmbedder(16).encode(seen.body["input"]) * 3
    data = [{"index": i, "embedding": row.tolist()} for i, row in enumerate(rows)]
    return Reply(200, {"data": data[::-1]})


def vectors_reply(rows: list[list[float]]) -> Reply:
    return Reply(200, {"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]})


@contextmanager
def embedding_server(answer: Callable[[Seen], Reply]) -> Iterator[tuple[str, list[Seen]]]:
    """The base URL of a running server and the list of requests it has had."""
    requests: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            reply = answer(requests[-1])
            payload = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(payload))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
