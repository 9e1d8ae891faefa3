"""What every configuration is checked by when it is made."""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

from hippogpu.errors import ConfigError

_LOGIN = re.compile(r"//.*@", re.DOTALL)


def check_types(config: object) -> None:
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        choices = get_args(hint)
        if choices:
            require(config, name, value in choices, f"one of {', '.join(map(str, choices))}")
        elif hint is float:
            require(config, name, isinstance(value, (int, float)) and not isinstance(value, bool), "a number")
        elif hint is bool or hint is int:
            require(config, name, type(value) is hint, "true or false" if hint is bool else "a whole number")
        elif hint is str:
            require(config, name, isinstance(value, str), "text, in quotes")


def require(config: object, name: str, holds: bool, rule: str) -> None:
    if not holds:
        value = without_login(repr(getattr(config, name)))
        raise ConfigError(f"The '{name}' of {type(config).__name__} must be {rule}. Got {value}.")


def without_login(text: str) -> str:
    """The text fit for a message: what may be the name and password of an address is "***"."""
    return _LOGIN.sub("//***@", text)
