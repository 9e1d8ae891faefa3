"""Whether the replies of a model that was guided by a schema are what the schema allows."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?')


def stored_replies(index: Path) -> Iterator[tuple[str, str, int]]:
    """Text, finish and tokens of each reply that the index remembers."""
    database = sqlite3.connect(index / "openie" / "replies.sqlite")
    rows = database.execute("SELECT text, finish, completion FROM replies").fetchall()
    database.close()
    return ((text.decode(), finish, tokens) for text, finish, tokens in rows)


def fits(value: Any) -> bool:
    """Whether a reply has the form that the prompts' schemas ask for."""

    def texts(items: Any, most: int) -> bool:
        return isinstance(items, list) and len(items) <= most and all(isinstance(t, str) and t for t in items)

    if not isinstance(value, dict) or not value or set(value) - {"entities", "triples"}:
        return False
    triples = value.get("triples", [])
    return texts(value.get("entities", []), 100) and all(texts(one, 3) and len(one) == 3 for one in triples)


def whole(text: str) -> bool:
    """Whether a text is JSON of that form."""
    try:
        return fits(json.loads(text))
    except ValueError:
        return False


def begins(text: str) -> bool:
    """Whether a text that was cut is the beginning of JSON of that form: all but its last item, closed, has it."""
    ends = [place for place, sign in enumerate(text) if sign in ",["][-8:]
    starts = [text, *(text[:end] for end in reversed(ends)), *(text[: end + 1] for end in reversed(ends))]
    return any(whole(start + close) for start in starts for close in ("", "}", "]}", "]]}"))


def widest_space(text: str) -> int:
    """Longest run of white space outside the strings of a JSON text."""
    return max((len(run) for run in re.findall(r"\s+", _STRINGS.sub("", text))), default=0)
