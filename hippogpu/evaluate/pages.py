"""A report as blocks, and the same blocks as Markdown or as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto}"
    "th,td{border:1px solid #ccc;padding:.25rem .6rem;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left;white-space:normal}"
    "th{background:#f3f3f3}pre{background:#f6f6f6;padding:.7rem;overflow-x:auto}figure{margin:1rem 0}"
)
# What a reader of Markdown could take for markup; _ only at an end of a word.
_ACTIVE = re.compile(r"[\\|<>&\[\]`*~!]|(?<!\w)_|_(?!\w)")
_TOKENS = re.compile(r"\\([!-/:-@\[-`{-~])|`([^`]+)`")
_PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_MARKUP = (
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\[([^\]]+)\]\(((?:https?://)?[^):\s]+)\)"), r'<a href="\2">\1</a>'),
)


def plain(text: str) -> str:
    """Text of others (a question, a title, an id) for a block, in which no page finds markup: one line, escaped."""
    return _ACTIVE.sub(r"\\\g<0>", _one_line(text))


def code(text: str) -> str:
    """The same as code; a backtick, which would end it, becomes an apostrophe."""
    return f"`{_one_line(text).replace('`', chr(39))}`"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in " ".join(text.splitlines()))


class Heading(NamedTuple):
    """A title; depth 1 is the page's."""

    text: str
    depth: int = 2


class Text(NamedTuple):
    """A paragraph. `code`, **bold** and [links](target) are marked as in Markdown; what is not ours goes by plain."""

    text: str


class Rows(NamedTuple):
    """A table; each row has as many cells as there are columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Code(NamedTuple):
    """Lines shown as they are."""

    text: str


class Picture(NamedTuple):
    """An SVG: its name beside a Markdown page, and its text, which an HTML page holds inside."""

    file: str
    caption: str
    svg: str = ""


Block = Heading | Text | Rows | Code | Picture


def as_markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown, a blank line between them."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def as_html(blocks: Iterable[Block], *, title: str) -> str:
    """The blocks as one page without scripts or other files. Texts are escaped; pictures stand inside as they are."""
    body = "\n".join(_html(block) for block in blocks)
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.depth} {block.text}"
    if isinstance(block, Rows):
        lines = [_row(block.columns), "|" + "---|" * len(block.columns), *map(_row, block.rows)]
        return "\n".join(lines)
    if isinstance(block, Code):
        return f"```sh\n{block.text}\n```"
    return f"![{block.caption}]({block.file})" if isinstance(block, Picture) else block.text


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_PIPE.sub(r"\1\|", " ".join(cell.splitlines())) for cell in cells) + " |"


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.depth}>{_marked(block.text)}</h{block.depth}>"
    if isinstance(block, Rows):
        head = "".join(f"<th>{_marked(cell)}</th>" for cell in block.columns)
        rows = "".join("<tr>" + "".join(f"<td>{_marked(cell)}</td>" for cell in row) + "</tr>\n" for row in block.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"
    if isinstance(block, Code):
        return f"<pre>{html.escape(block.text)}</pre>"
    if isinstance(block, Picture):
        # Without its XML head, an SVG may stand inside of HTML.
        inside = block.svg[block.svg.find("<svg") :] if "<svg" in block.svg else ""
        return f"<figure>{inside}<figcaption>{_marked(block.caption)}</figcaption></figure>"
    return f"<p>{_marked(block.text)}</p>"


def _marked(text: str) -> str:
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        """Escaped characters and code are put aside, so that nothing in them is taken for markup."""
        character, inside = found.groups()
        held.append(html.escape(character) if character else f"<code>{html.escape(inside)}</code>")
        return f"\0{len(held) - 1}\0"

    escaped = html.escape(_TOKENS.sub(hold, text.replace("\0", " ")))
    for pattern, replacement in _MARKUP:
        escaped = pattern.sub(replacement, escaped)
    return re.sub(r"\0([0-9]+)\0", lambda found: held[int(found[1])], escaped)
