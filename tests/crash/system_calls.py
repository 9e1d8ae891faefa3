"""The system calls that change what lies below a folder: seen one by one, and failed where a test says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_BY_HANDLE = ("write", "pwrite", "fsync", "ftruncate")
_BY_PATH = ("open", "replace", "rename", "mkdir", "unlink", "remove", "rmdir", "truncate", "link", "symlink")
CALLS = _BY_HANDLE + _BY_PATH


class Call(NamedTuple):
    """A call that is about to be made: what it does, the path it changes, and its other argument.

    other : the bytes of a write, the new path of a replace, the length of a ftruncate, else None
    """

    name: str
    path: Path
    other: Any = None


Decide = Callable[[int, Call], int | None]
"""Given the number of a call (from 0) and the call: None makes it, a number lets a write take so many bytes only;
an OSError raised there is what the call's caller gets."""


@contextmanager
def watched(folder: Path, decide: Decide) -> Iterator[list[Call]]:
    """The calls that change the folder, what is below it, or its own name while the block runs, in their order."""
    seen: list[Call] = []
    real = {name: getattr(os, name) for name in CALLS}
    folder = folder.resolve()

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            this = _call(name, args, named)
            if this is None or not (folder in (this.path, *this.path.parents) or this[:2] == ("fsync", folder.parent)):
                return real[name](*args, **named)
            seen.append(this)
            taken = decide(len(seen) - 1, this)
            if taken is not None and name == "write":
                return real[name](args[0], bytes(args[1])[:taken])
            return real[name](*args, **named)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name))
    try:
        yield seen
    finally:
        for name in CALLS:
            setattr(os, name, real[name])


def _call(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
    """The call as it is counted, None for one that changes nothing."""
    if name == "open" and not (len(args) > 1 and args[1] & _WRITING):
        return None
    if isinstance(args[0], int):
        return Call(name, of_handle(args[0]), _other(name, args))
    folder = named.get("dir_fd", named.get("src_dir_fd"))
    path = (of_handle(folder) if folder is not None else Path.cwd()) / os.fsdecode(args[0])
    return Call(name, path.parent.resolve() / path.name, _other(name, args))


def _other(name: str, args: tuple[Any, ...]) -> Any:
    if name == "write":
        return bytes(args[1])
    if name in ("replace", "rename"):
        new = Path(os.fsdecode(args[1]))
        return new.parent.resolve() / new.name
    return args[1] if name in ("ftruncate", "open") else None


def of_handle(handle: int) -> Path:
    """The path of an open file."""
    return Path(os.readlink(f"/proc/self/fd/{handle}"))


def nothing(number: int, call: Call) -> None:
    """Fails no call."""
