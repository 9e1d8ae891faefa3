"""Where sentences and words end, for cutting long passages."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CLOSERS = "\"'”’»)\\]」』）】"
# A full stop of a spaced script needs space behind it; a CJK one does not. A line break always ends a sentence.
_END = re.compile(rf"[.!?…।॥؟۔]+[{_CLOSERS}]*(?=\s)|[。！？｡]+[{_CLOSERS}]*|[\r\n]+")
_INITIAL = re.compile(r"(?:^|[\s(.])[^\W\d_]\.$")
_IDEOGRAPH = "぀-ヿ㐀-䶿一-鿿豈-﫿𠀀-𯿿"
_WORD = re.compile(rf"\s*(?:[{_IDEOGRAPH}]|[^\s{_IDEOGRAPH}]+)\s*")


def sentence_ends(text: str) -> Iterator[int]:
    """Offsets behind each sentence and the space that follows it, ascending; the last is the text's length.

    A full stop before a small letter, or behind a single letter (an initial), ends nothing.
    """
    last = 0
    for match in _END.finditer(text):
        end = _skip_space(text, match.end())
        if end > last and end < len(text) and not _is_inside(text, match, end):
            yield end
            last = end
    if text:
        yield len(text)


def _is_inside(text: str, match: re.Match[str], end: int) -> bool:
    mark = match.group()
    if mark[0] != "." or "\n" in text[match.end() : end]:
        return False
    return text[end].islower() or (mark == "." and bool(_INITIAL.search(text, max(0, match.end() - 3), match.end())))


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def word_ends(text: str) -> list[int]:
    """Offsets behind each word and its space, ascending; an ideograph is a word of its own."""
    return [match.end() for match in _WORD.finditer(text)] or ([len(text)] if text else [])
