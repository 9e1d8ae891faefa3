"""The seam between requests and whatever runs a language model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

from hippogpu.llm.values import Reply, Request

NextRequest = Callable[[], Request | None]
Keep = Callable[[Reply], object]


class Engine(Protocol):
    """Anything that answers chat requests, many at a time.

    model     the name of the model
    endpoint  where it runs: the base address of a server, or "vllm" for this process; part of what a reply is known by
    in_flight how many requests it holds at once
    """

    @property
    def model(self) -> str: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def in_flight(self) -> int: ...

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        """One Reply a request, in any order, each as soon as it is finished.

        next_request is called whenever there is room for one more, in the caller's thread; None means "none for now".
        The stream ends when it gives None while nothing is in flight. So a caller may put in follow-up requests
        between two replies and never has to wait for a batch. A request that fails gives a Reply with a failure.
        Closing the generator gives up what is in flight.
        """
        ...

    def close(self) -> None:
        """Lets connections or the model go; a second close does nothing."""
        ...


@runtime_checkable
class KeepingEngine(Engine, Protocol):
    """An engine whose replies can be kept the moment they are finished, before anyone has taken them."""

    def stream_keeping(self, next_request: NextRequest, keep: Keep) -> Iterator[Reply]:
        """As stream; each reply is handed to keep first, in whatever thread it is finished.

        What keep raises comes out of the stream in the reply's place.
        """
        ...
