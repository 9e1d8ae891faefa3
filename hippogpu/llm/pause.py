"""Holding all requests back while a server wants to be left alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]
Chance = Callable[[], float]
_LONGEST_SPREAD_S = 5.0


class Pause:
    """A time before which nothing is sent. After it the waiting requests leave spread over as long again (5 s at most).

    Were they to leave together, a server that takes ten a second would turn nearly all of them away again; spread
    out, the first that is turned away holds the others back before they have left.
    """

    def __init__(self, clock: Clock, sleep: Sleep, chance: Chance) -> None:
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self._until = float("-inf")
        self._spread_s = 0.0

    def hold(self, seconds: float) -> None:
        """Nothing is sent for so many seconds from now; a longer pause that is on stays."""
        until = self._clock() + seconds
        if until > self._until:
            self._until, self._spread_s = until, min(seconds, _LONGEST_SPREAD_S)

    async def passed(self) -> None:
        """Returns when there is no pause."""
        while (left := self._until - self._clock()) > 0:
            await self._sleep(left + self._spread_s * self._chance())
