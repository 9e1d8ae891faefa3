"""What methods work out of a snapshot beyond what every ranking needs: at first use, once, for all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Derived:
    """Values of one snapshot by key. They are pure functions of it, so which thread makes one makes no difference."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Hashable, Any] = {}
        self._making: dict[Hashable, threading.RLock] = {}

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value under the key, made at its first use; later callers wait for it, but not for those of other keys.

        One value may be made of others, as long as none is made of itself.
        """
        if key not in self._values:
            with self._lock:
                making = self._making.setdefault(key, threading.RLock())
            with making:
                if key not in self._values:
                    self._values[key] = make()
        value: Value = self._values[key]
        return value
