"""The guard over vLLM's processes, with processes that sleep in their place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hippogpu.llm.vllm_guard import EngineGuard, children

PATIENCE_S = 20.0
# Starts the guard, then a process that starts another one, and prints both their numbers when the guard knows them.
PROGRAM = """
import subprocess, sys, time
from hippogpu.llm.vllm_guard import EngineGuard
nested = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
earlier = subprocess.Popen(["sleep", "60"])
guard = EngineGuard()
engine = subprocess.Popen([sys.executable, "-c", nested], stdout=subprocess.PIPE, text=True)
worker = engine.stdout.readline().strip()
guard.ready()
later = subprocess.Popen(["sleep", "60"])
print(earlier.pid, engine.pid, worker, later.pid, flush=True)
if sys.argv[1] == "close":
    guard.close()
    print("closed", flush=True)
time.sleep(60)
"""


def running(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(*pids: int) -> bool:
    """Whether all of them end within the test's patience."""
    end = time.monotonic() + PATIENCE_S
    while any(running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(running(pid) for pid in pids)


class Killed:
    """A program that was killed, and the processes that it had started."""

    def __init__(self, mode: str) -> None:
        command = [sys.executable, "-c", PROGRAM, mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            self.earlier, self.engine, self.worker, self.later = map(int, program.stdout.readline().split())
            self.guard_closed = mode == "close" and program.stdout.readline() == "closed\n"
            program.kill()
            program.wait()

    def clean(self) -> None:
        for pid in (self.earlier, self.engine, self.worker, self.later):
            if running(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    """A program killed while the guard watched; the guard has done its work."""
    program = Killed("watch")
    assert gone(program.engine)
    yield program
    program.clean()


def test_a_killed_program_takes_its_engine_along(killed: Killed) -> None:
    assert gone(killed.engine)


def test_what_the_engine_started_goes_too(killed: Killed) -> None:
    assert gone(killed.worker)


def test_what_was_started_before_and_after_the_engine_stays(killed: Killed) -> None:
    assert running(killed.earlier)
    assert running(killed.later)


def test_a_guard_that_was_closed_kills_nothing() -> None:
    program = Killed("close")
    try:
        assert program.guard_closed
        assert running(program.engine)
        assert running(program.worker)
    finally:
        program.clean()


def test_the_guard_leaves_with_the_engine() -> None:
    guard = EngineGuard()
    guard.ready()
    guard.close()
    assert guard._process.returncode == 0


def test_the_children_of_a_process_are_those_it_started() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in [process.pid for process in children(os.getpid())]
        assert children(child.pid) == []
        child.kill()
