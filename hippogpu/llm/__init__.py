"""The one seam to language models: chat requests in, replies out, as they are finished."""

from __future__ import annotations

from hippogpu.llm.engine import Engine, NextRequest
from hippogpu.llm.values import Failure, Finish, Message, Reply, Request, Role
from hippogpu.types import Usage

__all__ = ["Engine", "Failure", "Finish", "Message", "NextRequest", "Reply", "Request", "Role", "Usage"]
