"""Every long stage killed in its midst, once, and the index that comes of it beside an undisturbed one."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.scale.cost import SOURCE, Say, StageFailed
from bench.scale.stages import Case, Places, building, places
from bench.scale.watching import Ran, watch
from hippogpu.store import current_manifest

_MIDST = 0.5
"""The part of a stage's undisturbed time after which it is killed."""
_SHORTEST_S = 0.3
"""A stage that is over sooner is not worth a kill."""

Kill = Callable[[float], bool]


class _Run(NamedTuple):
    """What a program took, and what it said at its end."""

    ran: Ran
    said: dict[str, Any]


class _Folders(NamedTuple):
    """undisturbed : the index that nobody disturbs · read, built : copies of it after extract and after index."""

    undisturbed: Path
    read: Path
    built: Path
    killed: Path


def kill_case(work: Path, case: Case, *, limit_bytes: int, say: Say) -> dict[str, Any]:
    """Makes the index undisturbed, and again once for each stage, with a kill half-way through it.

    What comes before the killed program is a copy of the undisturbed index as it was there.
    """
    at = places(work, case)
    work.mkdir(parents=True, exist_ok=True)
    at.config.write_text(case.toml(), encoding="utf-8")
    programs = building(case, at)
    runs = _Runs(work / "logs", limit_bytes)
    runs.whole(programs["generate"])
    folders = _Folders(*(work / f"{name}.hippo" for name in ("undisturbed", "read", "built", "killed")))
    sound = _undisturbed(runs, programs, at, folders)
    wanted = _files(folders.undisturbed)
    found = []
    for stage, program in _stages(sound):
        one = _killed(runs, programs, at, folders, stage, program, sound)
        after = _files(folders.killed)
        one["differing"] = sorted(role for role in wanted | after if wanted.get(role) != after.get(role))
        say(f"{stage}: killed after {one['killed_after_s']} s, then {one['again_s']} s; differing: {one['differing']}")
        found.append(one)
    passed = all(one["was_killed"] and not one["differing"] for one in found)
    command = f"python -m bench scale kills --work DIR --passages {case.passages}"
    return {
        "command": command,
        "passages": case.passages,
        "settings": dict(case.values),
        "passed": passed,
        "kills": found,
    }


class _Runs:
    """Runs programs, one after another, with their output in a folder."""

    def __init__(self, logs: Path, limit_bytes: int) -> None:
        logs.mkdir(exist_ok=True)
        self.told = logs / "stage"
        self._out, self._err, self._limit_bytes = logs / "kills.out", logs / "kills.err", limit_bytes

    def whole(self, words: Sequence[str]) -> _Run:
        """A run to the end; StageFailed when it does not get there."""
        ran = self.until(words, None)
        if ran.taken.ended != "done":
            tail = self._err.read_text(encoding="utf-8", errors="replace").strip()[-600:]
            raise StageFailed(f"'{' '.join(words[1:4])}' ended with {ran.status} {ran.stopped}: {tail}")
        lines = self._out.read_text(encoding="utf-8").strip().splitlines()
        return _Run(ran, json.loads(lines[-1]) if lines else {})

    def until(self, words: Sequence[str], kill: Kill | None) -> Ran:
        self.told.unlink(missing_ok=True)
        return watch(words, out=self._out, err=self._err, cwd=SOURCE, limit_bytes=self._limit_bytes, kill=kill)


def _undisturbed(runs: _Runs, programs: Mapping[str, list[str]], at: Places, folders: _Folders) -> dict[str, _Run]:
    """The index in peace, with copies of it on the way."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    found = {}
    for name, copy in (("extract", folders.read), ("index", folders.built), ("diffuse", None)):
        found[name] = runs.whole(_in(programs[name], at, folders.undisturbed))
        if copy is not None:
            shutil.copytree(folders.undisturbed, copy)
    return found


def _stages(sound: Mapping[str, _Run]) -> list[tuple[str, str]]:
    """The stages that are long enough to be killed, and the program of each."""
    inner = [name for name, seconds in sound["index"].said["seconds"].items() if seconds >= _SHORTEST_S]
    return [("extract", "extract"), *((name, "index") for name in inner if name != "extract"), ("diffuse", "diffuse")]


def _killed(
    runs: _Runs,
    programs: Mapping[str, list[str]],
    at: Places,
    folders: _Folders,
    stage: str,
    program: str,
    sound: Mapping[str, _Run],
) -> dict[str, Any]:
    """One index with one kill, made to its end."""
    shutil.rmtree(folders.killed, ignore_errors=True)
    before = {"extract": None, "index": folders.read, "diffuse": folders.built}[program]
    if before is not None:
        shutil.copytree(before, folders.killed)
    words = _in(programs[program], at, folders.killed)
    if program == "index":
        seconds = sound["index"].said["seconds"][stage]
        words = [sys.executable, "-m", "bench.scale.staged", str(runs.told), *words[3:]]
        cut = runs.until(words, _in_stage(runs.told, stage, _MIDST * seconds))
    else:
        seconds = sound[program].ran.taken.wall_s
        cut = runs.until(words, _grown(folders, stage, seconds))
    again = runs.whole(_in(programs[program], at, folders.killed))
    for later in list(sound)[list(sound).index(program) + 1 :]:
        runs.whole(_in(programs[later], at, folders.killed))
    return {
        "stage": stage,
        "was_killed": cut.taken.ended == "killed",
        "killed_after_s": cut.taken.wall_s,
        "again_s": again.ran.taken.wall_s,
        "wall_s": round(cut.taken.wall_s + again.ran.taken.wall_s, 2),
        "undisturbed_s": sound[program].ran.taken.wall_s,
        "stage_s": seconds,
        "again_stages_s": again.said.get("seconds"),
        "reused": again.said.get("extraction", {}).get("reused") if program != "diffuse" else None,
    }


def _in_stage(told: Path, stage: str, after_s: float) -> Kill:
    """Kills when the verb has been in the stage for so long."""

    def kill(_: float) -> bool:
        name, _, began = told.read_text(encoding="ascii").partition(" ") if told.exists() else ("", "", "")
        return name == stage and bool(began) and time.monotonic() - float(began) >= after_s

    return kill


def _grown(folders: _Folders, stage: str, seconds: float) -> Kill:
    """Kills extract when half of the log is there, diffuse when half of its time is over and it has begun."""
    whole = _log_bytes(folders.read)

    def kill(elapsed: float) -> bool:
        if stage == "extract":
            return _log_bytes(folders.killed) >= _MIDST * whole
        return elapsed >= _MIDST * seconds and (folders.killed / "diffusing").exists()

    return kill


def _log_bytes(index: Path) -> int:
    return sum(path.stat().st_size for path in (index / "openie").glob("*.jsonl"))


def _in(words: Sequence[str], at: Places, index: Path) -> list[str]:
    """The same program for an index in another folder."""
    return [str(index) if word == str(at.index) else word for word in words]


def _files(index: Path) -> dict[str, str]:
    """The hash of every file of the current generation, by what it is."""
    return {role: entry.sha256 for role, entry in current_manifest(index).files.items()}
