"""After each call of a writer the power is cut: whatever the disk kept, the old or the new generation opens, whole.

By default in the step that replaces a generation and removes the old one; HIPPOGPU_FAULTS=all: in every step, with more
chances.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from index_steps import STEPS, Step, records
from power_cut import ALL, EMPTY, LEAST, ZEROS, Cut, Disk, Tree, by_chance, laid_out, tree_of
from small_index import hashes
from system_calls import Call, nothing, watched

from hippogpu.errors import HippoError
from hippogpu.store import has_index, verify

EVERY = os.environ.get("HIPPOGPU_FAULTS") == "all"
CHANCES = 12 if EVERY else 1
CUT = STEPS if EVERY else [step for step in STEPS if step.name == "update"]
RUN_AGAIN_EVERY = 1 if EVERY else 12


@dataclass
class Found:
    """What was found after the cuts of a step."""

    calls: int = 0
    trees: int = 0
    old: int = 0
    new: int = 0
    again: int = 0
    unseen: bool = False
    broken: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


@pytest.fixture(scope="module", params=CUT, ids=lambda step: step.name)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What was found with a step."""
    step: Step = request.param
    folder = tmp_path_factory.mktemp("cuts")
    root = folder / "index.hippo"
    step.prepare(root)
    before, had, disk = arrays(root), set() if step.loses else records(root), Disk(root)
    with watched(root, nothing) as calls:
        step.act(root)
    result = Found(len(calls))
    generations = (before, arrays(root))
    for case, tree, had_by_then in cuts(disk, calls, had, folder, step):
        look_at(step, case, tree, had_by_then, generations, folder / "cut.hippo", result)
    result.unseen = disk.after(ALL) != tree_of(root)
    return result


def cuts(
    disk: Disk, calls: list[Call], had: set[str], folder: Path, step: Step
) -> Iterator[tuple[str, Tree, set[str]]]:
    """The different trees that cuts after each call leave, and the records that were waited for by then."""
    known: set[int] = set()
    for number, call in enumerate(calls):
        disk.play(call)
        durable = had if step.loses else had | records_in(disk.after(LEAST), folder / "records.hippo")
        for cut in (LEAST, EMPTY, ZEROS, *(by_chance(number * CHANCES + turn) for turn in range(CHANCES))):
            tree = without_temporaries(disk.after(cut))
            key = hash(frozenset(tree.items()))
            if key not in known:
                known.add(key)
                yield named(number, call, cut), tree, durable


def named(number: int, call: Call, cut: Cut) -> str:
    return f"after {number} ({call.name} {call.path.name}), {cut.name}"


def without_temporaries(tree: Tree) -> Tree:
    """They change nothing; that they do not is what test_no_failure_leaves_half_a_file and gc are for."""
    return {path: contents for path, contents in tree.items() if not path.name.endswith(".tmp")}


def records_in(tree: Tree, root: Path) -> set[str]:
    logs = {
        path: contents for path, contents in tree.items() if path in (Path(), Path("openie")) or path.suffix == ".jsonl"
    }
    shutil.rmtree(root, ignore_errors=True)
    laid_out(logs, root)
    return records(root)


def look_at(
    step: Step,
    case: str,
    tree: Tree,
    had: set[str],
    generations: tuple[dict[str, str], dict[str, str]],
    root: Path,
    found: Found,
) -> None:
    shutil.rmtree(root, ignore_errors=True)
    laid_out(tree, root)
    found.trees += 1
    try:
        here = arrays(root)
        found.old, found.new = found.old + (here == generations[0]), found.new + (here == generations[1])
        problems = verify(root, full=True) if here else []
        found.broken += [f"{case}: {problem}" for problem in problems]
        if here not in generations:
            found.broken.append(f"{case}: neither the old nor the new generation")
        if not had <= records(root):
            found.lost.append(case)
        if found.trees % RUN_AGAIN_EVERY == 0:
            found.again += 1
            step.act(root)
            if arrays(root) != generations[1]:
                found.different.append(case)
    except HippoError as error:
        found.broken.append(f"{case}: {error}")


def arrays(root: Path) -> dict[str, str]:
    return hashes(root) if has_index(root) else {}


@pytest.mark.timeout(3600)
def test_the_power_was_cut_before_and_after_the_commit(found: Found) -> None:
    assert found.trees > 5
    assert min(found.old, found.new) > 0


def test_every_change_of_the_folder_was_seen(found: Found) -> None:
    assert not found.unseen


def test_the_old_or_the_new_generation_is_whole_after_a_power_cut_at_any_time(found: Found) -> None:
    assert found.broken == []


def test_records_that_were_waited_for_outlive_a_power_cut(found: Found) -> None:
    assert found.lost == []


def test_the_same_run_after_a_power_cut_comes_to_the_arrays_of_an_undisturbed_one(found: Found) -> None:
    assert found.again > 1
    assert found.different == []
