"""What a benchmark checks before it times anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Check(NamedTuple):
    """One comparison: what was found, what was asked for, and whether it holds."""

    name: str
    found: Any
    wanted: Any
    passed: bool


def equal(name: str, found: Any, wanted: Any) -> Check:
    """Passes when both are equal."""
    return Check(name, found, wanted, bool(found == wanted))


def at_most(name: str, found: float, limit: float) -> Check:
    """Passes when the found figure is a number no greater than the limit."""
    return Check(name, float(found), f"at most {limit:g}", bool(found <= limit))


def all_passed(checks: Iterable[Check]) -> bool:
    return all(check.passed for check in checks)
