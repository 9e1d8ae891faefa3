"""A decoded row to a passage, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hippogpu.text import content_key, identity
from hippogpu.types import Passage

ID_FIELDS = ("_id", "id", "idx")
TEXT_FIELDS = ("text", "contents")

_CONTENT_ID_DIGITS = 16


class RowError(ValueError):
    """Why a row was refused; never leaves the corpus room."""


def passage_of(row: object) -> Passage:
    """The passage that a row states; RowError saying what it lacks.

    A missing or null id becomes one made from the content; fields of no meaning here become meta.
    """
    fields = as_object(row)
    title = text_field(fields, ("title",)) or ""
    text = text_field(fields, TEXT_FIELDS)
    if text is None:
        raise RowError(f"no {' or '.join(repr(name) for name in TEXT_FIELDS)} field")
    if not text.strip() and not title.strip():
        raise RowError("text and title are empty")
    id_ = id_field(fields)
    used = {first_of(fields, ID_FIELDS), "title", first_of(fields, TEXT_FIELDS)}
    meta = {name: plain(value) for name, value in fields.items() if name not in used}
    return Passage(content_id(title, text) if id_ is None else id_, title, text, meta)


def content_id(title: str, text: str) -> str:
    """The id of a passage that came without one: the same for the same title and text, in any run."""
    return "text-" + content_key(identity(title, text))[:_CONTENT_ID_DIGITS]


def as_object(row: object) -> Mapping[str, object]:
    """The row, when it is an object with fields."""
    if not isinstance(row, dict):
        raise RowError(f"not an object but {kind_of(row)}")
    return row


def first_of(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """The first of the names under which the row holds anything but null."""
    return next((name for name in names if fields.get(name) is not None), None)


def text_field(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """The text under the first of the names that is there and not null."""
    name = first_of(fields, names)
    return None if name is None else storable(fields[name], name)


def id_field(fields: Mapping[str, object]) -> str | None:
    """The row's id as text (a number is cast), None when it has none."""
    name = first_of(fields, ID_FIELDS)
    return None if name is None else as_id(fields[name], name)


def as_id(value: object, name: str) -> str:
    """A text or number as an id; RowError when it is neither, or empty."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    text = storable(value, name)
    if not text.strip():
        raise RowError(f"'{name}' is empty")
    return text


def storable(value: object, name: str) -> str:
    """The value, when it is text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise RowError(f"'{name}' is not text but {kind_of(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RowError(
            f"'{name}' cannot be stored as UTF-8 (half a surrogate pair at character {error.start + 1})"
        ) from error
    return value


def plain(value: Any) -> Any:
    """The value as JSON can hold it: what is neither text, number, list nor object is cast to text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else str(value)


def kind_of(value: object) -> str:
    """What JSON calls a value of this type."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), type(value).__name__)
