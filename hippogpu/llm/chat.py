"""The OpenAI chat protocol: the body of a request, what an answer says, and what a server does not take."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from hippogpu.llm.retry import BUSY
from hippogpu.llm.values import Finish, Request
from hippogpu.llm.words import masked, shortened
from hippogpu.text import readable
from hippogpu.types import Usage

# Above this a server's count of tokens is none; its sums would also outgrow what the reply cache stores.
_MOST_TOKENS = 10**9
_SCHEMA_WORDS = ("response_format", "json_schema", "json_object", "schema", "guided", "grammar")
_CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_BROKEN_OFF = frozenset({"error", "abort"})
_REFUSAL_WORDS = ("unsupported", "not support", "instead", "not permitted", "unrecognized", "unknown", "unexpected")


class Dialect(NamedTuple):
    """How a server wants to be asked.

    schema      how it is told the form of a reply: by the JSON schema, that it be JSON, or not at all
    token_field its name for the most tokens of a reply
    temperature whether it takes one
    seed        whether it takes one
    """

    schema: Literal["json_schema", "json_object", "none"] = "json_schema"
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    seed: bool = True


class Answered(NamedTuple):
    """What a model wrote."""

    text: str
    finish: Finish
    usage: Usage


class Problem(NamedTuple):
    """Why an answer is none.

    reason : what it is, for people
    status : the HTTP status; 0 when there was none
    again  : whether the same request may be answered later
    words  : what the server says of it, in full and as it came, with whatever secret it repeats
    detail : the beginning of the answer, for `adapted`
    """

    reason: str
    status: int = 0
    again: bool = False
    words: str = ""
    detail: str = ""

    def told(self, secrets: Iterable[str] = ()) -> str:
        """The reason with the server's words, masked and shortened."""
        words = shortened(masked(self.words, secrets))
        return f"{self.reason}: {words}" if words else self.reason


def body_of(request: Request, model: str, dialect: Dialect) -> bytes:
    """The JSON body of a request. Halves of characters (lone surrogates) go out as U+FFFD.

    A seed is sent where it can matter: with a temperature above 0, or when it is not 0.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        dialect.token_field: request.max_tokens,
    }
    if dialect.temperature:
        body["temperature"] = request.temperature
    if dialect.seed and (request.temperature > 0 or request.seed):
        body["seed"] = request.seed
    if request.schema is not None and dialect.schema == "json_schema":
        form = {"name": "reply", "schema": request.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    elif request.schema is not None and dialect.schema == "json_object":
        body["response_format"] = {"type": "json_object"}
    return readable(json.dumps(body, ensure_ascii=False)).encode()


def largest_body(request: Request) -> int:
    """Bytes after which an answer is no longer read: 64 a token of the reply, and 1 MiB."""
    return 64 * request.max_tokens + 2**20


def read_answer(status: int, raw: bytes) -> Answered | Problem:
    """What the bytes of an answer say."""
    if not 200 <= status < 300:
        return _refusal(status, raw)
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        return Problem("an answer that is no JSON", status, True, raw.decode("utf-8", "replace"))
    if not isinstance(answer, dict):
        return Problem("an answer that is no object", status, words=str(answer))
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return _without_choices(answer, raw)
    return _choice(choices[0], _usage(answer.get("usage")))


def adapted(dialect: Dialect, request: Request, problem: Problem) -> tuple[Dialect, str] | None:
    """The dialect to try next, and a note that says so, when a server refused a part of the protocol.

    None when the refusal (status 400 or 422) is about something else, or there is nothing left to leave out.
    """
    if problem.status not in {400, 422}:
        return None
    words = problem.detail.lower()
    refused = any(word in words for word in _REFUSAL_WORDS)
    if refused and dialect.token_field == "max_tokens" and "max_completion_tokens" in words:
        return dialect._replace(token_field="max_completion_tokens"), "max_tokens; max_completion_tokens is sent"
    if refused and dialect.temperature and "temperature" in words:
        return dialect._replace(temperature=False), "a temperature; the model's own is used"
    if refused and dialect.seed and "seed" in words:
        return dialect._replace(seed=False), "a seed; none is sent"
    if request.schema is None or dialect.schema == "none" or not any(word in words for word in _SCHEMA_WORDS):
        return None
    if dialect.schema == "json_schema":
        return dialect._replace(schema="json_object"), "a JSON schema; replies are only asked to be JSON"
    return dialect._replace(schema="none"), "to be asked for JSON; replies are free text"


def _without_choices(answer: dict[str, Any], raw: bytes) -> Problem:
    """Some routers put the error of the server behind them into an answer of status 200."""
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and code >= 400:
        return _refusal(code, raw)
    return Problem("an answer without choices", words=_message(raw))


def _refusal(status: int, raw: bytes) -> Problem:
    detail = raw[:4096].decode("utf-8", "replace")
    return Problem(f"status {status}", status, status in BUSY, _message(raw), detail)


def _choice(choice: dict[str, Any], usage: Usage) -> Answered | Problem:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    reason = str(choice.get("finish_reason")).lower()
    finish: Finish = "length" if reason in _CUT_SHORT else "stop"
    if reason == "content_filter":
        return Problem("the server's content filter stopped the reply")
    if reason in _BROKEN_OFF:
        return Problem(f"the server ended the reply with '{reason}'", again=True)
    text = _text(message.get("content"))
    if text is None and finish == "length":
        return Answered("", finish, usage)
    if text is None:
        refusal = message.get("refusal")
        return Problem("the model refused", words=str(refusal)) if refusal else Problem("a reply without text")
    return Answered(text, finish, usage)


def _text(content: Any) -> str | None:
    """The text of a message, which is text or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    prompt = _count(usage.get("prompt_tokens"))
    return Usage(prompt, min(cached, prompt), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int:
    """A number of tokens as a server tells it; 0 for what cannot be one."""
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and 0 < value <= _MOST_TOKENS else 0


def _message(raw: bytes) -> str:
    """The server's own words."""
    text = raw.decode("utf-8", "replace")
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        return text
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    words = (error.get("message") or error.get("detail")) if isinstance(error, dict) else error
    return str(words or text)
