"""One writer at a time, and the order in which a generation reaches the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small_index import PASSAGES, hashes, index_of, open_index, stating

from hippogpu.errors import IndexLockedError
from hippogpu.store import WriterLock, current_manifest, generations
from hippogpu.store import files as files_module

CHANGED = [*PASSAGES, stating("new", "x|y|zzz")]
OWNER = """
import sys, time
from pathlib import Path
from hippogpu.store import WriterLock
lock = WriterLock(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(60)
"""


def owner_of(root: Path) -> subprocess.Popen[str]:
    """Another process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", OWNER, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_second_writer_is_refused_with_the_owners_process(root: Path) -> None:
    with owner_of(root) as process:
        with pytest.raises(IndexLockedError, match=rf"process {process.pid} on .*Wait"):
            open_index(root)
        process.kill()


def test_a_killed_owner_leaves_the_folder_free(root: Path) -> None:
    with owner_of(root) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert index_of(root).generation == 1


def test_a_second_writer_in_the_same_process_is_refused(root: Path) -> None:
    with open_index(root), pytest.raises(IndexLockedError, match=f"process {os.getpid()}"):
        open_index(root)


def test_a_closed_writer_leaves_the_folder_free(root: Path) -> None:
    open_index(root).close()
    open_index(root).close()


def test_an_exception_in_the_block_leaves_the_folder_free(root: Path) -> None:
    with pytest.raises(ZeroDivisionError), open_index(root):
        raise ZeroDivisionError
    open_index(root).close()


def test_a_refused_writer_does_not_free_the_folder(root: Path) -> None:
    with open_index(root):
        for _ in range(2):
            with pytest.raises(IndexLockedError):
                open_index(root)


def test_closing_twice_frees_no_ones_lock(root: Path) -> None:
    first = open_index(root)
    first.close()
    with open_index(root):
        first.close()
        with pytest.raises(IndexLockedError):
            open_index(root)


def test_a_child_that_inherited_the_lock_does_not_keep_it(root: Path) -> None:
    lock = WriterLock(root)
    with subprocess.Popen(["sleep", "60"], pass_fds=[lock._file]) as child:
        lock.release()
        WriterLock(root).release()
        child.kill()


def test_readers_need_no_lock(made: Path) -> None:
    with open_index(made):
        assert current_manifest(made).generation == 1


def test_names_of_files_and_manifest_are_durable_before_current_names_them(root: Path, monkeypatch) -> None:
    events: list[str] = []
    replace, sync = Path.replace, files_module.sync_folder
    monkeypatch.setattr(Path, "replace", lambda self, to: (events.append(Path(to).name), replace(self, to))[1])
    for module in (files_module, generations):
        monkeypatch.setattr(module, "sync_folder", lambda path: (events.append(f"sync {path.name}"), sync(path)))
    index_of(root)
    last_file = max(i for i, name in enumerate(events) if name.endswith((".npy", ".arrow")))
    assert events[last_file + 1 :] == [
        *("sync files", "0000000001.json", "sync manifests", "CURRENT", "sync small.hippo"),
    ]


def test_a_generation_that_was_not_published_is_not_there(made: Path, monkeypatch) -> None:
    before = hashes(made)
    real = Path.replace

    def full_disk(self: Path, to: Path) -> Path:
        if Path(to).name == "CURRENT":
            raise OSError(28, "No space left on device")
        return real(self, to)

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(OSError, match="No space"):
        index_of(made, CHANGED)
    monkeypatch.undo()
    assert (current_manifest(made).generation, hashes(made)) == (1, before)
    assert index_of(made, CHANGED).generation == 2
