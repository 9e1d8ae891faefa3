"""A program run to its end in a process of its own, and what it took: time, memory, bytes written (Linux)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

SAMPLE_S, BEAT_S = 0.05, 2.0
_DIE_WITH_PARENT = 1


class Taken(NamedTuple):
    """What a program and its children took.

    cpu_s       : seconds of processor time, user and system
    anon_bytes  : the most memory at any sample that no file backs: heap, arrays, shared memory
    peak_bytes  : the most resident memory at any sample, pages of mapped files among it
    written     : bytes that were sent to the disk on its behalf, as /proc tells them
    load_before : the machine's load average when it began
    ended       : "done", "failed", "killed", or "cut" when nobody saw its end
    """

    wall_s: float
    cpu_s: float
    anon_bytes: int
    peak_bytes: int
    written: int
    load_before: float
    began: str
    ended: str


class Ran(NamedTuple):
    """What a program took, its exit status (negative: the signal that ended it), and why it was stopped, if it was."""

    taken: Taken
    status: int
    stopped: str = ""


class _Sample(NamedTuple):
    cpu_s: float = 0.0
    anon: int = 0
    resident: int = 0
    written: int = 0


def watch(
    words: Sequence[str],
    *,
    out: Path,
    err: Path,
    cwd: Path,
    limit_bytes: int,
    beat: Callable[[Taken], None] | None = None,
    kill: Callable[[float], bool] | None = None,
) -> Ran:
    """Runs the words, output and errors into two files, and samples /proc for its whole tree every 50 ms.

    limit_bytes : what no file backs may not exceed this, else the program is killed and `stopped` says so
    beat        : is told every two seconds what was taken so far
    kill        : asked at every sample with the seconds since the start; the program is killed when it says so
    The program dies with this process.
    """
    environment = {**os.environ, "PYTHONPATH": str(cwd)}
    load, began = os.getloadavg()[0], datetime.now(UTC).isoformat(timespec="seconds")
    started = told = time.monotonic()
    most, last, stopped = _Sample(), _Sample(), ""

    def taken(ended: str) -> Taken:
        wall = round(time.monotonic() - started, 3)
        return Taken(wall, round(last.cpu_s, 2), most.anon, most.resident, last.written, round(load, 2), began, ended)

    with out.open("wb") as output, err.open("wb") as errors:
        program = subprocess.Popen(
            list(words),
            stdout=output,
            stderr=errors,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            while program.poll() is None:
                found = _tree(program.pid)
                last = _Sample(
                    max(last.cpu_s, found.cpu_s), found.anon, found.resident, max(last.written, found.written)
                )
                most = _Sample(0, max(most.anon, found.anon), max(most.resident, found.resident))
                if found.anon > limit_bytes:
                    stopped = f"it held {found.anon / 2**30:.1f} GiB; the limit is {limit_bytes / 2**30:.1f} GiB"
                elif kill is not None and kill(time.monotonic() - started):
                    stopped = "killed as planned"
                if stopped:
                    break
                if beat is not None and time.monotonic() - told >= BEAT_S:
                    told = time.monotonic()
                    beat(taken("cut"))
                time.sleep(SAMPLE_S)
        finally:
            _kill_group(program)
    ended = "killed" if stopped else "done" if program.returncode == 0 else "failed"
    return Ran(taken(ended), program.returncode, stopped)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _kill_group(program: subprocess.Popen[bytes]) -> None:
    """The program and its children, by the group that it began."""
    if program.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def _tree(pid: int) -> _Sample:
    """The sum over a process and those below it, of what is still there to be read."""
    found = [_one(each) for each in _descendants(pid)]
    return _Sample(*(sum(column) for column in zip(*found, strict=True))) if found else _Sample()


def _descendants(pid: int) -> Iterator[int]:
    yield pid
    for task in _entries(Path(f"/proc/{pid}/task")):
        for child in _read(task / "children").split():
            yield from _descendants(int(child))


def _one(pid: int) -> _Sample:
    folder = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in _read(folder / "status").splitlines() if ":" in line)
    kib = {name: int(status.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem", "VmRSS")}
    io = dict(line.split(": ") for line in _read(folder / "io").splitlines())
    # After the name, which may hold anything and ends with the last bracket: user and system time are fields 12 and 13.
    fields = _read(folder / "stat").rpartition(")")[2].split()
    ticks = sum(int(field) for field in fields[11:15])
    return _Sample(
        ticks / os.sysconf("SC_CLK_TCK"),
        1024 * (kib["RssAnon"] + kib["RssShmem"]),
        1024 * kib["VmRSS"],
        int(io.get("write_bytes", "0")),
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    """What the file says; nothing when its process has gone meanwhile."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
