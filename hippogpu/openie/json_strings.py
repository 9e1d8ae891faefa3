"""Quoted text in damaged JSON: where it ends when quotes are missing, doubled or not escaped, and what it says."""

from __future__ import annotations

import re
from typing import NamedTuple

from hippogpu.openie.unread import CUT, Unread

_BODY = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL),
}
_ENDS = re.compile(r"\s*+(?:[,\]}):]|\Z|(?<=\s)(?://|/\*|# ))")
_QUOTE_AFTER_SPACE = re.compile(r"""\s++["']""")
# A later quote of the same line that ends the text properly; all in between is one field, short and without structure.
_INNER = re.compile(r'(?:[^"\\\n\[\]{},:]|\\.|"){0,120}?"(?=\s{0,20}(?:[,\]})]|\Z))')
_BOUNDARY = re.compile(r"""[\]})][\s\]}),"']{0,20}\s*+(?:[\[{(][\s\]}),]{0,20}){1,8}["']""")
_STRUCTURE_NEXT = re.compile(r"\s{0,20}[,\[\]{}()]")
_ITEM_NEXT = {
    '"': re.compile(r"\s{0,20},?\s{0,20}[\[{(]\s{0,20}'"),
    "'": re.compile(r'\s{0,20},?\s{0,20}[\[{(]\s{0,20}"'),
}
_CLOSED = re.compile(r"[\]})]\s{0,20},")
_KEY = re.compile(r'[\w ]{1,40}"\s{0,20}:')
_STRUCTURE = " \t\r\n,[]{}()"
_TAIL = 64

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", "/": "/", '"': '"', "'": "'"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Quoted(NamedTuple):
    """The text, where it ends, and whether there was any quote that could end it."""

    value: object
    end: int
    quoted: bool = True


def read_string(text: str, at: int, *, recover: bool) -> Quoted:
    """The text whose quote stands at this place, and where it ends; an Unread when it ends nowhere.

    A quote ends it when structure or the end of the reply follows. Else it is one of: a quote that is part of the
    text, the opening quote of the next item (this text lacks its own, and ends at the bracket before), an ending.
    recover : whether a text that ends nowhere may end before the next item; its cost is the rest of the reply
    """
    quote, start = text[at], at + 1
    stop = seen = start
    while True:
        found = _BODY[quote].match(text, stop)
        stop = found.end() if found else stop
        if stop >= len(text) or text[stop] != quote:
            boundary = _BOUNDARY.search(text, seen) if recover else None
            if boundary:
                return _without_end(text, at, boundary.start())._replace(quoted=False)
            return Quoted(Unread(text[at : at + 300], CUT), len(text), quoted=False)
        ends = _ENDS.match(text, stop + 1)
        if ends and text[stop - 1] not in "[{( ":
            return Quoted(decoded(text[start:stop]), stop + 1)
        bracket = _boundary_at(text, seen, stop) if ends else _bracket_before(text, seen, stop)
        if bracket is not None:
            return _without_end(text, at, bracket)
        if ends or not _part_of_text(text, stop, quote):
            return Quoted(decoded(text[start:stop]), stop + 1)
        stop = seen = stop + 1


def stray_quote(text: str, at: int, *, after_item: bool) -> bool:
    """Whether the quote at this place opens no text: structure follows where no text can stand (behind a list or an
    object without a comma), or an item in quotes of the other kind."""
    found = (_STRUCTURE_NEXT if after_item else _ITEM_NEXT[text[at]]).match(text, at + 1)
    return found is not None


def _boundary_at(text: str, start: int, stop: int) -> int | None:
    """As _bracket_before, when a comma and the bracket of the next item stand right before the quote."""
    boundary = _BOUNDARY.search(text, max(start, stop - _TAIL), stop + 1)
    return boundary.start() if boundary and boundary.end() == stop + 1 and "," in boundary[0] else None


def _bracket_before(text: str, start: int, stop: int) -> int | None:
    """Where the item ended whose closing quote is missing, when an item opens between start and the quote at stop."""
    boundary = _BOUNDARY.search(text, start, stop + 1)
    if boundary:
        return boundary.start()
    tail = text[max(start, stop - _TAIL) : stop]
    run = tail[len(tail.rstrip(_STRUCTURE)) :]
    at = next((place for place, character in enumerate(run) if character in "[{(]})"), None)
    if at is None:
        return None
    opens = run.rstrip()[-1:] in ("[", "{", "(")
    if run[at] in "[{(":
        if not opens:
            return None
        closed = _CLOSED.search(tail)
        return stop - len(tail) + closed.start() if closed else stop - len(run) + at
    if opens or ("," in run[at:] and _KEY.match(text, stop + 1)):
        return stop - len(run) + at
    return None


def _without_end(text: str, at: int, bracket: int) -> Quoted:
    """The text up to the bracket; a quote that only stands before an opening bracket is no text at all."""
    if text[bracket] in "[{(":
        return Quoted(Unread(text[at : min(bracket, at + 300)]), bracket)
    return Quoted(decoded(text[at + 1 : bracket]), bracket)


def _part_of_text(text: str, stop: int, quote: str) -> bool:
    if _QUOTE_AFTER_SPACE.match(text, stop + 1):
        return False
    return quote == "'" or _INNER.match(text, stop + 1) is not None


def decoded(raw: str) -> str:
    """The text between quotes with its escapes resolved; a backslash that escapes nothing stays."""
    if "\\" not in raw:
        return raw
    value = _ESCAPE.sub(_escape, raw)
    if _SURROGATE.search(value):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return value


def _escape(found: re.Match[str]) -> str:
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else _ESCAPED.get(found[3], found[0])
