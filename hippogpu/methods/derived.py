"""What methods work out of a snapshot beyond what every ranking needs: at first use, once, for all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Derived:
    """Values of one snapshot by key. They are pure functions of it, so which thread makes one makes no difference."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # one value may be made of others
        self._values: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value under the key, made at its first use; later callers wait for it."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            value: Value = self._values[key]
            return value
