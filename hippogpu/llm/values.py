"""What is asked of a language model, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hippogpu.types import NO_TOKENS, Usage

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "failed"]


class Message(NamedTuple):
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One chat request.

    tag         the caller's own, given back with the reply; no part of what is asked
    messages    the chat so far
    max_tokens  most tokens of the reply
    schema      JSON schema that the reply must fit; None for free text
    temperature 0 is greedy
    seed        tells requests apart that would else be the same; engines that sample use it
    """

    tag: Any
    messages: tuple[Message, ...]
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.0
    seed: int = 0


class Failure(NamedTuple):
    """Why a request has no reply.

    unreachable : the server is at fault (no connection, busy or broken to the last try), not the request
    """

    reason: str
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request.

    text       what the model wrote; cut short where finish is "length"
    finish     "stop", "length" (max_tokens reached), or "failed": then failure says why and text is empty
    tries      how often the request was sent; 0 for a remembered reply
    remembered it came from the reply cache and cost nothing
    """

    request: Request
    text: str
    finish: Finish
    usage: Usage = NO_TOKENS
    failure: Failure | None = None
    tries: int = 1
    remembered: bool = False
