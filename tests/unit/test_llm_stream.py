"""How many requests an engine for servers has on their way, in which order, and what it leaves behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from llm_asking import request, served, source

from hippogpu.config import LlmConfig
from hippogpu.errors import UsageError
from hippogpu.llm import Request
from hippogpu.llm.http import HttpEngine
from hippogpu.testing.llm_answers import Answer, Asked
from hippogpu.testing.llm_faults import Faults
from hippogpu.testing.llm_server import LlmServer


def numbered(count: int) -> Iterator[Request]:
    return (request(f"Passage {number}", tag=number) for number in range(count))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def wait_until_idle(server: LlmServer, connections: int = 0) -> None:
    """Until the server has no request and at most so many connections; it notices a moment after the client left."""
    wait_until(lambda: not server.counts.in_flight and len(server._connections) <= connections)


@pytest.mark.parametrize("level", [1, 5])
def test_as_many_requests_are_on_their_way_as_configured_and_never_more(level: int) -> None:
    with served(LlmServer(faults=Faults(delay_s=0.01)), in_flight=level) as one:
        replies = one.ask(*numbered(6 * level))
        assert sorted(reply.request.tag for reply in replies) == list(range(6 * level))
        assert (one.server.counts.peak_in_flight, one.engine.peak_in_flight) == (level, level)


def test_connections_are_kept_and_no_more_than_requests() -> None:
    with served(LlmServer(faults=Faults(delay_s=0.002)), in_flight=3) as one:
        one.ask(*numbered(30))
        assert len(one.server._connections) == 3


def test_requests_are_taken_only_when_there_is_room() -> None:
    taken: list[int] = []

    def next_request() -> Request:
        taken.append(len(taken))
        return request(f"Passage {len(taken)}")

    with served(in_flight=4) as one:
        stream = one.engine.stream(next_request)
        next(stream)
        assert len(taken) == 4
        stream.close()


def test_a_slow_caller_is_not_run_ahead_of() -> None:
    """Twice the level at most: as many on their way, and as many finished."""
    count = iter(range(10**6))
    taken: list[int] = []

    def next_request() -> Request:
        taken.append(next(count))
        return request(f"Passage {taken[-1]}")

    with served(in_flight=4) as one:
        stream = one.engine.stream(next_request)
        for _ in range(10):
            next(stream)
            time.sleep(0.01)
        stream.close()
    assert len(taken) <= 10 + 2 * 4


def test_a_follow_up_goes_out_without_waiting_for_the_others() -> None:
    """The slow requests are turned away until the follow-up has come."""
    came = threading.Event()

    def rule(asked: Asked) -> Answer | None:
        text = asked.body["messages"][-1]["content"]
        if text == "follow up":
            came.set()
        return Answer(503, "not yet") if text == "slow" and not came.is_set() else None

    queue = [request("slow", seed=1), request("slow", seed=2), request("quick")]
    with served(LlmServer(rule=rule), in_flight=3, attempts=10**6) as one:
        for reply in one.engine.stream(lambda: queue.pop(0) if queue else None):
            assert reply.finish == "stop"
            if reply.text == "quick":
                assert not came.is_set()
                queue.append(request("follow up"))
    assert came.is_set()


def test_requests_are_taken_in_the_callers_thread() -> None:
    threads: set[int] = set()
    left = numbered(5)

    def next_request() -> Request | None:
        threads.add(threading.get_ident())
        return next(left, None)

    with served(in_flight=2) as one:
        list(one.engine.stream(next_request))
    assert threads == {threading.get_ident()}


def test_it_works_below_a_running_event_loop() -> None:
    async def inside() -> int:
        with served() as one:
            return len(one.ask(*numbered(5)))

    assert asyncio.run(inside()) == 5


def test_closing_the_stream_gives_up_what_is_on_its_way() -> None:
    with served(LlmServer(faults=Faults(shares={"whitespace": 0.5}, seed=3)), in_flight=8) as one:
        stream = one.engine.stream(source(numbered(100)))
        next(stream)
        wait_until(lambda: one.server.counts.requests >= 8)
        stream.close()
        wait_until_idle(one.server, connections=8)
        one.server.heal()
        assert len(one.ask(*numbered(3))) == 3


def test_closing_the_engine_leaves_no_connection_and_no_thread() -> None:
    with LlmServer() as server:
        before = threading.active_count()
        engine = HttpEngine(LlmConfig(url=server.url, model="m", in_flight=4))
        assert len(list(engine.stream(source(numbered(20))))) == 20
        assert (threading.active_count(), len(server._connections)) == (before + 1, 4)
        engine.close()
        wait_until_idle(server)
        assert threading.active_count() == before


def test_an_error_of_the_caller_gives_up_what_is_on_its_way() -> None:
    left = [request("one"), request("two")]
    with served(LlmServer(faults=Faults(shares={"whitespace": 1.0})), in_flight=8) as one:
        with pytest.raises(IndexError):
            next(one.engine.stream(lambda: left.pop()))
        wait_until_idle(one.server)


def test_a_closed_engine_is_a_usage_error() -> None:
    with served() as one:
        stream = one.engine.stream(source(numbered(50)))
        next(stream)
        one.engine.close()
        one.engine.close()
        with pytest.raises(UsageError, match="closed"):
            list(stream)
        with pytest.raises(UsageError, match="closed"):
            one.ask(request())


def test_two_streams_share_the_level() -> None:
    with served(LlmServer(faults=Faults(delay_s=0.01)), in_flight=3) as one:
        threads = [threading.Thread(target=one.ask, args=tuple(numbered(12))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (one.server.counts.requests, one.server.counts.peak_in_flight) == (24, 3)


def test_many_faults_lose_no_request() -> None:
    shares = {"busy": 0.1, "broken": 0.1, "dropped": 0.1, "cut": 0.1, "truncated": 0.05, "garbled": 0.05}
    with served(LlmServer(faults=Faults(shares=shares, seed=1)), in_flight=16, attempts=60) as one:  # type: ignore[arg-type]
        replies = one.ask(*numbered(120))
    assert sorted((reply.request.tag, reply.finish) for reply in replies) == [(number, "stop") for number in range(120)]
