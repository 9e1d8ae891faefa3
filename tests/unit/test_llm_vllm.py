"""The engine over vLLM, against a fake of vLLM that writes its calls down."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError, ExtractionError, MissingExtraError, UsageError
from hippogpu.llm import Llm, Message, Reply, ReplyCache, Request, Usage, open_engine
from hippogpu.llm.engine import Engine, NextRequest
from hippogpu.testing.vllm_api import EngineDeadError, EngineGenerateError, FakeAnswer, FakeVllm, VLLMClientError

CONFIG = LlmConfig(engine="vllm", model="small", in_flight=4, window=1000)
Open = Callable[..., Engine]


class NoGuard:
    """In place of the guard, whose process would outlast each of these tests."""

    said: ClassVar[list[str]] = []

    def ready(self) -> None:
        self.said.append("ready")

    def close(self) -> None:
        self.said.append("closed")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens an engine over a fake; closed at the end."""
    engines: list[Engine] = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr("hippogpu.llm.vllm.EngineGuard", NoGuard)
    NoGuard.said.clear()

    def open_over(fake: FakeVllm, config: LlmConfig = CONFIG) -> Engine:
        for name, module in fake.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        engines.append(open_engine(config))
        return engines[-1]

    yield open_over
    for engine in engines:
        engine.close()


def request(text: str, **values: Any) -> Request:
    return Request(text, (Message("user", text),), values.pop("max_tokens", 100), **values)


def in_turn(*requests: Request) -> NextRequest:
    rest = iter(requests)
    return lambda: next(rest, None)


def answers(**known: FakeAnswer) -> Callable[[str], FakeAnswer]:
    return lambda chat: known.get(chat.split()[0], FakeAnswer())


def texts(replies: Iterator[Reply]) -> list[str]:
    return [reply.request.tag for reply in replies]


def test_a_follow_up_enters_the_engine_while_others_run(opened: Open) -> None:
    fake = FakeVllm(answers(long=FakeAnswer(after="second")))
    todo = deque([request("long"), request("first")])
    for reply in opened(fake).stream(lambda: todo.popleft() if todo else None):
        if reply.request.tag == "first":
            todo.append(request("second"))
    assert fake.calls.index(("add", "second")) < fake.calls.index(("finish", "long"))


def test_every_request_has_one_reply(opened: Open) -> None:
    engine = opened(FakeVllm(lambda chat: FakeAnswer(steps=int(chat) % 7)))
    tags = [str(number) for number in range(50)]
    assert sorted(texts(engine.stream(in_turn(*map(request, tags))))) == sorted(tags)


def test_the_engine_holds_as_many_requests_as_it_may_and_no_more(opened: Open) -> None:
    fake = FakeVllm(lambda chat: FakeAnswer(after="3"))
    list(opened(fake).stream(in_turn(*(request(str(number)) for number in range(40)))))
    assert max(fake.running) == 4


def test_a_reply_that_was_taken_is_followed_by_a_new_request_before_the_next_reply(opened: Open) -> None:
    fake = FakeVllm(lambda chat: FakeAnswer(steps=None if chat == "stuck" else 1))
    asked: list[str] = []

    def next_request() -> Request | None:
        asked.append("stuck" if not asked else str(len(asked)))
        return request(asked[-1]) if len(asked) <= 6 else None

    stream = opened(fake).stream(next_request)
    next(stream)
    before = len(asked)
    next(stream)
    assert (before, len(asked)) == (4, 5)


def test_the_stream_goes_on_when_requests_come_after_a_none(opened: Open) -> None:
    given = iter([request("a"), None, request("b"), None, None])
    assert texts(opened(FakeVllm(answers())).stream(lambda: next(given, None))) == ["a", "b"]


def test_closing_the_stream_aborts_what_is_in_flight(opened: Open) -> None:
    fake = FakeVllm(answers(stuck=FakeAnswer(steps=None)))
    engine = opened(fake)
    stream = engine.stream(in_turn(request("stuck"), request("quick")))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    list(engine.stream(in_turn(request("later"))))
    assert ("abort", "stuck") in fake.calls


