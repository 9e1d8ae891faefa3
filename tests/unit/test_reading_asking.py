"""Many questions to a language model at once: what is asked again, what a failure costs, what is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hippogpu.config import AnswerConfig
from hippogpu.llm import Failure, Llm, Message, Reply, ReplyCache, Request
from hippogpu.reading.asking import GIVE_UP_AFTER, Ask, Read, Told, ask_each
from hippogpu.testing.engines import Answer, ScriptedEngine
from hippogpu.types import Usage

DOWN = Failure("connection refused", unreachable=True)
CONFIG = AnswerConfig(max_tokens=10, largest_tokens=40)


def number_in(text: str) -> Read[int]:
    """A reply that is a number; '7…' was cut."""
    digits = text.removesuffix("…")
    if not digits.isdecimal():
        return Read(None, "no number in the reply")
    return Read(int(digits), truncated=text.endswith("…"))


def asking(*questions: str) -> list[Ask[int]]:
    return [Ask((Message("user", question),), number_in) for question in questions]


def told(
    answer: Callable[[Request], Answer], *questions: str, in_flight: int = 4, config: AnswerConfig = CONFIG
) -> tuple[list[Told[int]], ScriptedEngine]:
    engine = ScriptedEngine(answer, in_flight=in_flight, newest_first=True)
    return ask_each(Llm(engine), asking(*questions), config=config), engine


def question(request: Request) -> str:
    return request.messages[-1].content


def test_values_come_in_the_order_of_the_questions_and_all_are_under_way_together() -> None:
    values, engine = told(question, "1", "2", "3", "4")
    assert [one.value for one in values] == [1, 2, 3, 4]
    assert [what for what, _ in engine.events[:4]] == ["asked"] * 4


def test_nothing_asked_is_nothing_told() -> None:
    assert told(question)[0] == []


def test_an_unreadable_reply_is_asked_for_again_at_a_temperature() -> None:
    (one,), engine = told(lambda request: "7" if request.seed else "seven", "q")
    assert (one.value, one.failure, one.cost.requests) == (7, None, 2)
    assert [(request.temperature, request.seed) for request in engine.asked] == [(0.0, 0), (0.3, 1)]


def test_an_unreadable_reply_is_forgotten(tmp_path: Path) -> None:
    with Llm(ScriptedEngine(lambda request: "seven"), ReplyCache(tmp_path / "r.sqlite")) as llm:
        ask_each(llm, asking("q"), config=CONFIG)
        again = ask_each(llm, asking("q"), config=CONFIG)
    assert again[0].cost.remembered == 0


def test_a_remembered_reply_costs_no_tokens(tmp_path: Path) -> None:
    with Llm(ScriptedEngine(lambda request: "7"), ReplyCache(tmp_path / "r.sqlite")) as llm:
        first, again = (ask_each(llm, asking("q"), config=CONFIG)[0].cost for _ in range(2))
    assert (first.usage.completion, first.remembered) == (1, 0)
    assert (again.usage.completion, again.remembered, again.requests) == (0, 1, 1)


def test_replies_that_are_never_readable_fail_with_their_words() -> None:
    (one,), engine = told(lambda request: "seven", "q")
    assert (one.value, one.failure, one.outage) == (None, "no number in the reply ('seven') (3 tries)", False)
    assert len(engine.asked) == 3


def test_a_cut_reply_is_asked_for_with_more_tokens_and_then_taken_as_it_is() -> None:
    (one,), engine = told(lambda request: Reply(request, "7", "length", Usage(1, 0, request.max_tokens)), "q")
    assert [request.max_tokens for request in engine.asked] == [10, 20, 40]
    assert (one.value, one.cut, one.cost.usage.completion) == (7, True, 70)


def test_a_cut_reply_without_anything_whole_fails() -> None:
    (one,), _ = told(lambda request: Reply(request, "{", "length"), "q")
    assert one.failure == "the reply does not come to its end in 40 tokens"


def test_a_request_that_fails_costs_its_own_question() -> None:
    values, _ = told(lambda request: Failure("refused") if question(request) == "2" else question(request), *"123")
    assert [one.value for one in values] == [1, None, 3]
    assert (values[1].failure, values[1].outage) == ("refused (3 tries)", False)


def test_a_question_that_finds_no_server_is_not_asked_again() -> None:
    values, engine = told(lambda request: DOWN if question(request) == "5" else "1", *map(str, range(10)))
    assert [one.outage for one in values] == [number == 5 for number in range(10)]
    assert len(engine.asked) == 10


def test_a_server_that_is_gone_is_given_up_on() -> None:
    values, engine = told(lambda request: DOWN, *map(str, range(100)), in_flight=1)
    assert len(engine.asked) == GIVE_UP_AFTER
    assert {one.outage for one in values} == {True}
    assert values[-1].failure == f"not asked, because {GIVE_UP_AFTER} in a row found no server: connection refused"


def test_progress_tells_each_question_once() -> None:
    seen: list[int] = []
    ask_each(Llm(ScriptedEngine(question)), asking("1", "x", "3"), config=CONFIG, on_told=seen.append)
    assert seen == [1, 2, 3]
