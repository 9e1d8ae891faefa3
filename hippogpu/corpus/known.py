"""Which ids came before, in little memory."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_FIRST_SLOTS = 1024


class KnownIds:
    """A growing set of ids that keeps 64 bits of each: 12 to 24 bytes an id, where a set of texts takes over 100.

    Two ids share their 64 bits with a chance of 3e-6 among ten million; the second would count as known.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SLOTS))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, id_: str) -> bool:
        """Whether the id is new; from now on it is not."""
        key = int.from_bytes(blake2b(id_.encode(), digest_size=8).digest(), "little") or 1
        slot = _slot_of(self._slots, key)
        if self._slots[slot]:
            return False
        self._slots[slot] = key
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            self._grow()
        return True

    def _grow(self) -> None:
        grown = array("Q", bytes(16 * len(self._slots)))
        for key in self._slots:
            if key:
                grown[_slot_of(grown, key)] = key
        self._slots = grown


def _slot_of(slots: array[int], key: int) -> int:
    """Where the key lies or would lie: its own place, or the first free one after it. 0 marks a free slot."""
    mask = len(slots) - 1
    slot = key & mask
    while slots[slot] and slots[slot] != key:
        slot = (slot + 1) & mask
    return slot
