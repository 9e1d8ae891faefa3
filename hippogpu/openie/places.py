"""Where a log holds the last success of each text: arrays of places, so that no record is held before it is asked for.

A text takes 44 bytes, however much was extracted from it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hippogpu.openie.log import Failed, Outcomes
from hippogpu.openie.log_lines import attempt_of, checksum_of, placed_lines, read_line
from hippogpu.types import Longs

KEY_BYTES = 16
Keys = NDArray[np.bytes_]
"""Content keys as 16 bytes each, in their order."""


@dataclass(frozen=True, slots=True)
class Places:
    """What a log says of each text, up to a byte: where the line of its last success is, and what has none.

    keys      : (rows,) distinct, ascending, of the texts that have a success
    begin, end: (rows,) the bytes of the line of the last one · line: (rows,) its number from 0 · crc: (rows,) uint32
    failed    : texts without a success, by content key
    damage    : lines that were passed over, "FILE:LINE: reason"
    lines, size : how many lines and bytes have been read
    """

    keys: Keys = field(default_factory=lambda: np.empty(0, "S16"))
    begin: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    end: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    line: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    crc: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    failed: dict[str, Failed] = field(default_factory=dict)
    damage: tuple[str, ...] = ()
    lines: int = 0
    size: int = 0

    def rows(self, keys: Keys) -> Longs:
        """The row of each text, −1 where it has no success."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)

    def outcomes(self) -> Outcomes:
        """The same as the log's own outcomes."""
        return Outcomes(Finished(self), dict(self.failed), self.damage)


class Finished:
    """The content keys that have a success: those of a log, and those that are added."""

    def __init__(self, places: Places) -> None:
        # NumPy leaves NULs at the end of a bytes value out.
        self._keys: set[bytes] = set(places.keys.tolist())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _packed(key).rstrip(b"\0") in self._keys

    def add(self, key: str) -> None:
        self._keys.add(_packed(key).rstrip(b"\0"))


def packed_keys(keys: Iterable[str]) -> Keys:
    """Content keys as 16 bytes each; what is none (only a strange log has it) by a digest."""
    return np.frombuffer(b"".join(map(_packed, keys)), f"S{KEY_BYTES}")


def _packed(key: str) -> bytes:
    if len(key) == 2 * KEY_BYTES:
        try:
            return bytes.fromhex(key)
        except ValueError:
            pass
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES, person=b"other key").digest()


def read_places(path: Path, known: Places | None = None) -> Places:
    """The places of a log that ends with a whole line; what is known of its beginning is not read again."""
    known = known or Places()
    keys, numbers = bytearray(), [array("q") for _ in range(4)]
    failed, damage = dict(known.failed), list(known.damage)
    size, lines = known.size, known.lines
    for begin, size, line in placed_lines(path, begin=known.size):
        found = read_line(line)
        if isinstance(found, str):
            damage.append(f"{path}:{lines + 1}: {found}")
        elif found.record["error"] is None:
            keys += _packed(found.key)
            for column, number in zip(numbers, (begin, size, lines, checksum_of(line)), strict=True):
                column.append(number)
        else:
            before = failed[found.key].attempts if found.key in failed else 0
            failed[found.key] = Failed(attempt_of(found, before), found.record["error"])
        lines += 1
    columns = [np.array(column, np.int64) for column in numbers]
    made = _last_of_each(known, np.frombuffer(bytes(keys), f"S{KEY_BYTES}"), columns)
    finished = made.rows(packed_keys(failed)) >= 0
    open_ = {key: failure for (key, failure), done in zip(failed.items(), finished, strict=True) if not done}
    return replace(made, failed=open_, damage=tuple(damage), lines=lines, size=size)


def _last_of_each(known: Places, keys: Keys, columns: Sequence[Longs]) -> Places:
    """Every text once, where its last success is."""
    every = np.concatenate([known.keys, keys])
    order = np.argsort(every, kind="stable")
    ordered = every[order]
    last = np.ones(len(ordered), bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    kept = order[last]
    begin, end, line = (
        np.concatenate(pair)[kept] for pair in zip((known.begin, known.end, known.line), columns[:3], strict=True)
    )
    crc = np.concatenate([known.crc, columns[3].astype(np.uint32)])[kept]
    return Places(every[kept], begin, end, line, crc)
