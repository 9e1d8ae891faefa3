"""What the rest of the program asks: remembered replies first, no barrier, and an account of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from llm_asking import Echo, request, served, source

from hippogpu.errors import StoredIndexError, UsageError
from hippogpu.llm import Failure, Llm, Reply, ReplyCache, Request, Spent, Usage
from hippogpu.testing.llm_faults import Faults
from hippogpu.testing.llm_server import LlmServer


@pytest.fixture
def replies(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        yield cache


def requests(*texts: str) -> list[Request]:
    return [request(text, tag=text) for text in texts]


def test_replies_come_in_the_order_of_the_requests_with_their_tags() -> None:
    with served(LlmServer(faults=Faults(delay_spread_s=0.02))) as one:
        found = Llm(one.engine).ask(requests(*"abcdefgh"))
    assert [(reply.request.tag, reply.text) for reply in found] == [(text, text) for text in "abcdefgh"]


def test_asking_nothing_gives_nothing() -> None:
    assert Llm(Echo()).ask([]) == []


def test_a_known_reply_is_remembered_and_not_asked_again(replies: ReplyCache) -> None:
    engine = Echo()
    llm = Llm(engine, replies)
    llm.ask(requests("a", "b"))
    found = llm.ask(requests("b", "c", "a"))
    assert [(reply.text, reply.remembered, reply.tries) for reply in found] == [
        ("b", True, 0),
        ("c", False, 1),
        ("a", True, 0),
    ]
    assert engine.asked == ["a", "b", "c"]


def test_a_failure_is_asked_again(replies: ReplyCache) -> None:
    engine = Echo(change=lambda reply: replace(reply, text="", finish="failed", failure=Failure("no")))
    llm = Llm(engine, replies)
    llm.ask(requests("a"))
    llm.ask(requests("a"))
    assert engine.asked == ["a", "a"]


def test_a_rejected_reply_is_asked_again(replies: ReplyCache) -> None:
    engine = Echo()
    llm = Llm(engine, replies)
    llm.reject(llm.ask(requests("a"))[0])
    llm.ask(requests("a"))
    assert engine.asked == ["a", "a"]


def test_without_a_cache_nothing_is_remembered_and_rejecting_does_nothing() -> None:
    engine = Echo()
    llm = Llm(engine)
    llm.reject(llm.ask(requests("a"))[0])
    llm.ask(requests("a"))
    assert (engine.asked, llm.spent.remembered) == (["a", "a"], 0)


@pytest.mark.parametrize("level", [1, 4])
def test_a_remembered_corpus_is_not_read_ahead(replies: ReplyCache, level: int) -> None:
    llm = Llm(Echo(level), replies)
    llm.ask(requests(*map(str, range(300))))
    taken: list[str] = []

    def next_request() -> Request | None:
        taken.append(str(len(taken)))
        return request(taken[-1]) if len(taken) <= 300 else None

    ahead = [len(taken) - number for number, _ in enumerate(llm.stream(next_request))]
    assert len(ahead) == 300
    assert max(ahead) <= 64


def test_a_remembered_reply_does_not_wait_for_one_that_is_asked(replies: ReplyCache) -> None:
    with served(LlmServer(faults=Faults(delay_s=0.05)), in_flight=4) as one:
        Llm(one.engine, replies).ask(requests("known"))
        order = [reply.request.tag for reply in Llm(one.engine, replies).stream(source(requests("new", "known")))]
    assert order == ["known", "new"]


def test_a_follow_up_takes_the_place_of_what_it_follows() -> None:
    """Two places, four requests that wait: the follow-up goes before all but the one that is sent already."""
    engine = Echo(2)
    queue = requests("a", "b", "c", "d")
    for reply in Llm(engine).stream(lambda: queue.pop(0) if queue else None):
        if reply.text == "a":
            queue.insert(0, request("a2"))
    assert engine.asked == ["a", "b", "a2", "c", "d"]


def test_a_follow_up_of_a_remembered_reply_is_asked(replies: ReplyCache) -> None:
    llm = Llm(Echo(1), replies)
    llm.ask(requests("a"))
    queue = requests("a")
    seen = []
    for reply in llm.stream(lambda: queue.pop(0) if queue else None):
        seen.append((reply.text, reply.remembered))
        queue.extend(requests("a2") if reply.text == "a" else [])
    assert seen == [("a", True), ("a2", False)]


def test_as_many_requests_are_on_their_way_as_configured_through_the_cache_too(replies: ReplyCache) -> None:
    with served(LlmServer(faults=Faults(delay_s=0.01)), in_flight=5) as one:
        llm = Llm(one.engine, replies)
        llm.ask(requests(*map(str, range(0, 60, 2))))
        llm.ask(requests(*map(str, range(60))))
        assert (one.server.counts.requests, one.server.counts.peak_in_flight) == (60, 5)
        assert llm.spent.peak_in_flight == 5


def test_what_was_spent_is_counted(replies: ReplyCache) -> None:
    def change(reply: Reply) -> Reply:
        if reply.text == "bad":
            return replace(reply, text="", finish="failed", failure=Failure("no"), tries=6)
        return replace(reply, usage=Usage(10, 4, 2) if reply.text != "silent" else Usage(), tries=2)

    llm = Llm(Echo(3, change), replies)
    llm.ask(requests("a", "b", "bad", "silent"))
    llm.ask(requests("a"))
    assert llm.spent == Spent(5, 12, 1, 1, Usage(20, 8, 4), 3, 1)


def test_model_and_endpoint_are_the_engines() -> None:
    llm = Llm(Echo())
    assert (llm.model, llm.endpoint, llm.notes, llm.spent) == ("echo", "here", (), Spent())


def test_notes_are_those_of_the_engine_and_of_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"no database" * 999)
    with served(LlmServer(refuses=frozenset({"max_tokens"}))) as one, Llm(one.engine, ReplyCache(path)) as llm:
        llm.ask(requests("a"))
        assert ["max_completion_tokens" in llm.notes[0], "damaged" in llm.notes[1]] == [True, True]


def test_a_closed_stream_gives_up_what_the_engine_holds() -> None:
    with served(LlmServer(faults=Faults(shares={"whitespace": 0.5}, seed=3)), in_flight=8) as one:
        stream = Llm(one.engine).stream(source(requests(*map(str, range(40)))))
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        one.server.heal()
        assert len(Llm(one.engine).ask(requests("x"))) == 1


def test_closing_closes_the_engine(replies: ReplyCache) -> None:
    engine = Echo()
    with Llm(engine, replies):
        pass
    assert engine.closed == 1


@pytest.mark.parametrize("remembered", [True, False])
def test_an_open_stream_ends_with_a_usage_error_when_its_model_is_closed(tmp_path: Path, remembered: bool) -> None:
    path = tmp_path / "r.sqlite"
    llm = Llm(Echo(2), ReplyCache(path) if remembered else None)
    stream = llm.stream(source(requests(*"abcdef")))
    next(stream)
    llm.close()
    with pytest.raises(UsageError, match="'echo' is closed"):
        next(stream)
    with pytest.raises(UsageError, match="'echo' is closed"):
        llm.ask(requests("a"))
    assert not path.with_name("r.sqlite-wal").exists()


def test_a_reply_is_remembered_when_it_comes_not_when_it_is_taken(replies: ReplyCache) -> None:
    with served(in_flight=4) as one, ReplyCache(replies.path) as other:
        stream = Llm(one.engine, replies).stream(source(requests(*map(str, range(20)))))
        next(stream)
        deadline = time.monotonic() + 5
        while len(other) < 4:
            assert time.monotonic() < deadline, len(other)
            time.sleep(0.002)
        stream.close()  # type: ignore[attr-defined]


def test_a_reply_that_cannot_be_remembered_ends_the_stream(tmp_path: Path) -> None:
    with served() as one, ReplyCache(tmp_path / "r.sqlite") as cache:
        with sqlite3.connect(cache.path) as database:
            database.execute("CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'full'); END")
        database.close()
        with pytest.raises(StoredIndexError, match="full"):
            Llm(one.engine, cache).ask(requests("a"))
