"""Damaged JSON to values: one pass with a stack, no recursion, nothing evaluated.

Read besides JSON: Python's literals, tuples and sets (in written order), single quotes, comments, bare keys, missing
and trailing commas, control characters in strings. What cannot be read becomes an Unread in its place; a bracket that
is missing costs the list or object it belongs to, which comes out as an UnclosedList or UnclosedDict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from hippogpu.openie.json_strings import read_string, stray_quote
from hippogpu.openie.unread import CUT, UnclosedDict, UnclosedList, Unread
from hippogpu.types import Drop

MAX_DIGITS = 300

_SPACE = re.compile(r"[\s\0\ufeff]++")
_WORD = re.compile(r'[^\s,:\[\]{}()"]++')
_NUMBER = re.compile(r"[-+]?\d++(\.\d++)?+([eE][-+]?\d++)?+")
# What starts like a comment but holds an end of quoted text is a text without its first quote.
_QUOTED = re.compile(r"""["']\s{0,20}[,\]})]""")
_CLOSER = {"[": "]", "{": "}", "(": ")"}
_WORDS: dict[str, object] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}
_NOTHING = Unread("")


class Read(NamedTuple):
    """The value, where it ends in the text, whether the text ended inside it, and what was left out of it."""

    value: object
    end: int
    truncated: bool
    drops: tuple[Drop, ...]


def merged(pairs: list[tuple[str, object]], drops: list[Drop]) -> dict[str, object]:
    """The object of these pairs. Lists under one key are joined; else the first counts and the others are dropped."""
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    value = {}
    for key, item in pairs:
        first = value.get(key)
        if key not in value:
            value[key] = item
        elif isinstance(first, list) and isinstance(item, list):
            first.extend(item)
        else:
            drops.append(Drop("a key again", key[:200]))
    return value


def number(digits: str) -> object:
    """The whole number, or an Unread when it is too long for one."""
    return int(digits) if len(digits) <= MAX_DIGITS else Unread(digits, "too long a number")


@dataclass(slots=True)
class _Frame:
    """An open bracket: the items so far, the pairs so far, the key that waits for a value, and the scalar in hand."""

    opener: str
    items: list[object]
    pairs: list[tuple[str, object]]
    key: str | None = None
    slot: object = _NOTHING
    slot_at: int = 0
    filled: bool = False


