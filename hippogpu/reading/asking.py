"""Many questions put to a language model at once, each until its reply can be read or its tries are used up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from hippogpu.config import AnswerConfig
from hippogpu.llm import Failure, Llm, Message, Reply, Request, Usage
from hippogpu.openie.asking import REPLY_CHARACTERS, RETRY_TEMPERATURE
from hippogpu.types import NO_TOKENS

T = TypeVar("T")
LISTED_FAILURES = 1000
# So many questions in a row that found no server: the rest of the call is not asked, each would only wait its time out.
GIVE_UP_AFTER = 20


class Read(NamedTuple, Generic[T]):
    """What a reply says: a value, or why it has none. truncated: the reply ended before its end."""

    value: T | None
    fault: str | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One thing to ask: the chat, the JSON schema of the reply (None: free text), and how the reply is read."""

    messages: tuple[Message, ...]
    read: Callable[[str], Read[T]]
    schema: Mapping[str, Any] | None = None


class Cost(NamedTuple):
    """Replies that were had (remembered ones among them), tokens of those that were not, and milliseconds in flight."""

    requests: int = 0
    remembered: int = 0
    usage: Usage = NO_TOKENS
    ms: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """Both together, one after the other."""
        return Cost(
            self.requests + other.requests,
            self.remembered + other.remembered,
            self.usage.plus(other.usage),
            self.ms + other.ms,
        )


NOTHING = Cost()


class Told(NamedTuple, Generic[T]):
    """What came of one thing that was asked.

    value   None where nothing could be had; then failure says why
    cut     the value is what was whole of a reply that never came to its end
    outage  no server could be reached: the question is not to blame
    """

    value: T | None
    failure: str | None = None
    cut: bool = False
    outage: bool = False
    cost: Cost = NOTHING


def with_failure(
    listed: tuple[tuple[str, str], ...], question: str, failure: str | None
) -> tuple[tuple[str, str], ...]:
    """Questions and reasons with one more, where it failed; the first 1,000."""
    return listed if failure is None or len(listed) >= LISTED_FAILURES else (*listed, (question, failure))


def asker_name(llm: Llm, version: str, config: AnswerConfig, temperature: float) -> str:
    """The model, the version of the prompts, and how it is asked: what decides its replies but for what is asked."""
    tokens = f"{config.max_tokens} to {config.largest_tokens} tokens"
    return f"llm-{llm.model}-{version} (temperature {temperature:g}, {config.tries} tries, {tokens})"


def ask_each(
    llm: Llm,
    asks: Sequence[Ask[T]],
    *,
    config: AnswerConfig = AnswerConfig(),  # noqa: B008  (frozen)
    temperature: float = 0.0,
    on_told: Callable[[int], None] | None = None,
) -> list[Told[T]]:
    """What came of each, in their order; as many are under way at once as the engine holds.

    A reply that cannot be read is forgotten and asked for again at a temperature, `tries` times in all. One that was
    cut is asked for with twice the tokens up to `largest_tokens`; then what was whole of it is taken. A failure costs
    its own question; when 20 in a row find no server the questions that are left fail without being asked.
    on_told : called with how many are done, after each
    """
    run = _Run(llm, asks, config, temperature)
    for reply in llm.stream(run.next_request):
        done = run.take(reply)
        if done and on_told is not None:
            on_told(run.done)
    return run.told()


class _Run(Generic[T]):
    """What is asked in one call: cases with a request to send, and those not begun."""

    def __init__(self, llm: Llm, asks: Sequence[Ask[T]], config: AnswerConfig, temperature: float) -> None:
        self._cases = [_Case(llm, ask, config, temperature) for ask in asks]
        self._fresh = deque(self._cases)
        self._ready: deque[_Case[T]] = deque()
        self._outages = 0
        self.done = 0

    def next_request(self) -> Request | None:
        if self._ready:
            return self._ready.popleft().request()
        if not self._fresh or self._outages >= GIVE_UP_AFTER:
            return None
        return self._fresh.popleft().request()

    def take(self, reply: Reply) -> bool:
        """Whether the reply finishes its question."""
        case: _Case[T] = reply.request.tag
        case.take(reply)
        if reply.failure is None and not reply.remembered:
            self._outages = 0
        if case.told is None:
            self._ready.append(case)
            return False
        self._outages += case.told.outage
        self.done += 1
        return True

    def told(self) -> list[Told[T]]:
        """The outcome of each; those not begun have the last outage for a failure."""
        last = next((case.told.failure for case in self._cases if case.told and case.told.outage), "no server")
        reason = f"not asked, because {GIVE_UP_AFTER} in a row found no server: {last}"
        return [case.told or Told(None, reason, outage=True) for case in self._cases]


class _Case(Generic[T]):
    """One thing on its way to an outcome."""

    def __init__(self, llm: Llm, ask: Ask[T], config: AnswerConfig, temperature: float) -> None:
        self._llm, self._ask, self._config, self._temperature = llm, ask, config, temperature
        self._budget, self._unusable = config.max_tokens, 0
        self._partial: T | None = None
        self._cost, self._began = NOTHING, 0.0
        self.told: Told[T] | None = None

    def request(self) -> Request:
        self._began = self._began or time.perf_counter()
        # A greedy model that wrote something unusable writes it again.
        temperature = max(self._temperature, RETRY_TEMPERATURE) if self._unusable else self._temperature
        return Request(self, self._ask.messages, self._budget, self._ask.schema, temperature, seed=self._unusable)

    def take(self, reply: Reply) -> None:
        """Sets `told` when there is nothing more to ask."""
        usage = NO_TOKENS if reply.remembered else reply.usage
        self._cost = self._cost.plus(Cost(reply.failure is None, reply.remembered, usage))
        if reply.failure is not None:
            self._fail(reply.failure)
            return
        read = self._ask.read(reply.text)
        if reply.finish == "length" or read.truncated:
            self._take_cut(read)
        elif read.value is not None:
            self._end(Told(read.value))
        else:
            self._llm.reject(reply)
            excerpt = " ".join(reply.text[:REPLY_CHARACTERS].split())
            self._count(f"{read.fault} ('{excerpt}')" if excerpt else str(read.fault))

    def _fail(self, failure: Failure) -> None:
        if failure.unreachable:
            self._end(Told(None, failure.reason, outage=True))
        else:
            self._count(failure.reason)

    def _count(self, reason: str) -> None:
        """One more try that came to nothing; the last one ends it."""
        self._unusable += 1
        if self._unusable >= self._config.tries:
            self._settle(f"{reason} ({self._unusable} tries)" if self._unusable > 1 else reason)

    def _take_cut(self, read: Read[T]) -> None:
        self._partial = self._partial if read.value is None else read.value
        if self._budget < self._config.largest_tokens:
            self._budget = min(2 * self._budget, self._config.largest_tokens)
        else:
            self._settle(f"the reply does not come to its end in {self._budget} tokens")

    def _settle(self, reason: str) -> None:
        """What there is when the whole reply cannot be had."""
        self._end(Told(None, reason) if self._partial is None else Told(self._partial, cut=True))

    def _end(self, told: Told[T]) -> None:
        ms = 1000 * (time.perf_counter() - self._began)
        self.told = told._replace(cost=self._cost._replace(ms=ms))
