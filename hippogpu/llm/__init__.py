"""The one seam to language models: chat requests in, replies out, as they are finished."""

from __future__ import annotations

from hippogpu.llm.cache import ReplyCache
from hippogpu.llm.client import Llm, Spent
from hippogpu.llm.engine import Engine, NextRequest
from hippogpu.llm.opening import open_engine, open_llm
from hippogpu.llm.prices import Prices, cost, prices_of
from hippogpu.llm.tokens import TokenCounter, token_counter
from hippogpu.llm.values import Failure, Finish, Message, Reply, Request, Role
from hippogpu.types import Usage

__all__ = [
    "Engine",
    "Failure",
    "Finish",
    "Llm",
    "Message",
    "NextRequest",
    "Prices",
    "Reply",
    "ReplyCache",
    "Request",
    "Role",
    "Spent",
    "TokenCounter",
    "Usage",
    "cost",
    "open_engine",
    "open_llm",
    "prices_of",
    "token_counter",
]
