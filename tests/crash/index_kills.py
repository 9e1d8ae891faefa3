"""Kills writers of an index at random points, lets them run again, and tells what was lost.

    python tests/crash/index_kills.py FOLDER KILLS SEED

A trial takes an index of its own through all steps. Up to twice a step's process is killed (SIGKILL), by turns after a
random part of the time that it takes and at a random system call, of each phase alike; then it is left alone. Prints
one JSON object; its lists are empty when nothing was lost.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from index_steps import records
from small_index import WIDTH, Saying, hashes
from system_calls import Call, nothing, watched

from hippogpu import Index, Passage, RunConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import HippoError
from hippogpu.index import clean_index, diffuse_index
from hippogpu.store import current_manifest, files_folder, has_index, verify
from hippogpu.store.generations import manifest_path
from hippogpu.text import content_key, identity

KILLS_A_STEP = 2
# Longer than a trial, so that there are generations for gc to remove.
LEFT_FOR_GC_S = 3600.0
NAMES = ("Ada Lovelace", "Charles Babbage", "Erik Hort", "Montebello", "Rockland County", "Oliver Badman", "Leith")


def passage(number: int, *, verb: str = "met") -> Passage:
    one, two, three = (NAMES[(number + step) % 7] for step in (0, 2, 3))
    return Passage(f"p{number}", f"Note {number}", f"{one}|{verb}|{two};{two}|lived in|{three} {number % 5}")


FIRST, MORE = [passage(n) for n in range(31)], [passage(n) for n in range(31, 41)]
CHANGED = [passage(n, verb="wrote to") for n in (0, 7, 30, 33)]
GONE = ("p1", "p7", "p32", "p40")


class Step(NamedTuple):
    """A step, and the passages that an index has after it; diffused: whether the vectors are fresh then."""

    name: str
    act: Callable[[Path], object]
    survivors: Sequence[Passage]
    diffused: bool = True


def opened(root: Path, *, grace_s: float = 0) -> Index:
    return Index.open(
        root,
        extractor=Saying(),
        embedder=HashingEmbedder(WIDTH),
        run=RunConfig(grace_s=grace_s),
        encoder_spec=f"hashing:{WIDTH}",
    )


def adding(passages: Sequence[Passage], *, grace_s: float = 0) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        with opened(root, grace_s=grace_s) as index:
            index.add(passages)
            index.commit()

    return act


def delete(root: Path) -> None:
    with opened(root, grace_s=LEFT_FOR_GC_S) as index:
        index.delete(GONE)
        index.commit(diffuse="never")


def force(root: Path) -> None:
    with opened(root) as index:
        index.commit(force="all")


def steps() -> tuple[Step, ...]:
    """All steps in their order."""
    updated = list({p.id: p for p in [*FIRST, *MORE, *CHANGED]}.values())
    left = [p for p in updated if p.id not in GONE]
    return (
        Step("index", adding(FIRST), FIRST),
        Step("add", adding(MORE), [*FIRST, *MORE]),
        Step("update", adding(CHANGED, grace_s=LEFT_FOR_GC_S), updated),
        Step("delete", delete, left, diffused=False),
        Step("gc", lambda root: clean_index(root, grace_s=0, unfinished=True, forget=True), left, diffused=False),
        Step("diffuse", diffuse_index, left),
        Step("force", force, left),
    )


STEPS = steps()


class Sound(NamedTuple):
    """What an undisturbed step takes, and the arrays of its survivors, indexed at once in a folder of their own."""

    calls: list[Call]
    seconds: float
    arrays: dict[str, str]


def undisturbed(folder: Path) -> list[Sound]:
    """Each step in one index, after a run that loads and compiles what is needed."""
    STEPS[0].act(folder / "warm")
    sound = []
    for step in STEPS:
        with watched(folder / "undisturbed", nothing) as calls:
            started = time.monotonic()
            step.act(folder / "undisturbed")
            seconds = time.monotonic() - started
        at_once = folder / f"at-once-{step.name}"
        with opened(at_once) as index:
            index.add(step.survivors)
            index.commit(diffuse="auto" if step.diffused else "never")
        sound.append(Sound(calls, seconds, hashes(at_once)))
        assert hashes(folder / "undisturbed") == sound[-1].arrays, step.name
    return sound


def forked(act: Callable[[Path], object], root: Path, *, after_s: float | None = None, at: int | None = None) -> bool:
    """The step in a child, killed after a time or before the call of a number; whether it came to its end."""

    def die(number: int, call: Call) -> None:
        if number == at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        with watched(root, die if at is not None else nothing):
            act(root)
        os._exit(0)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the step ended with {code}"
    return code == 0


def kill_point(chance: random.Random, sound: Sound, *, by_time: bool) -> dict[str, Any]:
    """When to kill: after a time, or at a call of a phase."""
    if by_time:
        return {"after_s": chance.uniform(0, sound.seconds * 1.1)}
    folders: dict[str, list[int]] = {}
    for number, call in enumerate(sound.calls):
        folders.setdefault(call.path.name if "CURRENT" in call.path.name else call.path.parent.name, []).append(number)
    return {"at": chance.choice(folders[chance.choice(sorted(folders))])}


class Seen(NamedTuple):
    """A folder at a moment: what tells the phase in which a kill fell."""

    generation: int
    files: frozenset[str]
    manifest: bool
    records: frozenset[str]


def seen(root: Path) -> Seen:
    generation = current_manifest(root).generation if has_index(root) else 0
    files = {path.name for path in files_folder(root).glob("*-*")}
    return Seen(generation, frozenset(files), manifest_path(root, generation + 1).exists(), frozenset(records(root)))


def phase(step: Step, before: Seen, after: Seen) -> str:
    """Where the kill fell, by what it left."""
    if step.name == "gc":
        return "in gc" if after.files != before.files or after.records != before.records else "before or after gc"
    if after.generation > before.generation:
        return "behind CURRENT"
    if after.manifest:
        return "between manifest and CURRENT"
    if after.files - before.files:
        return "between first and last file"
    return "in the build" if after.records >= keys(step.survivors) else "before the last record"


def keys(passages: Sequence[Passage]) -> frozenset[str]:
    return frozenset(content_key(identity(one.title, one.text)) for one in passages)


def trial(folder: Path, seed: int, sound: Sequence[Sound], found: dict[str, Any]) -> None:
    """One index through all steps; what went wrong is added to `found`."""
    chance, root = random.Random(seed), folder / f"trial-{seed}"
    before_step: dict[str, str] = {}
    for step, whole in zip(STEPS, sound, strict=True):
        for left in reversed(range(chance.randint(0, KILLS_A_STEP) + 1)):
            before = seen(root)
            by_time = bool((found["kills"] + seed) % 2)
            point = kill_point(chance, whole, by_time=by_time) if left else {}
            ended = forked(step.act, root, **point)
            case = [seed, step.name, point]
            look_at(root, step, case, (before_step, whole.arrays), before, found)
            if ended:
                break
            found["kills"] += 1
            found["kills_by_call"] += not by_time
            found["steps"][step.name] += 1
            found["phases"][phase(step, before, seen(root))] += 1
        if hashes(root) != whole.arrays:
            found["other_index"].append([seed, step.name])
        before_step = whole.arrays


def look_at(
    root: Path,
    step: Step,
    case: list[Any],
    generations: tuple[dict[str, str], dict[str, str]],
    before: Seen,
    found: dict[str, Any],
) -> None:
    """Whether the old or the new generation is there and whole, and every record that was."""
    try:
        here = hashes(root) if has_index(root) else {}
        if here not in generations:
            found["neither"].append(case)
        found["broken"] += [[*case, problem] for problem in (verify(root, full=True) if here else [])]
    except HippoError as error:
        found["broken"].append([*case, str(error)])
    kept = before.records & keys(step.survivors) if step.name == "gc" else before.records
    if not kept <= records(root):
        found["lost"].append(case)


def main(folder: Path, kills: int, seed: int) -> None:
    found: dict[str, Any] = {"trials": 0, "kills": 0, "kills_by_call": 0, "steps": Counter(), "phases": Counter()}
    found |= {"neither": [], "broken": [], "lost": [], "other_index": []}
    sound = undisturbed(folder)
    while found["kills"] < kills:
        found["trials"] += 1
        trial(folder, seed + found["trials"], sound, found)
    print(json.dumps(found | {"seconds": {s.name: round(one.seconds, 3) for s, one in zip(STEPS, sound, strict=True)}}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
