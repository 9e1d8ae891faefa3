"""Which fault befalls which try of which request: fixed by a seed, so that a run can be repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, get_args

Fault = Literal[
    "busy", "broken", "unavailable", "dropped", "cut", "truncated", "garbled", "prose", "whitespace", "length", "empty"
]
FAULTS: tuple[Fault, ...] = get_args(Fault)


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, and how often.

    shares         share of tries, in [0, 1], that meet each fault; they must not add up to more than 1
    for_ever       share of requests, by their content, whose every try meets the fault for_ever_as
    for_ever_as    which fault that is
    delay_s        seconds before each answer
    delay_spread_s up to so many seconds more, by content and try
    retry_after    the Retry-After header of "busy"; "" leaves it out
    seed           another seed lets other requests fail

    busy         status 429
    broken       status 500
    unavailable  status 503
    dropped      the connection ends before an answer
    cut          the connection ends in the middle of the answer's body
    truncated    a whole HTTP answer whose JSON stops half-way
    garbled      a whole HTTP answer whose body is HTML
    prose        a good answer whose text is a sentence, not JSON
    whitespace   blanks, until the client leaves
    length       finish_reason "length", half of the text
    empty        a good answer without choices
    """

    shares: Mapping[Fault, float] = field(default_factory=dict)
    for_ever: float = 0.0
    for_ever_as: Fault = "broken"
    delay_s: float = 0.0
    delay_spread_s: float = 0.0
    retry_after: str = "0"
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = [name for name in (*self.shares, self.for_ever_as) if name not in FAULTS]
        if unknown:
            raise ValueError(f"There is no fault {unknown[0]!r}. The faults are: {', '.join(FAULTS)}.")
        if not 0.0 <= sum(self.shares.values()) <= 1.0 or not 0.0 <= self.for_ever <= 1.0:
            raise ValueError(f"Shares lie in [0, 1], all together too. Got {dict(self.shares)} and {self.for_ever}.")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """The faults that a JSON object describes."""
        return cls(**values)

    def as_mapping(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def befalling(self, digest: str, number: int) -> Fault | None:
        """The fault of try `number` (from 1) of the request with this digest; None for a good answer."""
        if self.for_ever and self.chance(digest, "for ever") < self.for_ever:
            return self.for_ever_as
        left = self.chance(digest, f"try {number}") if self.shares else 1.0
        for fault, share in self.shares.items():
            left -= share
            if left < 0:
                return fault
        return None

    def delay(self, digest: str, number: int) -> float:
        """Seconds before the answer."""
        if not self.delay_spread_s:
            return self.delay_s
        return self.delay_s + self.delay_spread_s * self.chance(digest, f"delay {number}")

    def chance(self, digest: str, what: str) -> float:
        """A number in [0, 1) fixed by the seed, the request and what it is for."""
        drawn = hashlib.blake2b(f"{self.seed} {what} {digest}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "big") / 2.0**64
