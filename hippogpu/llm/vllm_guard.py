"""Ends vLLM's processes when the program that started them was killed; as a script it imports nothing of hippogpu.

    python vllm_guard.py PROGRAM

vLLM ends its processes only when the program ends in order. After a SIGKILL they would stay, with the GPU's memory,
and the next run would find no room.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# What the program says through the guard's standard input; the input's end means that the program is gone.
_READY, _CLOSED, _GONE, _NOTHING = b"r", b"c", b"", b"-"
_WATCHING = b"w"
_LOOK_EVERY_S = 0.5
# Fields of /proc/PID/stat, counted behind the name.
_PARENT_AT, _STARTED_AT = 1, 19


class EngineGuard:
    """A process that watches this one: whatever is started until `ready` is killed when this process dies unclosed."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", __file__, str(os.getpid())]
        # In a session of its own, so that Ctrl-C does not reach it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        self._wait()

    def ready(self) -> None:
        """What is started from now on is none of the guard's business."""
        self._say(_READY)
        self._wait()

    def close(self) -> None:
        """Lets the guard go without killing anything."""
        self._say(_CLOSED)
        with self._process:
            pass

    def _say(self, word: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(word)

    def _wait(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.read(1)


class Process(NamedTuple):
    """A process: its number, and when it started, which tells it from a later one of the same number."""

    pid: int
    started: int


def watch(program: int) -> None:
    """Notes what the program starts until it is ready; kills that when the program ends without a word."""
    before = set(children(program))
    os.write(1, _WATCHING)
    engine: set[Process] = set()
    wait_s: float | None = _LOOK_EVERY_S
    while (word := _next_word(wait_s)) != _CLOSED:
        if word == _GONE:
            for process in engine:
                _end(process)
            return
        if wait_s is not None:
            engine |= set(children(program)) - before
        if word == _READY:
            wait_s = None
            os.write(1, _WATCHING)


def children(parent: int) -> list[Process]:
    """The running processes that a process started, but no cleaner of shared memory: that one must come last."""
    found = []
    for pid in (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()):
        fields = _fields(pid)
        if fields and int(fields[_PARENT_AT]) == parent and b"resource_tracker" not in _command(pid):
            found.append(Process(pid, int(fields[_STARTED_AT])))
    return found


def _end(process: Process) -> None:
    """Kills a process and all that it started, if it still is that process."""
    fields = _fields(process.pid)
    if not fields or int(fields[_STARTED_AT]) != process.started:
        return
    started_by_it = children(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    for one in started_by_it:
        _end(one)


def _next_word(wait_s: float | None) -> bytes:
    readable, _, _ = select.select([0], [], [], wait_s)
    return os.read(0, 1) if readable else _NOTHING


def _fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name; none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    watch(int(sys.argv[1]))
