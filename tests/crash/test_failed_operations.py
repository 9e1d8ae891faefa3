"""Every system call that writes an index fails once, in every step of a writer's work; the index survives each.

By default five calls a step, each in another way. HIPPOGPU_FAULTS=all fails every call in every way, for a quarter of
an hour.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from index_steps import STEPS, Step, collect, records
from small_index import hashes
from system_calls import Call, Decide, nothing, watched

from hippogpu.errors import HippoError
from hippogpu.store import current_manifest, files_folder, has_index, verify

SAMPLE = 5
ALL = os.environ.get("HIPPOGPU_FAULTS") == "all"


class Fault(NamedTuple):
    """How the call of a number fails. for_good: so do all after it. taken: a write takes half, and the next fails."""

    code: int
    for_good: bool = False
    taken: bool = False

    def of(self, number: int) -> Decide:
        def decide(at: int, call: Call) -> int | None:
            if self.taken and at == number and call.name == "write":
                return len(call.other) // 2
            if at == number + self.taken or (self.for_good and at > number):
                raise OSError(self.code, os.strerror(self.code))
            return None

        return decide


FAULTS = (
    *(Fault(errno.ENOSPC), Fault(errno.EIO), Fault(errno.EACCES), Fault(errno.ENOSPC, taken=True)),
    Fault(errno.EROFS, for_good=True),
)


class Sound(NamedTuple):
    """What an undisturbed step comes to: its calls, the arrays before and after, the records before."""

    calls: list[Call]
    before: dict[str, str]
    after: dict[str, str]
    records: set[str]


@dataclass
class Found:
    """What the faults of a step led to; each list of words is of things that must not be."""

    calls: int
    faults: int = 0
    harmless: int = 0
    errors: int = 0
    strangers: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    littered: list[str] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


@pytest.fixture(scope="module", params=STEPS, ids=lambda step: step.name)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What was found with a step."""
    step: Step = request.param
    folder = tmp_path_factory.mktemp("faults")
    step.prepare(folder / "before.hippo")
    sound = undisturbed(step, folder)
    result = Found(len(sound.calls))
    for number, fault in chosen(step, sound.calls):
        once(step, folder, sound, number, fault, result)
    print(
        f"{step.name}: {result.calls} calls, {result.faults} faults, {result.errors} errors, {result.harmless} harmless"
    )
    return result


def undisturbed(step: Step, folder: Path) -> Sound:
    root = copied(folder, "undisturbed")
    before, had = arrays(root), records(root)
    with watched(root, nothing) as calls:
        step.act(root)
    return Sound(calls, before, arrays(root), set() if step.loses else had)


def chosen(step: Step, calls: Sequence[Call]) -> Iterator[tuple[int, Fault]]:
    """The calls to fail, by number, and how: each in each way, or a sample from the first to the last."""
    if ALL:
        for number, call in enumerate(calls):
            yield from ((number, fault) for fault in FAULTS if call.name == "write" or not fault.taken)
        return
    chance = random.Random(step.name)
    numbers = sorted({0, len(calls) - 1, *chance.sample(range(len(calls)), SAMPLE - 2)})
    yield from ((number, FAULTS[(len(step.name) + turn) % len(FAULTS)]) for turn, number in enumerate(numbers))


def once(step: Step, folder: Path, sound: Sound, number: int, fault: Fault, found: Found) -> None:
    """Fails one call of a step and looks at what is left, then does the step again."""
    root, before = copied(folder, "faulty"), open_in(folder)
    case = f"{fault} at {number}: {sound.calls[number].name} {sound.calls[number].path}"
    found.faults += 1
    with watched(root, fault.of(number)):
        told = failure(step.act, root)
    if told is None:
        found.harmless += 1
    elif not isinstance(told, HippoError):
        found.strangers.append(f"{case}: {told!r}")
    else:
        found.errors += 1
        if str(root) not in str(told) or os.strerror(fault.code) not in str(told):
            found.nameless.append(f"{case}: {told}")
    if open_in(folder) != before:
        found.held.append(case)
    found.broken += [f"{case}: {problem}" for problem in problems(root, sound)]
    if not sound.records <= records(root):
        found.lost.append(case)
    if not fault.for_good and list(root.rglob(".*.tmp")):
        found.littered.append(f"{case}: {list(root.rglob('.*.tmp'))}")
    step.act(root)
    collect_if_there(root)
    if arrays(root) != sound.after or not sound.records <= records(root) or strays(root):
        found.different.append(f"{case}: {strays(root)}")


