"""What the chat server for tests sends: good answers in the protocol's form, refusals and broken answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from hippogpu.testing.llm_faults import Fault

Refusal = Literal["json_schema", "json_object", "max_tokens", "temperature", "seed"]
CHARACTERS_A_TOKEN = 4
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_STATUS_OF: Mapping[Fault, int] = {"busy": 429, "broken": 500, "unavailable": 503}


class Asked(NamedTuple):
    """A chat request that came: a digest of its body, which try of it this is (from 1), headers in lower case, body."""

    digest: str
    number: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Answer(NamedTuple):
    """What goes back: a JSON value, or text as it stands."""

    status: int
    body: Any
    headers: Mapping[str, str] = MappingProxyType({})


def completion(asked: Asked, text: str, cached: int) -> dict[str, Any]:
    """A good answer; its text ends at the request's max_tokens, four characters a token.

    cached : tokens of the prompt that the server has seen before
    """
    most = asked.body.get("max_completion_tokens", asked.body.get("max_tokens", 1 << 30)) * CHARACTERS_A_TOKEN
    prompt = sum(len(str(message.get("content", ""))) for message in asked.body["messages"]) // CHARACTERS_A_TOKEN + 1
    usage = {"prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": cached}}
    return _completion(text[:most], "length" if len(text) > most else "stop", usage)


def faulty(fault: Fault, good: dict[str, Any], retry_after: str) -> Answer:
    """What a fault makes of a good answer, for those faults that end in a whole HTTP answer."""
    if fault in _STATUS_OF:
        headers = {"Retry-After": retry_after} if fault == "busy" and retry_after else {}
        return Answer(_STATUS_OF[fault], error(f"The server is {fault}."), headers)
    if fault == "garbled":
        return Answer(200, "<html><body>502 Bad Gateway</body></html>")
    text = good["choices"][0]["message"]["content"]
    if fault == "prose":
        return Answer(200, _completion("Sure! Here is what I found in it.", "stop", good["usage"]))
    if fault == "length":
        return Answer(200, _completion(text[: len(text) // 2], "length", good["usage"]))
    if fault == "empty":
        return Answer(200, good | {"choices": []})
    whole = json.dumps(good)
    return Answer(200, whole[: len(whole) // 2])


def refusal(asked: Asked, refuses: frozenset[Refusal], key: str) -> Answer | None:
    """Why a request is not answered: a wrong key, or a parameter that is refused; None when it is."""
    if key and asked.headers.get("authorization") != f"Bearer {key}":
        sent = asked.headers.get("authorization", "none")
        return Answer(401, error(f"Incorrect API key provided: {sent}."))
    form = (asked.body.get("response_format") or {}).get("type")
    if form in refuses:
        return Answer(400, error(f"'response_format' of type '{form}' is not supported with this model."))
    if "max_tokens" in refuses and "max_tokens" in asked.body:
        return Answer(400, error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."))
    for name in ("temperature", "seed"):
        if name in refuses and name in asked.body:
            return Answer(400, error(f"Unsupported value: '{name}' does not support {asked.body[name]}."))
    return None


def error(message: str) -> dict[str, Any]:
    """The body of an answer that is an error."""
    return {"error": {"message": message, "type": "test", "code": None}}


def encoded(answer: Answer) -> bytes:
    """The bytes of an HTTP answer."""
    body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    payload = body.encode("utf-8", "surrogatepass")
    headers = {"Content-Type": "application/json", "Content-Length": str(len(payload)), **answer.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Status')}\r\n{head}\r\n".encode() + payload


def _completion(text: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]:
    tokens = -(-len(text) // CHARACTERS_A_TOKEN)
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage | {"completion_tokens": tokens, "total_tokens": usage["prompt_tokens"] + tokens},
    }