class DamagedJson:
    """A text with damaged values, and the state of the pass over it; one for all values of a text, in their order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.value: object = None
        self.drops: list[Drop] = []
        self._stack: list[_Frame] = []
        self._open = {"]": 0, "}": 0, ")": 0}
        self._last_line_break = text.rfind("\n")
        self._last_comment_end = text.rfind("*/")
        self._recover = True
        self._steps: dict[str, Callable[[], None]] = {
            **dict.fromkeys("[{(", self._opens),
            **dict.fromkeys("]})", self._closes),
            **dict.fromkeys("\"'", self._string),
            ",": self._comma,
            ":": self._colon,
        }

    def read(self, start: int) -> Read:
        """The list, tuple, set or object that opens at start; time is linear in its length."""
        text, steps = self.text, self._steps
        self.at, self.drops = start, []
        self._opens()
        while self._stack:
            space = _SPACE.match(text, self.at)
            if space:
                self.at = space.end()
            if self.at >= len(text):
                break
            steps.get(text[self.at], self._word)()
        truncated = bool(self._stack)
        while self._stack:
            self._finish(closed=False)
        return Read(self.value, self.at, truncated, tuple(self.drops))

    def _opens(self) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and not self._makes_room(frame):
            return
        opener = self.text[self.at]
        self._stack.append(_Frame(opener, [], []))
        self._open[_CLOSER[opener]] += 1
        self.at += 1

    def _makes_room(self, frame: _Frame) -> bool:
        """Whether a bracket can open in the frame; an object that waits for a key has lost its own bracket and ends."""
        bare = isinstance(frame.slot, Unread) and frame.slot.text[:1] not in ("", '"', "'")
        if bare and (frame.key is not None or frame.pairs):
            self.drops.append(Drop("text before a bracket", _excerpt(frame.slot)))
            frame.slot = _NOTHING
        if frame.opener != "{" or frame.key is not None:
            self._flush(frame)
        elif frame.slot is not _NOTHING and not frame.pairs:
            frame.key, frame.slot = _key(frame.slot), _NOTHING
        if frame.opener == "{" and frame.key is None and frame.pairs:
            self._finish(closed=False)
            return False
        return True

    def _closes(self) -> None:
        """Ends the innermost bracket of this kind, and those inside it that were never closed."""
        closer = self.text[self.at]
        self.at += 1
        if not self._open[closer]:
            self.drops.append(Drop("a bracket that closes nothing", closer))
            return
        while _CLOSER[self._stack[-1].opener] != closer:
            self._finish(closed=False)
        self._finish(closed=True)

    def _finish(self, *, closed: bool) -> None:
        frame = self._stack.pop()
        self._open[_CLOSER[frame.opener]] -= 1
        self._flush(frame)
        value = self._value(frame, closed)
        if self._stack:
            _add(self._stack[-1], value)
        else:
            self.value = value

    def _value(self, frame: _Frame, closed: bool) -> object:
        if frame.key is not None:
            frame.pairs.append((frame.key, Unread("", "missing")))
        if not frame.pairs and (frame.items or frame.opener != "{"):
            return frame.items if closed else UnclosedList(frame.items)
        value = merged(frame.pairs, self.drops)
        value = value if closed else UnclosedDict(value)
        if any(isinstance(item, list | dict) for item in frame.items):
            return [*frame.items, value]
        self.drops.extend(Drop("a value without a key", _excerpt(item)) for item in frame.items)
        return value

    def _comma(self) -> None:
        frame = self._stack[-1]
        self.at += 1
        if frame.slot is _NOTHING and not frame.filled:
            frame.slot = Unread("", "missing")
        self._flush(frame)
        frame.filled = False

    def _colon(self) -> None:
        frame = self._stack[-1]
        at = self.at
        self.at += 1
        if frame.opener == "{" and frame.key is None and frame.slot is not _NOTHING:
            frame.key, frame.slot = _key(frame.slot), _NOTHING
        else:
            self._put(Unread(":"), at)

    def _string(self) -> None:
        at = self.at
        frame = self._stack[-1]
        after_item = frame.filled and frame.slot is _NOTHING
        if stray_quote(self.text, at, after_item=after_item):
            self.at = at + 1
            self.drops.append(Drop("a quote that opens nothing", self.text[at]))
            return
        read = read_string(self.text, at, recover=self._recover)
        self._recover = self._recover and read.quoted
        self.at = read.end
        self._put(read.value, at)

    def _word(self) -> None:
        """A literal, a number, a comment, or something unreadable."""
        at = self.at
        if self._skips_comment():
            return
        found = _WORD.match(self.text, at)
        self.at = found.end() if found else at + 1
        self._put(self._literal(self.text[at : self.at]), at)

    def _literal(self, word: str) -> object:
        if self.at >= len(self.text):
            return Unread(word, CUT)
        if word in _WORDS:
            return _WORDS[word]
        found = _NUMBER.fullmatch(word)
        if not found:
            return Unread(word)
        return number(word) if found[1] is None and found[2] is None else float(word)

    def _skips_comment(self) -> bool:
        text, at = self.text, self.at
        if text[at] not in "/#" or text[at - 1] == ":":
            return False
        if text.startswith(("//", "# "), at) and at < self._last_line_break:
            end = text.index("\n", at)
            if _QUOTED.search(text, at, min(end, at + 200)):
                return False
            self.at = end
            return True
        if text.startswith("/*", at) and at < self._last_comment_end:
            self.at = text.index("*/", at) + 2
            return True
        return False

    def _put(self, value: object, at: int) -> None:
        """A scalar into the frame's hand: two good ones without a comma are two items, others run together unread."""
        frame = self._stack[-1]
        if frame.slot is _NOTHING:
            frame.slot, frame.slot_at = value, at
        elif isinstance(value, Unread) or isinstance(frame.slot, Unread):
            reason = CUT if isinstance(value, Unread) and value.reason == CUT else "unreadable"
            frame.slot = Unread(self.text[frame.slot_at : min(self.at, frame.slot_at + 300)], reason)
        else:
            self._flush(frame)
            frame.slot, frame.slot_at = value, at

    def _flush(self, frame: _Frame) -> None:
        """What is in hand becomes an item, or the value of the key that waits."""
        if frame.slot is not _NOTHING:
            value, frame.slot = frame.slot, _NOTHING
            _add(frame, value)


def _add(frame: _Frame, value: object) -> None:
    frame.filled = True
    if frame.key is None:
        frame.items.append(value)
    else:
        frame.pairs.append((frame.key, value))
        frame.key = None


def _key(value: object) -> str:
    return value.text if isinstance(value, Unread) else str(value)


def _excerpt(value: object) -> str:
    return _key(value)[:200]
