"""What our client costs over a bare one, against a server that answers at once: python -m bench extract.

Predicted before the first run, on one core for the client: the engine answers 0.85 times as many requests a second as
the bare httpx client (a task, a timeout and two hand-overs between threads, some 100 µs beside httpx's millisecond),
the client with its reply cache 0.80 times (a digest and an SQLite row more). docs/llm.md says what came of it: that
one httpx client spends most of its time on its pool of connections, so the engine has a client for each connection.
The bare client is measured both ways, `bare` with one pool and `singles` with a client for each connection.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import httpx
import typer
from rich.console import Console

from bench import load as shared
from bench.checks import Check, all_passed, equal
from bench.measure import spread
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.config import LlmConfig
from hippogpu.llm import Llm, Message, ReplyCache, Request
from hippogpu.llm.chat import Dialect, body_of
from hippogpu.llm.http import HttpEngine

MODEL = "bench"
_TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA = {"type": "object", "properties": {"entities": _TEXTS}, "required": ["entities"]}
INSTRUCTION = "List the named entities of the passage as JSON. " * 20
PASSAGE = "Oliver Badman was a politician in New South Wales. He met Ada Byron of London in the year after the war. "


class Passed(NamedTuple):
    """One pass over the requests: seconds on the clock and of the processor, the texts in the order of the requests."""

    seconds: float
    processor_s: float
    texts: list[str]


Client = Callable[[str, Sequence[Request], int], Passed]


def extract(
    requests: Annotated[int, typer.Option("--requests", min=1, help="Requests of a pass.")] = 2000,
    in_flight: Annotated[int, typer.Option("--in-flight", min=1, help="Requests on their way at once.")] = 64,
    delay_ms: Annotated[float, typer.Option("--delay-ms", min=0.0, help="Of the pass that counts the level.")] = 50.0,
    repeats: shared.Repeats = 3,
    json: shared.Json = None,
) -> None:
    """Measure requests a second of a bare httpx client, of the engine and of the client with its cache, in turns.

    Then, against answers that take a while, how many requests the server counts at once, and how full the level is.
    Exit 1 when the three do not get the same replies: then nothing is timed.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    asked = [_request(number) for number in range(requests)]
    result: dict[str, Any] = {"bench": "extract", "machine": machine(), "requests": requests, "in_flight": in_flight}
    with _pinned(), _server() as url:
        checks = _check(url, asked[:200], in_flight)
        result |= {"passed": all_passed(checks), "checks": [check._asdict() for check in checks]}
        if result["passed"]:
            result["clients"] = _in_turns(url, asked, in_flight, repeats)
    if result["passed"]:
        result["level"] = _level(asked, in_flight, delay_ms / 1000.0, repeats)
    print_checks(checks, console)
    _show(result, console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def bare(url: str, requests: Sequence[Request], level: int) -> Passed:
    """httpx alone: a semaphore, a kept connection for each place, JSON both ways."""

    async def run() -> list[str]:
        places = asyncio.Semaphore(level)
        # An expiry would let the pool close a connection that it has just given to a request (httpcore issue 1110).
        limits = httpx.Limits(max_connections=level, max_keepalive_connections=level, keepalive_expiry=None)
        async with httpx.AsyncClient(limits=limits, timeout=None) as client:

            async def one(request: Request) -> str:
                async with places:
                    body = body_of(request, MODEL, Dialect())
                    answer = await client.post(f"{url}/chat/completions", content=body)
                return str(answer.json()["choices"][0]["message"]["content"])

            return await asyncio.gather(*map(one, requests))

    return _timed(lambda: asyncio.run(run()))


def singles(url: str, requests: Sequence[Request], level: int) -> Passed:
    """httpx alone, with a client of one connection for each place."""

    async def run() -> list[str]:
        certificates = httpx.create_ssl_context()
        limits = httpx.Limits(max_connections=1)
        clients = [httpx.AsyncClient(limits=limits, timeout=None, verify=certificates) for _ in range(level)]
        numbered = iter(enumerate(requests))
        texts = [""] * len(requests)

        async def work(client: httpx.AsyncClient) -> None:
            async with client:
                for number, request in numbered:
                    body = body_of(request, MODEL, Dialect())
                    answer = await client.post(f"{url}/chat/completions", content=body)
                    texts[number] = str(answer.json()["choices"][0]["message"]["content"])

        await asyncio.gather(*map(work, clients))
        return texts

    return _timed(lambda: asyncio.run(run()))


def engine(url: str, requests: Sequence[Request], level: int) -> Passed:
    """The engine alone."""

    def run() -> list[str]:
        held = HttpEngine(LlmConfig(url=url, model=MODEL, in_flight=level))
        left = iter(requests)
        texts = [""] * len(requests)
        for reply in held.stream(lambda: next(left, None)):
            texts[reply.request.tag] = reply.text
        held.close()
        return texts

    return _timed(run)


def client(url: str, requests: Sequence[Request], level: int) -> Passed:
    """The engine behind the client, each reply kept in a new cache."""
    with tempfile.TemporaryDirectory() as folder:
        return _timed(lambda: _asked(url, requests, level, Path(folder)))


def remembered(url: str, requests: Sequence[Request], level: int) -> Passed:
    """The client when it knows every reply."""
    with tempfile.TemporaryDirectory() as folder:
        _asked(url, requests, level, Path(folder))
        return _timed(lambda: _asked(url, requests, level, Path(folder)))


CLIENTS: dict[str, Client] = {
    "bare": bare,
    "singles": singles,
    "engine": engine,
    "client": client,
    "remembered": remembered,
}


LEVELLED = ("singles", "engine", "client")


def _timed(run: Callable[[], list[str]]) -> Passed:
    started, processor = time.perf_counter(), time.process_time()
    texts = run()
    return Passed(time.perf_counter() - started, time.process_time() - processor, texts)


def _asked(url: str, requests: Sequence[Request], level: int, folder: Path) -> list[str]:
    config = LlmConfig(url=url, model=MODEL, in_flight=level)
    with Llm(HttpEngine(config), ReplyCache(folder / "replies.sqlite")) as llm:
        return [reply.text for reply in llm.ask(requests)]


def _request(number: int) -> Request:
    user = Message("user", f"Passage {number}\n\n{PASSAGE * 5}")
    return Request(number, (Message("system", INSTRUCTION), user), 512, SCHEMA)


def _check(url: str, requests: Sequence[Request], level: int) -> list[Check]:
    wanted = bare(url, requests, level).texts
    others = {name: found(url, requests, level).texts for name, found in CLIENTS.items() if name != "bare"}
    return [equal(f"replies of {name} are those of bare", texts == wanted, True) for name, texts in others.items()]


def _in_turns(url: str, requests: Sequence[Request], level: int, repeats: int) -> dict[str, Any]:
    """Requests a second of each client, and its ratios to the two bare ones of the same turn."""
    turns = [{name: one(url, requests, level) for name, one in CLIENTS.items()} for _ in range(repeats)]
    return {name: _compared([(turn[name], turn["bare"], turn["singles"]) for turn in turns]) for name in CLIENTS}


def _compared(turns: Sequence[tuple[Passed, Passed, Passed]]) -> dict[str, Any]:
    """The ratios are those of processor seconds, which other processes on the machine disturb least."""
    count = len(turns[0][0].texts)
    return {
        "requests_a_second": spread([count / own.seconds for own, _, _ in turns]),
        "processor_ms_a_request": spread([own.processor_s / count * 1000 for own, _, _ in turns]),
        "ratio_to_bare": spread([bare.processor_s / own.processor_s for own, bare, _ in turns]),
        "ratio_to_singles": spread([singles.processor_s / own.processor_s for own, _, singles in turns]),
    }


def _level(requests: Sequence[Request], level: int, delay_s: float, repeats: int) -> dict[str, Any]:
    """The most requests that the server saw at once, and the mean number under delay as a share of the level."""
    found: dict[str, Any] = {"delay_ms": delay_s * 1000, "configured": level}
    for name in LEVELLED:
        with _pinned(), _server(delay_s) as url:
            seconds = [CLIENTS[name](url, requests, level).seconds for _ in range(repeats)]
            peak = httpx.get(f"{url}/counts").json()["peak_in_flight"]
        filled = spread([len(requests) * delay_s / (one * level) for one in seconds])
        found[name] = {"peak_in_flight": peak, "level_filled": filled}
    return found


@contextmanager
def _server(delay_s: float = 0.0) -> Iterator[str]:
    """The address of a server in a process of its own, on the last core when there are two."""
    faults = json.dumps({"delay_s": delay_s})
    command = [sys.executable, "-m", "hippogpu.testing.llm_server", "--faults", faults]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {_CORES[-1]})
        try:
            yield url
        finally:
            process.terminate()


@contextmanager
def _pinned() -> Iterator[None]:
    """This thread, and those it starts, on the first core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {_CORES[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


_CORES = sorted(os.sched_getaffinity(0))


def _show(result: dict[str, Any], console: Console) -> None:
    if "clients" not in result:
        console.print("[red]A check failed: nothing was timed.[/red]")
        return
    rows = [[name, *found.values()] for name, found in result["clients"].items()]
    title = f"{result['requests']:,} requests, {result['in_flight']} at once, answered at once; a core each for both"
    print_rows(
        title, ["client", "requests a second", "ms of processor each", "ratio to bare", "to singles"], rows, console
    )
    level = result["level"]
    rows = [[name, *level[name].values()] for name in LEVELLED]
    title = f"answers after {level['delay_ms']:g} ms, level {level['configured']}"
    print_rows(title, ["client", "most at once, by the server", "mean share of the level"], rows, console)
