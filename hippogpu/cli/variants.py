"""The columns of eval: a method, or settings of one's own under a name."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hippogpu.config import SearchConfig, as_mapping, with_values
from hippogpu.errors import ConfigError, UsageError


class Column(NamedTuple):
    """What is measured under a name."""

    name: str
    settings: SearchConfig

    def changed(self) -> dict[str, Any]:
        """The method, and the settings that are not the defaults."""
        plain = as_mapping(SearchConfig())
        return {
            key: value for key, value in as_mapping(self.settings).items() if key == "method" or value != plain[key]
        }


def columns_of(
    start: SearchConfig,
    *,
    methods: Sequence[str],
    variants: Sequence[str],
    values: Sequence[str],
    default: Sequence[str],
) -> list[Column]:
    """A column for each method, then one for each variant; the default methods where neither is named.

    start    : the settings of the configuration file
    values   : KEY=VALUE of --set, for every column
    variants : "NAME: KEY=VALUE, KEY=VALUE", what differs from start there; without NAME, its name is the text
    UsageError when two columns have one name, for --set method=… and for --set without a column; ConfigError for an
    unknown key or a value out of range.
    """
    set_ = settings_of(values, "--set")
    if "method" in set_:
        raise UsageError(f"A column's method is named by --method, not by --set. Take --method {set_['method']}.")
    common = with_values(start, set_)
    named = methods or ([] if variants else default)
    made = [Column(name, with_values(common, {"method": name})) for name in named]
    made += [_variant(text, common) for text in variants]
    if set_ and not made:
        raise UsageError(f"--set {values[0]} changes no column, as runs are measured as they are. Add --method NAME.")
    twice = [column.name for number, column in enumerate(made) if column.name in {c.name for c in made[:number]}]
    if twice:
        raise UsageError(f"Two columns are called '{twice[0]}'. Name them apart: --variant 'NAME: KEY=VALUE'.")
    return made


def _variant(text: str, start: SearchConfig) -> Column:
    name, colon, rest = text.partition(":")
    if not colon or "=" in name:
        name, rest = text, text
    if not name.strip():
        raise ConfigError(f"--variant takes 'NAME: KEY=VALUE, KEY=VALUE'. Got '{text}', whose name is empty.")
    values = settings_of([part for part in rest.split(",") if part.strip()], "--variant")
    return Column(" ".join(name.split()), with_values(start, values))


def settings_of(parts: Sequence[str], option: str) -> dict[str, Any]:
    """Keys and values; a value is read as TOML, and as text where it is none (method=dense)."""
    values: dict[str, Any] = {}
    for part in parts:
        if len(part.splitlines()) > 1:
            raise ConfigError(f"{option} takes one setting at a time, without line breaks. Got {part!r}.")
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ConfigError(f"{option} takes KEY=VALUE. Got '{part.strip()}'.")
        values[key] = _value(value)
    return values


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