def test_closing_the_engine_aborts_and_lets_the_model_go_once(opened: Open) -> None:
    fake = FakeVllm(answers(stuck=FakeAnswer(steps=None)))
    engine = opened(fake)
    stream = engine.stream(in_turn(request("stuck"), request("quick")))
    next(stream)
    engine.close()
    engine.close()
    assert fake.calls[-2:] == [("abort", "stuck"), ("shutdown", "")]
    with pytest.raises(UsageError, match="was closed before all replies"):
        next(stream)


def test_a_closed_engine_takes_no_request(opened: Open) -> None:
    engine = opened(FakeVllm(answers()))
    engine.close()
    with pytest.raises(UsageError, match="is closed"):
        next(engine.stream(in_turn(request("a"))))


def test_a_prompt_that_leaves_no_room_for_a_reply_fails_with_its_length(opened: Open) -> None:
    (reply,) = opened(FakeVllm(answers())).stream(in_turn(request("word " * 1500)))
    assert reply.failure is not None
    assert (
        reply.failure.reason == "the prompt has 1500 tokens and the model reads 1000: split the passages with --chunk"
    )
    assert not reply.failure.unreachable


@pytest.mark.parametrize(("words", "asked", "given"), [(936, 100, 64), (937, 100, None), (990, 10, 10), (10, 100, 100)])
def test_a_reply_gets_what_the_window_leaves_if_that_is_enough(
    opened: Open, words: int, asked: int, given: int | None
) -> None:
    fake = FakeVllm(answers())
    chat = " ".join(["word"] * words)
    list(opened(fake).stream(in_turn(request(chat, max_tokens=asked))))
    assert (fake.sampling[chat].max_tokens if chat in fake.sampling else None) == given


def test_tokens_are_counted_from_the_engines_output(opened: Open) -> None:
    fake = FakeVllm(answers(a=FakeAnswer("one two three")))
    (reply,) = opened(fake).stream(in_turn(request("a b c d")))
    assert (reply.text, reply.usage) == ("one two three", Usage(4, 2, 3))


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_the_finish_is_the_engines(opened: Open, finish: str) -> None:
    (reply,) = opened(FakeVllm(answers(a=FakeAnswer(finish=finish)))).stream(in_turn(request("a")))
    assert reply.finish == finish


def test_a_request_that_the_engine_broke_off_is_not_the_requests_fault(opened: Open) -> None:
    (reply,) = opened(FakeVllm(answers(a=FakeAnswer(finish="abort")))).stream(in_turn(request("a")))
    assert reply.failure is not None
    assert (reply.text, reply.finish, reply.failure.unreachable) == ("", "failed", True)


@pytest.mark.parametrize(
    ("error", "unreachable"), [(VLLMClientError("no"), False), (ValueError("no"), False), (EngineGenerateError(), True)]
)
def test_an_error_of_one_request_fails_that_one_alone(opened: Open, error: Exception, unreachable: bool) -> None:
    engine = opened(FakeVllm(answers(bad=FakeAnswer(error=error))))
    failures = {reply.request.tag: reply.failure for reply in engine.stream(in_turn(*map(request, ("bad", "good"))))}
    assert failures["good"] is None
    assert failures["bad"] is not None
    assert failures["bad"].unreachable is unreachable


def test_a_dead_engine_ends_the_stream_after_what_had_finished(opened: Open) -> None:
    engine = opened(FakeVllm(answers(dead=FakeAnswer(steps=20, after="last", error=EngineDeadError("gone")))))
    stream = engine.stream(in_turn(request("good"), request("dead"), request("last")))
    assert {next(stream).request.tag, next(stream).request.tag} == {"good", "last"}
    with pytest.raises(ExtractionError, match="The vLLM engine of 'small' stopped: gone"):
        next(stream)


