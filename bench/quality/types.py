"""Of which type each value of a recipe must be: what YAML gives is checked before anything is done with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hippogpu.errors import ConfigError

_TEXTS = (
    *("name", "title", "use", "data", "records_by", "queries", "qrels", "encoder", "vectors", "profile", "family"),
    *("level", "note", "index"),
)
_NAME = re.compile(r"[\w.+@=-]+")


def check_types(values: Mapping[str, Any], file: Path) -> None:
    """ConfigError that names the file and the key of a value of another type, or out of range."""
    for key, value in values.items():
        wanted = _wanted(key, value)
        if wanted:
            raise ConfigError(f"The key '{key}' of the recipe '{file}' must be {wanted}. Got {value!r}.")


def check_row(row: Mapping[str, Any], file: Path) -> None:
    """The same for a row: texts, and settings by name."""
    for key, value in row.items():
        wanted = ""
        if key == "settings":
            wanted = "" if value is None or _is_mapping(value) else "settings by name"
        elif not isinstance(value, str) and not (key == "than" and value is None):
            wanted = "a text"
        if wanted:
            raise ConfigError(
                f"The key '{key}' of the row {row['name']!r} of '{file}' must be {wanted}. Got {value!r}."
            )


def _wanted(key: str, value: Any) -> str:
    """What the value of a key should be; "" where it is."""
    if key in _TEXTS and not isinstance(value, str):
        return "a text"
    if key in ("name", "index") and (not _NAME.fullmatch(value) or set(value) == {"."}):
        # It names a folder among those of --work.
        return "a name of letters, digits and -._+@="
    if key in ("llm_records", "cases") and not isinstance(value, bool):
        return "true or false"
    if key == "k" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        return "a whole number of at least 1"
    if key == "tolerance" and (not _is_number(value) or not 0 <= value < float("inf")):
        return "a number of at least 0"
    if key == "records" and not (_is_mapping(value) and all(isinstance(one, str) for one in value.values())):
        return "a mapping of texts, {file: …} or {extractor: …}"
    if key == "expected" and not (_is_mapping(value) and all(_is_figures(one) for one in value.values())):
        return "figures by row and measure, {dense: {recall@5: 61.27}}"
    return ""


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _is_figures(value: Any) -> bool:
    return _is_mapping(value) and all(_is_number(one) for one in value.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
