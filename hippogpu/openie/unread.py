"""What a damaged reply has in the place of a value."""

from __future__ import annotations

from dataclasses import dataclass

CUT = "cut short"


@dataclass(frozen=True, slots=True, repr=False)
class Unread:
    """A stretch of text where a value should stand, and what is wrong with it ("unreadable", "cut short", …)."""

    text: str
    reason: str = "unreadable"

    def __repr__(self) -> str:
        return self.text


class UnclosedList(list[object]):
    """A list whose closing bracket is missing: its items are whole, but more may have followed."""


class UnclosedDict(dict[str, object]):
    """An object whose closing bracket is missing: its pairs are whole, but more may have followed."""
