"""The one writer of an index folder."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakSet

from hippogpu.disk import make_folder, refuse_link, sync_folder, sync_name, unwritable, write_all
from hippogpu.errors import IndexLockedError, StoredIndexError
from hippogpu.store.generations import has_index

LOCK = "LOCK"
# The folders that writers write to, and those of them whose entries they open for writing or write into.
_WRITTEN, _WRITTEN_WITHIN = ("files", "manifests", "openie", "vectors", "diffusing"), ("openie", "vectors", "diffusing")
_OWNER = re.compile(r"(process [0-9]{1,10} on [\w.-]{1,255}(?: since [0-9T:+-]{1,40})?)\n")


class WriterLock:
    """The right to write an index folder; the system takes it back when the process ends, however it ends.

    The folder is made when there is none. StoredIndexError when it cannot be written or reaches outside itself,
    IndexLockedError while another writer has it.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._file, self._process = root, -1, os.getpid()
        _close_in_children()
        try:
            make_folder(root)
            self._file = _locked(root)
            _HELD.add(self)
            _refuse_links(root)
            # What a killed writer made may not be on disk yet, and is built upon from here on.
            sync_folder(root)
            if not has_index(root):
                sync_name(root)
        except OSError as error:
            self.release()
            raise unwritable(root, error) from error
        except StoredIndexError:
            self.release()
            raise
        _sign(self._file)

    def remove_folder(self) -> None:
        """Removes the folder where it holds nothing but the lock: for a writer that made it in vain."""
        with suppress(OSError):
            if [path.name for path in self._root.iterdir()] == [LOCK]:
                (self._root / LOCK).unlink()
                self._root.rmdir()

    def release(self) -> None:
        if self._file >= 0:
            file, self._file = self._file, -1
            # A child that has inherited the file shares the lock: it must not let it go for its parent, and would keep
            # it if the parent only closed the file.
            if os.getpid() == self._process:
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_HELD: WeakSet[WriterLock] = WeakSet()


@cache
def _close_in_children() -> None:
    """From now on children of fork close what they inherit: one that outlives a killed writer keeps no lock."""
    os.register_at_fork(after_in_child=_release_held)


def _release_held() -> None:
    for lock in list(_HELD):
        lock.release()


def _locked(root: Path) -> int:
    """The lock file, locked, and surely the one that others will find."""
    while True:
        file = _lock_file(root / LOCK)
        try:
            _lock(file, root)
            if _is_at(file, root / LOCK):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is the one of that name: somebody may have removed it before it was locked."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _lock_file(path: Path) -> int:
    """The lock file, open, made when there is none; StoredIndexError when it is no plain file."""
    refuse_link(path)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise StoredIndexError(f"'{path}' is no plain file, so it cannot be the lock of an index. Remove it.")
    return file


def _lock(file: int, root: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = _OWNER.fullmatch(os.pread(file, 400, 0).decode("utf-8", "replace"))
        raise IndexLockedError(
            f"The index '{root}' is being written by {owner[1] if owner else 'another process'}. Wait for it to finish."
        ) from error
    except OSError as error:
        raise StoredIndexError(
            f"The file system of '{root}' cannot lock files ({error.strerror}), so nothing would keep a second writer "
            "out. Index into a folder on a local disk, then copy it here: reading needs no lock."
        ) from error


def _refuse_links(root: Path) -> None:
    """StoredIndexError when a folder that writers write to, or a file there that they write on, is a symbolic link."""
    for folder in (root / name for name in _WRITTEN):
        refuse_link(folder)
        if folder.name in _WRITTEN_WITHIN and folder.is_dir():
            for path in folder.iterdir():
                refuse_link(path)


def _sign(file: int) -> None:
    """Says who holds the lock, to those who are refused; a disk too full for that hinders no one."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):
        os.ftruncate(file, 0)
        write_all(file, f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode())