def test_a_schema_is_enforced_without_free_white_space(opened: Open) -> None:
    fake = FakeVllm(answers())
    schema = {"type": "object"}
    list(opened(fake).stream(in_turn(request("a", schema=schema), request("b"))))
    assert fake.sampling["a"].structured_outputs.json == schema
    assert fake.sampling["b"].structured_outputs is None
    assert fake.arguments["structured_outputs_config"]["disable_any_whitespace"] is True


def test_only_sampled_requests_carry_a_seed(opened: Open) -> None:
    fake = FakeVllm(answers())
    list(opened(fake).stream(in_turn(request("a", seed=7), request("b", seed=7, temperature=0.5))))
    assert (fake.sampling["a"].seed, fake.sampling["b"].seed, fake.sampling["b"].temperature) == (None, 7, 0.5)


def test_the_configuration_reaches_vllm(opened: Open) -> None:
    fake = FakeVllm(answers())
    config = LlmConfig(
        engine="vllm", model="m", data_parallel=2, tensor_parallel=3, gpu_memory=0.5, dtype="float16", in_flight=9
    )
    opened(fake, config)
    wanted = {
        "model": "m",
        "data_parallel_size": 2,
        "tensor_parallel_size": 3,
        "gpu_memory_utilization": 0.5,
        "dtype": "float16",
        "max_num_seqs": 9,
        "max_model_len": -1,
        "enable_prefix_caching": True,
    }
    assert {name: fake.arguments[name] for name in wanted} == wanted


def test_an_interrupt_never_reaches_the_engines_processes(opened: Open) -> None:
    fake = FakeVllm(answers())
    opened(fake)
    assert signal.SIGINT in fake.blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("error", [OSError("no such model"), ValueError("too long"), VLLMClientError("bad")])
def test_a_model_that_cannot_be_loaded_is_a_matter_of_the_configuration(opened: Open, error: Exception) -> None:
    with pytest.raises(ConfigError, match=f"vLLM cannot run 'small': {error}. Check"):
        opened(FakeVllm(answers(), start=error))


def test_the_guard_is_told_that_the_engine_is_ready_and_that_it_was_closed(opened: Open) -> None:
    engine = opened(FakeVllm(answers()))
    before = list(NoGuard.said)
    engine.close()
    assert (before, NoGuard.said) == (["ready"], ["ready", "closed"])


def test_the_guard_goes_when_the_model_cannot_be_loaded(opened: Open) -> None:
    with pytest.raises(ConfigError):
        opened(FakeVllm(answers(), start=OSError("no such model")))
    assert NoGuard.said == ["closed"]


def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError, match=r"hippogpu\[vllm\]"):
        open_engine(CONFIG)


@pytest.mark.parametrize("mine", [None, "ext://sys.stdout"])
def test_what_vllm_logs_stays_out_of_stdout_unless_that_is_wanted(
    opened: Open, monkeypatch: pytest.MonkeyPatch, mine: str | None
) -> None:
    monkeypatch.setenv("VLLM_LOGGING_STREAM", mine or "")
    if mine is None:
        monkeypatch.delenv("VLLM_LOGGING_STREAM")
    opened(FakeVllm(answers()))
    assert os.environ["VLLM_LOGGING_STREAM"] == (mine or "ext://sys.stderr")


def test_a_reply_is_remembered_when_it_comes_not_when_it_is_taken(opened: Open, tmp_path: Path) -> None:
    fake = FakeVllm(answers(held=FakeAnswer(after="d")))
    with ReplyCache(tmp_path / "r.sqlite") as cache:
        stream = Llm(opened(fake), cache).stream(in_turn(*map(request, ("a", "b", "d", "held"))))
        next(stream)
        deadline = time.monotonic() + 5
        while len(cache) < 4:
            assert time.monotonic() < deadline, len(cache)
            time.sleep(0.002)
        stream.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", ["no", "no."])
def test_a_refusal_ends_without_a_full_stop(opened: Open, words: str) -> None:
    (reply,) = opened(FakeVllm(answers(a=FakeAnswer(error=ValueError(words))))).stream(in_turn(request("a")))
    assert reply.failure is not None
    assert reply.failure.reason == "vLLM refused the request: no"
