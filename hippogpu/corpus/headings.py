"""Markdown headings of a text: its first one, and the path of headings that each place stands under."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

TITLE_SEPARATOR = " › "
# A path is carried into each chunk, so it may not eat the window.
PATH_CHARACTERS = 120

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"[ \t]*(```|~~~)")


class Heading(NamedTuple):
    """A "# heading" line: where it begins in the text, its depth from 1 to 6, and its text."""

    offset: int
    depth: int
    text: str


def headings(markdown: str) -> Iterator[Heading]:
    """The headings of a text outside code fences, in order; those without text are left out."""
    fenced, offset = False, 0
    for line in markdown.splitlines(keepends=True):
        if _FENCE.match(line):
            fenced = not fenced
        found = None if fenced else _HEADING.match(line.rstrip("\r\n"))
        if found and found.group(2):
            yield Heading(offset, len(found.group(1)), found.group(2))
        offset += len(line)


def first_heading(markdown: str) -> str | None:
    """The text of the first heading, None when there is none."""
    return next((heading.text for heading in headings(markdown)), None)


class Outline:
    """Which title a piece of a text gets: the text's own, and the headings it stands under where those fit."""

    def __init__(self, title: str, text: str, fits: Callable[[str], bool]) -> None:
        self._title = title
        self._offsets: list[int] = []
        self._titles: list[str] = []
        path: list[Heading] = []
        for heading in headings(text):
            path = [above for above in path if above.depth < heading.depth] + [heading]
            self._offsets.append(heading.offset)
            longer = _joined(title, [above.text for above in path])
            self._titles.append(longer if fits(longer) else title)

    def title_at(self, offset: int) -> str:
        """The title of a piece that begins at the offset."""
        place = bisect_right(self._offsets, offset)
        return self._titles[place - 1] if place else self._title


def _joined(title: str, path: Sequence[str]) -> str:
    """Title and headings in one line, without a heading that repeats the title; outer ones give way to inner ones."""
    inner = [text for text in path if text != title]
    while len(inner) > 1 and len(TITLE_SEPARATOR.join(inner)) > PATH_CHARACTERS:
        inner = inner[1:]
    inner = [text if len(text) <= PATH_CHARACTERS else text[: PATH_CHARACTERS - 1] + "…" for text in inner]
    return TITLE_SEPARATOR.join([title, *inner] if title else inner)
