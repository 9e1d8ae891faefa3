"""The engine for OpenAI-compatible servers, against one that fails as it is told to."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from llm_asking import SCHEMA, Served, request, served

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError
from hippogpu.llm import Llm, ReplyCache, Usage
from hippogpu.llm.http import HttpEngine
from hippogpu.testing.llm_answers import Answer, Asked
from hippogpu.testing.llm_faults import Faults
from hippogpu.testing.llm_server import LlmServer, Rule

KEY = "HIPPOGPU_LLM_API_KEY"


def failing_first(times: int, answer: Answer) -> Rule:
    """A rule that gives the first so many tries of each request one answer."""
    return lambda asked: answer if asked.number <= times else None


def bodies(of: Served) -> list[dict[str, Any]]:
    """Makes the server keep what it is asked, in the list given back."""
    kept: list[dict[str, Any]] = []
    before = of.server.rule

    def keep(asked: Asked) -> Answer | None:
        kept.append(dict(asked.body) | {"headers": asked.headers})
        return before(asked) if before else None

    of.server.rule = keep
    return kept


def test_a_reply_has_the_text_and_the_tokens_of_the_answer() -> None:
    with served() as one:
        (reply,) = one.ask(request("Oliver Badman was born.", schema=SCHEMA, tag=7))
    assert (reply.request.tag, reply.finish, reply.tries, reply.remembered) == (7, "stop", 1, False)
    assert json.loads(reply.text) == {"entities": ["Oliver Badman"]}
    assert (reply.usage.prompt, reply.usage.completion > 0) == (8, True)


def test_the_server_is_sent_all_that_is_asked() -> None:
    with served() as one:
        sent = bodies(one)
        one.ask(request("x", most=33, schema=SCHEMA, temperature=0.5, seed=4))
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}
    messages = [{"role": "system", "content": "Read."}, {"role": "user", "content": "x"}]
    wanted = {"model": "m", "messages": messages, "max_tokens": 33, "temperature": 0.5, "seed": 4}
    assert {k: v for k, v in sent[0].items() if k != "headers"} == wanted | {"response_format": form}


def test_a_greedy_request_sends_no_seed_and_free_text_no_form() -> None:
    with served() as one:
        sent = bodies(one)
        one.ask(request("x"))
    assert "seed" not in sent[0]
    assert "response_format" not in sent[0]


def test_half_a_character_goes_out_as_the_replacement_character() -> None:
    with served() as one:
        (reply,) = one.ask(request("a\ud800b"))
    assert reply.text == "a�b"


def test_the_tokens_that_the_server_took_from_its_prefix_cache_are_counted() -> None:
    with served(in_flight=1) as one:
        first, second = one.ask(request("one"), request("two"))
    assert (first.usage.cached, second.usage.cached) == (0, 1)


def test_a_server_that_counts_no_tokens_gives_zeros() -> None:
    answer = Answer(200, {"choices": [{"message": {"content": "hi"}}]})
    with served(LlmServer(rule=lambda _: answer)) as one:
        (reply,) = one.ask(request())
    assert (reply.text, reply.finish, reply.usage) == ("hi", "stop", Usage())


def test_a_reply_that_met_its_limit_is_cut_and_says_so() -> None:
    with served() as one:
        (reply,) = one.ask(request("word " * 100, most=10))
    assert (reply.finish, len(reply.text)) == ("length", 40)


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 520, 524, 529, 530])
def test_a_busy_server_is_asked_again_after_a_longer_wait_each_time(status: int) -> None:
    with served(LlmServer(rule=failing_first(2, Answer(status, "busy")))) as one:
        (reply,) = one.ask(request())
    assert (reply.finish, reply.tries, one.time.waits) == ("stop", 3, [0.5, 1.0])


@pytest.mark.parametrize("fault", ["dropped", "cut", "truncated", "garbled"])
def test_an_answer_that_is_broken_is_asked_for_again(fault: str) -> None:
    with served(LlmServer(faults=Faults(shares={fault: 1.0}))) as one:  # type: ignore[dict-item]
        (reply,) = one.ask(request())
        one.server.heal()
        (healed,) = one.ask(request())
    assert (reply.finish, reply.tries, one.time.waits) == ("failed", 3, [0.5, 1.0])
    assert (healed.finish, healed.tries) == ("stop", 1)


def test_tries_are_bounded_and_the_last_answer_is_told() -> None:
    with served(LlmServer(rule=lambda _: Answer(503, "out of memory"))) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert reply.failure == ("status 503: out of memory (3 tries)", True)
    assert (reply.text, one.server.counts.requests) == ("", 3)


@pytest.mark.parametrize("headers", [{"Retry-After": "7"}, {"retry-after-ms": "7000"}, {"Retry-After": "date"}])
def test_the_wait_that_a_server_asks_for_is_kept(headers: dict[str, str]) -> None:
    if headers.get("Retry-After") == "date":
        later = datetime.now(UTC) + timedelta(seconds=7.9)
        headers = {"Retry-After": format_datetime(later, usegmt=True)}
    with served(LlmServer(rule=failing_first(1, Answer(503, "", headers)))) as one:
        one.ask(request())
    assert one.time.waits[0] == pytest.approx(7.0, abs=0.95)


def test_a_busy_server_may_ask_for_ten_minutes_at_most() -> None:
    with served(LlmServer(rule=failing_first(1, Answer(503, "", {"Retry-After": "7200"})))) as one:
        one.ask(request())
    assert one.time.waits == [600.0]


def test_too_many_requests_hold_every_request_back() -> None:
    """The first request is given up; the second waits all the same: 30 s, and 5 s more to spread the many."""
    busy = Answer(429, "slow down", {"Retry-After": "30"})
    with served(LlmServer(rule=lambda _: busy if one.time.now < 30 else None), in_flight=1, attempts=1) as one:
        first, second = one.ask(request("first"), request("second"))
    assert (first.finish, second.finish, second.tries) == ("failed", "stop", 1)
    assert one.time.waits == [pytest.approx(35.0)]


def test_a_spent_rate_limit_holds_the_next_request_back_until_its_reset() -> None:
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
    with served(LlmServer(headers=headers), in_flight=1) as one:
        one.ask(request("one"), request("two"))
    assert one.time.waits == [pytest.approx(365.0)]


def test_a_rate_limit_that_lets_others_through_uses_up_no_attempt() -> None:
    """Two of three are turned away: many requests more often than three attempts allow."""
    came = iter(range(10**6))
    busy = Answer(429, "slow down", {"Retry-After": "0"})
    with served(LlmServer(rule=lambda _: busy if next(came) % 3 else None), in_flight=8) as one:
        replies = one.ask(*(request(f"Passage {number}") for number in range(60)))
    assert {reply.finish for reply in replies} == {"stop"}
    assert max(reply.tries for reply in replies) > 3


def test_a_rate_limit_that_lets_nobody_through_is_given_up_on() -> None:
    with served(LlmServer(faults=Faults(shares={"busy": 1.0}))) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert (reply.tries, reply.failure.unreachable) == (3, True)


def test_a_request_that_fails_while_others_are_answered_is_not_the_servers_fault() -> None:
    rule: Rule = lambda asked: Answer(500, "no") if "bad" in str(asked.body["messages"][-1]) else None  # noqa: E731
    # So many tries, without waits, that others are answered before the last one.
    with served(LlmServer(rule=rule), in_flight=1, attempts=30) as one:
        alone, *_ = one.ask(request("bad"))
        one.engine.in_flight = one.engine._sender._places._value = 2
        with_others = one.ask(request("bad"), *(request(f"good {n}") for n in range(50)))
    failures = [reply.failure for reply in (alone, *with_others) if reply.failure]
    assert [failure.unreachable for failure in failures] == [True, False]


def test_an_answer_that_drips_for_ever_is_cut_off_at_the_time_limit() -> None:
    with served(LlmServer(faults=Faults(shares={"whitespace": 1.0})), timeout_s=0.08, attempts=2) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert (reply.failure.reason, reply.tries) == ("no whole answer within 0.08 s (2 tries)", 2)


def test_an_answer_that_floods_is_cut_off_at_its_size() -> None:
    flood = LlmServer(faults=Faults(shares={"whitespace": 1.0}), drip=(2**18, 0.001))
    with served(flood, attempts=1) as one:
        (reply,) = one.ask(request(most=1000))
    assert reply.failure is not None
    assert reply.failure.reason == "an answer of more than 1,112,576 bytes"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"choices": []}, "an answer without choices"),
        ({}, "an answer without choices"),
        ([1], "an answer that is no object"),
        ({"choices": [{"message": {"content": None}}]}, "a reply without text"),
        ({"choices": [{}]}, "a reply without text"),
        ({"choices": [{"message": {"content": None, "refusal": "I will not."}}]}, "the model refused: I will not"),
        ({"choices": [{"message": {"content": "a"}, "finish_reason": "content_filter"}]}, "content filter"),
        ({"error": {"code": 400, "message": "bad"}}, "status 400: bad"),
    ],
)
def test_an_answer_without_a_text_is_a_failure_of_the_request(answer: Any, reason: str) -> None:
    with served(LlmServer(rule=lambda _: Answer(200, answer))) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert reason in reply.failure.reason
    assert (reply.tries, reply.failure.unreachable) == (1, False)


def test_an_error_in_an_answer_of_status_200_is_taken_by_its_own_code() -> None:
    with served(LlmServer(rule=failing_first(1, Answer(200, {"error": {"code": 502, "message": "bad"}})))) as one:
        (reply,) = one.ask(request())
    assert (reply.finish, reply.tries) == ("stop", 2)


def test_a_model_that_spent_its_tokens_on_thinking_met_its_limit() -> None:
    answer = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    with served(LlmServer(rule=lambda _: Answer(200, answer))) as one:
        (reply,) = one.ask(request())
    assert (reply.finish, reply.text) == ("length", "")


def test_a_bad_request_fails_at_once_with_the_servers_words_shortened() -> None:
    words = "This model's maximum context length is 2048 tokens. " + "x" * 500
    with served(LlmServer(rule=lambda _: Answer(400, {"error": {"message": words}}))) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert reply.failure.reason.startswith("status 400: This model's maximum context length is 2048 tokens.")
    assert (len(reply.failure.reason), reply.failure.unreachable, reply.tries) == (212, False, 1)


@pytest.mark.parametrize(("status", "names"), [(401, KEY), (403, KEY), (404, "model 'm'")])
def test_a_refusal_of_every_request_says_what_to_set(status: int, names: str) -> None:
    with served(LlmServer(rule=lambda _: Answer(status, "no"))) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert names in reply.failure.reason
    assert (reply.failure.unreachable, reply.tries) == (True, 1)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", " secret\n")
    with served(LlmServer(key="secret"), key_variable="MY_KEY") as one:
        (reply,) = one.ask(request())
    assert reply.finish == "stop"


def test_a_key_that_the_server_repeats_does_not_reach_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "sk-very-secret")
    with served(LlmServer(key="another")) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert "sk-very-secret" not in reply.failure.reason
    assert "***" in reply.failure.reason


def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "se\ncret")
    with pytest.raises(ConfigError) as refused:
        HttpEngine(LlmConfig(url="http://127.0.0.1:9/v1", model="m"))
    assert KEY in str(refused.value)
    assert "cret" not in str(refused.value)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with served(url="http://127.0.0.1:9/v1") as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert "ConnectError" in reply.failure.reason
    assert (reply.failure.unreachable, reply.tries) == (True, 3)


@pytest.mark.parametrize("settings", [{"url": ""}, {"model": ""}])
def test_an_engine_without_address_or_model_is_a_configuration_error(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="'url' and 'model'"):
        HttpEngine(LlmConfig(**{"url": "http://127.0.0.1:9/v1", "model": "m"} | settings))


def test_an_address_that_is_none_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="no address"):
        HttpEngine(LlmConfig(url="http://host:port/v1", model="m"))


def test_a_redirect_is_not_followed_away_from_the_endpoint() -> None:
    elsewhere = Answer(307, "", {"Location": "http://127.0.0.1:9/v1/chat/completions"})
    with served(LlmServer(rule=lambda _: elsewhere)) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert reply.failure.reason.startswith("status 307")


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"])
def test_every_servers_word_for_a_cut_reply_is_known(reason: str) -> None:
    answer = {"choices": [{"message": {"content": "a"}, "finish_reason": reason}]}
    with served(LlmServer(rule=lambda _: Answer(200, answer))) as one:
        (reply,) = one.ask(request())
    assert (reply.finish, reply.text) == ("length", "a")


@pytest.mark.parametrize("reason", [None, 3, {}, ["length"], "end_turn", "eos"])
def test_any_other_reason_to_finish_is_a_whole_reply(reason: Any) -> None:
    answer = {"choices": [{"message": {"content": "a"}, "finish_reason": reason}]}
    with served(LlmServer(rule=lambda _: Answer(200, answer))) as one:
        assert one.ask(request())[0].finish == "stop"


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_a_reply_that_the_server_broke_off_is_asked_for_again(reason: str) -> None:
    broken = {"choices": [{"message": {"content": "half"}, "finish_reason": reason}]}
    with served(LlmServer(rule=failing_first(1, Answer(200, broken)))) as one:
        (reply,) = one.ask(request())
    assert (reply.finish, reply.tries) == ("stop", 2)


@pytest.mark.parametrize("wrong", [10**30, 10**9 + 1, -5, "7", True, None, float("nan"), float("inf"), 1e300, 0.5, [3]])
def test_numbers_of_tokens_that_cannot_be_are_none(tmp_path: Path, wrong: Any) -> None:
    usage = {"prompt_tokens": wrong, "completion_tokens": wrong, "prompt_tokens_details": {"cached_tokens": wrong}}
    answer = {"choices": [{"message": {"content": "a"}}], "usage": usage}
    server = LlmServer(rule=lambda _: Answer(200, answer))
    with served(server) as one, Llm(one.engine, ReplyCache(tmp_path / "r.sqlite")) as llm:
        assert (llm.ask([request()])[0].usage, llm.spent.uncounted) == (Usage(), 1)


def test_a_whole_number_written_as_a_float_counts_and_no_more_is_cached_than_was_read() -> None:
    usage = {"prompt_tokens": 12.0, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 99}}
    answer = {"choices": [{"message": {"content": "a"}}], "usage": usage}
    with served(LlmServer(rule=lambda _: Answer(200, answer))) as one:
        assert one.ask(request())[0].usage == Usage(12, 12, 3)
