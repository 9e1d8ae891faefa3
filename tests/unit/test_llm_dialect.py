"""What a server does not take is left out, once for all requests, and said."""

from __future__ import annotations

from typing import Any

import pytest
from llm_asking import SCHEMA, request, served

from hippogpu.llm.chat import Dialect, Problem, adapted
from hippogpu.testing.llm_answers import Answer, Refusal
from hippogpu.testing.llm_server import LlmServer


def refusing(*parameters: Refusal) -> LlmServer:
    return LlmServer(refuses=frozenset(parameters))


def sent_by(server: LlmServer, count: int = 3, **settings: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The bodies that reached the server, and the engine's notes."""
    kept: list[dict[str, Any]] = []
    with served(server, in_flight=1, **settings) as one:
        model = server.model
        server.model = lambda body: kept.append(dict(body)) or model(body)  # type: ignore[func-returns-value]
        replies = one.ask(*(request(f"Passage {n}", schema=SCHEMA, temperature=0.5) for n in range(count)))
        assert {reply.finish for reply in replies} == {"stop"}
        return kept, one.engine.notes


def test_a_server_without_schemas_is_asked_for_json() -> None:
    bodies, notes = sent_by(refusing("json_schema"))
    assert [body["response_format"] for body in bodies] == [{"type": "json_object"}] * 3
    assert len(notes) == 1
    assert "a JSON schema" in notes[0]


def test_a_server_without_json_either_is_asked_for_text() -> None:
    bodies, notes = sent_by(refusing("json_schema", "json_object"))
    assert [body.get("response_format") for body in bodies] == [None] * 3
    assert ["a JSON schema" in notes[0], "free text" in notes[1]] == [True, True]


def test_a_server_that_wants_max_completion_tokens_gets_it() -> None:
    bodies, notes = sent_by(refusing("max_tokens"))
    assert [(body.get("max_tokens"), body["max_completion_tokens"]) for body in bodies] == [(None, 200)] * 3
    assert len(notes) == 1


@pytest.mark.parametrize("name", ["temperature", "seed"])
def test_a_parameter_that_a_model_does_not_take_is_left_out(name: Refusal) -> None:
    bodies, notes = sent_by(refusing(name))
    assert [name in body for body in bodies] == [False] * 3
    assert name in notes[0]


def test_a_refusal_is_found_out_once_even_by_many_at_a_time() -> None:
    with served(refusing("json_schema", "max_tokens"), in_flight=8) as one:
        replies = one.ask(*(request(f"Passage {n}", schema=SCHEMA) for n in range(20)))
        assert ({reply.finish for reply in replies}, len(one.engine.notes)) == ({"stop"}, 2)
        one.ask(*(request(f"Later {n}", schema=SCHEMA) for n in range(20)))
        assert max(one.server.counts.asked[digest] for digest, text in one.server.texts.items() if "Later" in text) == 1


def test_a_refusal_uses_up_no_attempt_and_is_a_try() -> None:
    with served(refusing("json_schema", "json_object", "max_tokens"), attempts=1) as one:
        (reply,) = one.ask(request(schema=SCHEMA))
    assert (reply.finish, reply.tries) == ("stop", 4)


def test_notes_do_not_hold_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPPOGPU_LLM_API_KEY", "sk-secret")
    answer = Answer(400, {"error": {"message": "json_schema is not for sk-secret"}})
    server = LlmServer(rule=lambda asked: answer if "response_format" in asked.body else None)
    with served(server) as one:
        one.ask(request(schema=SCHEMA))
        assert len(one.engine.notes) == 2
        assert "sk-secret" not in " ".join(one.engine.notes)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 2048 tokens, but you asked for 4096 max_tokens.",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096.",
        "the prompt is empty",
    ],
)
def test_a_refusal_about_something_else_changes_nothing(words: str) -> None:
    assert adapted(Dialect(), request(schema=SCHEMA), Problem(words, 400, detail=words)) is None


def test_a_request_without_a_schema_is_not_refused_for_its_schema() -> None:
    assert adapted(Dialect(), request(), Problem("", 400, detail="json_schema is not supported")) is None


def test_a_fault_of_the_server_says_nothing_of_the_protocol() -> None:
    assert adapted(Dialect(), request(schema=SCHEMA), Problem("", 500, detail="json_schema is not supported")) is None
