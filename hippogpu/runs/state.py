"""The folder of an unfinished run: one process at a time, and how far it is."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hippogpu.disk import write_atomically
from hippogpu.errors import UsageError
from hippogpu.runs.identity import Identity

STATE, LOCK = "state.json", "LOCK"


class State(NamedTuple):
    """questions are done, of these unwritten were not written (the form cannot hold an id); position is the sink's."""

    identity: Identity
    questions: int = 0
    unwritten: int = 0
    position: int = 0


def read_state(folder: Path) -> State | None:
    """How far the run in the folder is; None when nothing was begun. UsageError when the file is none of ours."""
    path = folder / STATE
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_bytes())
        state = State(dict(value["identity"]), value["questions"], value["unwritten"], value["position"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"'{path}' is damaged ({error}). Start again with --force.") from error
    if any(type(number) is not int or number < 0 for number in state[1:]):
        raise UsageError(f"'{path}' is damaged: its counts are {state[1:]}. Start again with --force.")
    return state


def write_state(folder: Path, state: State) -> None:
    """Replaces the state durably."""
    write_atomically(folder / STATE, (json.dumps(state._asdict()) + "\n").encode())


def clear(folder: Path) -> None:
    """Empties the folder but for its lock, the state first: what a kill leaves of it is no run."""
    (folder / STATE).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.name != LOCK:
            path.unlink()


def remove(folder: Path) -> None:
    """Removes the folder of a run that is done."""
    clear(folder)
    shutil.rmtree(folder)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder, made when it is missing, for this process alone; UsageError while another one holds it.

    The system gives it free when the process ends, however it ends.
    """
    folder.mkdir(exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Another process writes into '{folder}'. Wait for it, or name another --output.") from error
