"""One writer at a time, and the order in which a generation reaches the disk."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small_index import PASSAGES, hashes, index_of, open_index, stating

from hippogpu import Index, IndexConfig, ReplayExtractor
from hippogpu.errors import ConfigError, IndexLockedError, StoredIndexError
from hippogpu.store import WriterLock, current_manifest, lock, publish, verify

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
    replace, fsync = os.replace, os.fsync

    def synced(handle: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{handle}")).name
        events.append(f"sync {'temporary' if name.endswith('.tmp') else name}")
        fsync(handle)

    monkeypatch.setattr(os, "replace", lambda old, new: (events.append(Path(new).name), replace(old, new))[1])
    monkeypatch.setattr(os, "fsync", synced)
    index_of(root)
    last_file = max(i for i, name in enumerate(events) if name.endswith((".npy", ".arrow")))
    assert events[last_file + 1 :] == [
        *("sync files", "sync small.hippo", "sync temporary", "0000000001.json", "sync manifests"),
        *("sync temporary", "CURRENT", "sync small.hippo"),
    ]


def full_disk(name: str, real: Callable[[Path, Path], None] = os.replace) -> Callable[[Path, Path], None]:
    """os.replace, but for one name."""

    def replace(old: Path, new: Path) -> None:
        if Path(new).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(old, new)

    return replace


def test_a_generation_that_was_not_published_is_not_there(made: Path, monkeypatch) -> None:
    before = hashes(made)
    monkeypatch.setattr(os, "replace", full_disk("CURRENT"))
    with pytest.raises(StoredIndexError, match=r"CURRENT' cannot be written: No space.* as it was.*Make room"):
        index_of(made, CHANGED)
    monkeypatch.undo()
    assert (current_manifest(made).generation, hashes(made)) == (1, before)
    assert index_of(made, CHANGED).generation == 2


def test_a_generation_whose_pointer_the_disk_did_not_confirm_is_said_to_be_there(made: Path, monkeypatch) -> None:
    fsync, seen = os.fsync, [""]

    def failing(handle: int) -> None:
        seen.append(os.readlink(f"/proc/self/fd/{handle}"))
        if seen[-1].endswith("small.hippo") and ".CURRENT." in seen[-2]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(
        StoredIndexError, match=r"Generation 2 .* is written and current, but the disk has not confirmed"
    ):
        index_of(made, CHANGED)
    monkeypatch.undo()
    assert (current_manifest(made).generation, verify(made, full=True)) == (2, [])


def test_a_manifest_that_current_names_is_never_replaced(made: Path) -> None:
    with pytest.raises(StoredIndexError, match=r"at generation 1 already.*Open the index again"):
        publish(made, current_manifest(made))


def test_an_owner_that_was_stopped_keeps_the_folder(root: Path) -> None:
    with owner_of(root) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(IndexLockedError, match=rf"process {process.pid} on \S+ since 20\d\d-\d\d-\d\dT\S+\. Wait"):
            WriterLock(root)
        process.kill()


def test_an_owner_that_died_and_was_not_waited_for_leaves_the_folder_free(root: Path) -> None:
    with owner_of(root) as process:
        process.kill()
        while Path(f"/proc/{process.pid}/task").exists() and len(os.listdir(f"/proc/{process.pid}/task")) > 1:
            time.sleep(0.01)
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        WriterLock(root).release()


RUBBISH = (
    b"",
    b"\xff\0" * 200,
    b"process 1 on \x1b[31mhost\n",
    b"process 77 on gone since 2026-01-01T00:00:00+00:00\n",
)


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_what_a_lock_file_holds_keeps_no_one_out(root: Path, rubbish: bytes) -> None:
    root.mkdir()
    (root / "LOCK").write_bytes(rubbish)
    with WriterLock(root), pytest.raises(IndexLockedError, match=f"process {os.getpid()} on"):
        WriterLock(root)


def test_rubbish_in_a_lock_that_is_held_is_not_shown(root: Path) -> None:
    with WriterLock(root):
        (root / "LOCK").write_bytes(b"\x1b[31m rubbish")
        with pytest.raises(IndexLockedError, match="written by another process"):
            WriterLock(root)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused_in_these_words(root: Path, monkeypatch, code: int) -> None:
    def none(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(lock.fcntl, "flock", none)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(StoredIndexError, match=r"cannot lock files .*local disk"):
        WriterLock(root)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(("code", "step"), [(errno.EROFS, "Mount"), (errno.EACCES, "Set its permissions")])
def test_a_folder_that_cannot_be_written_is_refused_by_name(made: Path, monkeypatch, code: int, step: str) -> None:
    real = os.open

    def read_only(path: Path, flags: int, *rest: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(code, os.strerror(code))
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(StoredIndexError, match=rf"small\.hippo' cannot be written: .*{step}"):
        WriterLock(made)


def test_a_disk_too_full_to_sign_the_lock_hinders_no_one(made: Path, monkeypatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with WriterLock(made), pytest.raises(IndexLockedError, match="another process"):
        WriterLock(made)


LINKS = (
    "LOCK",
    "files",
    "manifests",
    "openie",
    "vectors",
    "diffusing",
    "openie/saying.jsonl",
    "vectors/0123456789abcdef",
)


@pytest.mark.parametrize("name", LINKS)
def test_a_link_where_a_writer_would_write_is_refused_and_what_it_points_to_is_as_it_was(
    made: Path, tmp_path: Path, name: str
) -> None:
    place, outside = made / name, tmp_path / "outside"
    outside.mkdir() if "." not in name and name != "LOCK" else outside.write_text("dear")
    if place.is_dir():
        shutil.rmtree(place)
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(outside)
    with pytest.raises(StoredIndexError, match=rf"{name}' is a symbolic link"):
        open_index(made)
    assert list(outside.iterdir()) == [] if outside.is_dir() else outside.read_text() == "dear"


def test_an_index_folder_that_is_itself_a_link_is_an_index(made: Path, tmp_path: Path) -> None:
    (tmp_path / "link.hippo").symlink_to(made)
    assert index_of(tmp_path / "link.hippo", CHANGED).generation == 2
    assert current_manifest(made).generation == 2


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_plain_file_is_refused_without_waiting(root: Path, make: Callable[[Path], None]) -> None:
    root.mkdir()
    make(root / "LOCK")
    with pytest.raises(StoredIndexError, match=r"LOCK' is no plain file|cannot be written: Is a directory"):
        WriterLock(root)


def test_a_child_of_fork_neither_frees_nor_keeps_the_lock(root: Path) -> None:
    index = open_index(root)
    child = os.fork()
    if not child:
        index.close()
        time.sleep(60)
        os._exit(0)
    time.sleep(0.3)
    with pytest.raises(IndexLockedError):
        open_index(root)
    index.close()
    open_index(root).close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_child_that_outlives_a_killed_writer_keeps_no_lock(root: Path) -> None:
    child = 'if os.fork() == 0:\n    print("child", flush=True)\n    time.sleep(3)\n    os._exit(0)\n'
    grown = OWNER.replace('print("locked"', f'import os\n{child}print("locked"')
    with subprocess.Popen([sys.executable, "-c", grown, str(root)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # The child has let go of the lock as soon as it runs.
        process.stdout.readline(), process.stdout.readline()
        process.kill()
        process.wait()
        process.stdout.close()
        open_index(root).close()


def test_a_writer_refused_for_its_settings_leaves_no_folder(root: Path) -> None:
    with pytest.raises(ConfigError):
        Index.open(root, extractor=ReplayExtractor(stored(root.parent)), config=IndexConfig(chunk_tokens=8))
    assert not root.exists()


def stored(folder: Path) -> Path:
    path = folder / "openie.jsonl"
    path.write_text('{"_id": "a", "entities": [], "triples": []}\n')
    return path
