"""A fake language model for tests: it says what a function says, and keeps what it was asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from hippogpu.llm import Failure, NextRequest, Reply, Request
from hippogpu.types import Usage

Answer = str | Failure | Reply


class ScriptedEngine:
    """An engine that answers from a function of the request: a text, a failure, or a whole reply.

    Up to in_flight requests are held; the oldest is answered first (or the newest, with newest_first).
    asked : the requests in the order they came
    events : ("asked", request) and ("answered", request) in the order they happened
    """

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        *,
        model: str = "scripted",
        in_flight: int = 4,
        newest_first: bool = False,
    ) -> None:
        self.model, self.endpoint, self.in_flight = model, "test", in_flight
        self._answer, self._newest_first = answer, newest_first
        self.asked: list[Request] = []
        self.events: list[tuple[str, Request]] = []

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        held: deque[Request] = deque()
        while True:
            while len(held) < self.in_flight and (request := next_request()) is not None:
                self.asked.append(request)
                self.events.append(("asked", request))
                held.append(request)
            if not held:
                return
            request = held.pop() if self._newest_first else held.popleft()
            self.events.append(("answered", request))
            yield _reply(request, self._answer(request))

    def close(self) -> None:
        """Nothing is held open."""


def _reply(request: Request, answer: Answer) -> Reply:
    """The answer as a reply; a text counts one token a word."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, Failure):
        return Reply(request, "", "failed", failure=answer)
    words = sum(len(message.content.split()) for message in request.messages)
    return Reply(request, answer, "stop", Usage(words, 0, len(answer.split())))
