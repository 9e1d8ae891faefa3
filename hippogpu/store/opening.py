"""Opening of the generation that is current, beside a writer that commits and removes earlier ones meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hippogpu.disk import read_plain
from hippogpu.errors import IndexDamagedError
from hippogpu.store.generations import CURRENT, current_manifest
from hippogpu.store.snapshot import Snapshot, load_snapshot

# A generation goes while it is opened only when a whole commit and a removal fall into the milliseconds of an opening.
TRIES = 10
_POINTER_BYTES = 200


class Opened(NamedTuple):
    """A generation, and the bytes of CURRENT when it was looked up: while they stay, no other one is current."""

    snapshot: Snapshot
    pointer: bytes


def read_pointer(root: Path) -> bytes:
    """The bytes of CURRENT, empty where they cannot be read."""
    try:
        return read_plain(root / CURRENT, most_bytes=_POINTER_BYTES)
    except OSError:
        return b""


def open_current(root: Path) -> Opened:
    """The current generation; IndexDamagedError names what does not fit.

    Where a file is missing or unfit and CURRENT has moved on meanwhile, the newer generation is opened instead.
    """
    tries = 0
    while True:
        tries, pointer = tries + 1, read_pointer(root)
        try:
            return Opened(load_snapshot(root, current_manifest(root)), pointer)
        except IndexDamagedError:
            if tries >= TRIES or read_pointer(root) == pointer:
                raise
