"""Faults that every request would meet are told from those of one request."""

from __future__ import annotations

import pytest
from llm_asking import request, served

from hippogpu.llm import Failure
from hippogpu.testing.llm_answers import Answer, error
from hippogpu.testing.llm_server import LlmServer

NO_MODEL = [
    "model 'm' does not exist",
    "The model `m` does not exist or you do not have access to it.",
    "Model Not Exist",
    "Invalid model: m",
    "m is not a valid model ID",
    "Unknown model 'm'",
    "No such model.",
    "The model m is not available",
]
NOT_OF_THE_MODEL = [
    "This model's maximum context length is 2048 tokens.",
    "This model does not support json_schema.",
    "Invalid model output: no JSON",
    "The model could not answer.",
    "x" * 400 + " model 'm' does not exist",
]


def failure(answer: Answer) -> Failure:
    with served(LlmServer(rule=lambda _: answer), attempts=1, key_variable="MY_KEY") as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    return reply.failure


@pytest.mark.parametrize(
    ("status", "named"),
    [
        *((status, "redirects are not followed") for status in (301, 302, 303, 307, 308, 405, 406, 410, 415, 501)),
        (402, "credit of the account whose key is in MY_KEY"),
        (403, "MY_KEY"),
        (404, "model 'm'"),
        (407, "proxy"),
    ],
)
def test_a_fault_of_the_access_concerns_every_request_and_says_what_to_check(status: int, named: str) -> None:
    found = failure(Answer(status, error("No.")))
    assert (found.unreachable, named in found.reason) == (True, True)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("words", NO_MODEL)
def test_a_bad_request_for_an_unknown_model_concerns_every_request(status: int, words: str) -> None:
    found = failure(Answer(status, error(words)))
    assert (found.unreachable, found.reason.endswith("and the model 'm'")) == (True, True)


def test_the_code_of_an_unknown_model_is_enough() -> None:
    assert failure(Answer(400, {"error": {"message": "no", "code": "model_not_found"}})).unreachable


@pytest.mark.parametrize("words", NOT_OF_THE_MODEL)
def test_a_bad_request_about_something_else_is_the_requests_own(words: str) -> None:
    assert not failure(Answer(400, error(words))).unreachable


@pytest.mark.parametrize("status", [400, 413, 422, 451])
def test_other_refusals_are_the_requests_own(status: int) -> None:
    assert not failure(Answer(status, error("too long"))).unreachable


def test_a_rate_limit_for_want_of_credit_is_asked_again_and_says_so() -> None:
    with served(LlmServer(rule=lambda _: Answer(429, {"error": {"code": "insufficient_quota"}}))) as one:
        (reply,) = one.ask(request())
    assert reply.failure is not None
    assert (reply.tries, reply.failure.unreachable, "credit" in reply.failure.reason) == (3, True, True)


@pytest.mark.parametrize("status", [402, 405])
def test_an_error_inside_an_answer_of_status_200_concerns_every_request_too(status: int) -> None:
    assert failure(Answer(200, {"error": {"code": status, "message": "no"}})).unreachable


@pytest.mark.parametrize("status", [404, 400, 402, 500, 413])
@pytest.mark.parametrize("words", ["No.", "No", "It ends…", "And so on..."])
def test_a_reason_ends_without_a_full_stop_so_that_a_sentence_can_go_on(status: int, words: str) -> None:
    reason = failure(Answer(status, error(words))).reason.replace("...", "…")
    assert (reason.endswith("."), ".." in reason) == (False, False)
