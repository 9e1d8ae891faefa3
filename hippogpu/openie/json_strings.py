"""Quoted text in damaged JSON: where it ends when quotes are missing, doubled or not escaped, and what it says."""

from __future__ import annotations

import re

from hippogpu.openie.unread import CUT, Unread

_BODY = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL),
}
_ENDS = re.compile(r"\s*+(?:[,\]}):]|\Z|//|/\*|# )")
_QUOTE_AFTER_SPACE = re.compile(r"""\s++["']""")
# A later quote of the same line that ends the text properly; all in between is one field, short and without structure.
_INNER = re.compile(r'(?:[^"\\\n\[\]{},:]|\\.|"){0,120}?"(?=\s{0,20}(?:[,\]})]|\Z))')
_KEY = re.compile(r'[\w ]{1,40}"\s{0,20}:')
_STRUCTURE = " \t\r\n,[]{}()"
_TAIL = 64

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", "/": "/", '"': '"', "'": "'"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_string(text: str, at: int) -> tuple[object, int]:
    """The text whose quote stands at this place, and where it ends; an Unread when it ends nowhere.

    A quote ends it when structure or the end of the reply follows. Else it is one of: a quote that is part of the
    text, the opening quote of the next item (this text lacks its own, and ends at the bracket before), an ending.
    """
    quote, start = text[at], at + 1
    stop = start
    while True:
        found = _BODY[quote].match(text, stop)
        stop = found.end() if found else stop
        if stop >= len(text) or text[stop] != quote:
            return Unread(text[at : at + 300], CUT), len(text)
        if _ENDS.match(text, stop + 1):
            return decoded(text[start:stop]), stop + 1
        bracket = _bracket_before(text, start, stop)
        if bracket is not None:
            return _without_end(text, at, bracket)
        if not _part_of_text(text, stop, quote):
            return decoded(text[start:stop]), stop + 1
        stop += 1


def _bracket_before(text: str, start: int, stop: int) -> int | None:
    """Where the item ended whose closing quote is missing, when the quote at stop opens the next item."""
    tail = text[max(start, stop - _TAIL) : stop]
    run = tail[len(tail.rstrip(_STRUCTURE)) :]
    at = next((place for place, character in enumerate(run) if character in "[{(]})"), None)
    if at is None:
        return None
    opens = any(character in "[{(" for character in run[at:])
    if opens or ("," in run[at:] and _KEY.match(text, stop + 1)):
        return stop - len(run) + at
    return None


def _without_end(text: str, at: int, bracket: int) -> tuple[object, int]:
    """The text up to the bracket; a quote that only stands before an opening bracket is no text at all."""
    if text[bracket] in "[{(":
        return Unread(text[at : min(bracket, at + 300)]), bracket
    return decoded(text[at + 1 : bracket]), bracket


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