def copied(folder: Path, name: str) -> Path:
    """A fresh copy of the index that the step starts from."""
    root = folder / f"{name}.hippo"
    shutil.rmtree(root, ignore_errors=True)
    if (folder / "before.hippo").exists():
        shutil.copytree(folder / "before.hippo", root)
    return root


def failure(act: Callable[[Path], object], root: Path) -> Exception | None:
    try:
        act(root)
    except Exception as error:  # whatever it is, it is looked at
        return error
    return None


def open_in(folder: Path) -> list[str]:
    """The files below a folder that are open for writing."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        # A mapping that nobody holds any longer may let its handle go at any moment.
        with suppress(FileNotFoundError):
            path = os.readlink(f"/proc/self/fd/{handle}")
            if str(folder) in path and not _only_read(handle):
                found.append(path)
    return sorted(found)


def _only_read(handle: str) -> bool:
    lines = Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines()
    flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags"))
    return flags & os.O_ACCMODE == os.O_RDONLY


def arrays(root: Path) -> dict[str, str]:
    return hashes(root) if has_index(root) else {}


def problems(root: Path, sound: Sound) -> list[str]:
    """What is wrong with the index, which must be the one before or the one after."""
    try:
        if arrays(root) not in (sound.before, sound.after):
            return ["neither the old nor the new generation"]
        return verify(root, full=True) if has_index(root) else []
    except HippoError as error:
        return [str(error)]


def collect_if_there(root: Path) -> None:
    if has_index(root):
        collect(root)


def strays(root: Path) -> list[str]:
    """The files that are no part of the index, after gc."""
    if not has_index(root):
        return []
    known = {entry.file for entry in current_manifest(root).files.values()}
    return sorted(path.name for path in files_folder(root).iterdir() if path.name not in known)


@pytest.mark.timeout(3600)
def test_faults_really_happened(found: Found) -> None:
    assert found.faults >= SAMPLE - 2
    assert found.errors > 0


def test_every_failure_is_an_error_of_the_tree_or_hinders_nothing(found: Found) -> None:
    assert found.strangers == []


def test_the_old_or_the_new_generation_is_there_and_whole_after_every_failure(found: Found) -> None:
    assert found.broken == []


def test_no_failure_loses_a_record(found: Found) -> None:
    assert found.lost == []


def test_no_failure_leaves_half_a_file(found: Found) -> None:
    assert found.littered == []


def test_every_error_names_the_place_and_the_reason(found: Found) -> None:
    assert found.nameless == []


def test_no_failure_leaves_a_file_open(found: Found) -> None:
    assert found.held == []


def test_the_same_run_again_comes_to_the_arrays_of_an_undisturbed_one(found: Found) -> None:
    assert found.different == []


@pytest.mark.parametrize("step", STEPS if ALL else STEPS[:3], ids=lambda step: step.name)
def test_writes_that_the_system_takes_in_part_change_nothing(tmp_path: Path, step: Step) -> None:
    step.prepare(tmp_path / "before.hippo")
    sound = undisturbed(step, tmp_path)
    root = copied(tmp_path, "in-parts")
    with watched(root, lambda _, call: max(1, len(call.other) // 3) if call.name == "write" else None) as calls:
        step.act(root)
    assert (arrays(root), problems(root, sound)) == (sound.after, [])
    assert len(calls) > len(sound.calls) or step.name == "gc"
