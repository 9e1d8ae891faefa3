"""Where an export or an import is written: beside its target first, and there only when it is whole."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hippogpu.disk import sync_folder
from hippogpu.errors import HippoError, UsageError

LOCK, _OLD = "LOCK", "replaced"


@contextmanager
def whole(target: Path, *, overwrite: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A path to write at, which takes the target's place when the block ends well and is removed when it does not.

    What a killed process left is removed by the next one. UsageError when the target is there and overwrite is not
    set, when it is nothing that `replaceable` knows, or while another process writes it.
    """
    folder = target.with_name(f"{target.name}.partial")
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder '{target.parent}' to write '{target.name}' into. Make it first.")
    with _held(folder):
        _clear(folder, target)
        _refuse(target, overwrite=overwrite, replaceable=replaceable)
        try:
            yield folder / target.name
            _sync(folder / target.name)
            _put(folder / target.name, target, folder / _OLD)
        except OSError as error:
            raise HippoError(
                f"'{target}' cannot be written: {error.strerror or error}. Nothing of it was left behind, and what was "
                "there before is as it was. Make room or set its permissions, then run again."
            ) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _refuse(target: Path, *, overwrite: bool, replaceable: Callable[[Path], bool]) -> None:
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise UsageError(f"'{target}' exists. Name another target, or replace it with --overwrite.")
    if target.is_symlink() or not replaceable(target):
        raise UsageError(f"'{target}' is no export of this form, so it is not replaced. Remove it, or name another.")


def _put(made: Path, target: Path, aside: Path) -> None:
    """Moves the result to its place. Files are replaced in one step; a folder that was there is moved aside first."""
    if target.is_dir():
        target.rename(aside)
    made.rename(target)
    sync_folder(target.parent)


def _clear(folder: Path, target: Path) -> None:
    """Removes what a killed process left, after putting back a target that it had moved aside."""
    if (folder / _OLD).exists() and not target.exists():
        (folder / _OLD).rename(target)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _sync(path: Path) -> None:
    """Waits until a file, or everything in a folder, is on disk."""
    if path.is_dir():
        for one in path.iterdir():
            _sync(one)
        sync_folder(path)
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The folder for this process alone; the system gives it free when the process ends, however it ends."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and _ours(folder))):
        raise UsageError(f"'{folder}' is in the way: it is not what an export leaves. Move it.")
    folder.mkdir(exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise UsageError(f"Another process writes into '{folder}'. Wait for it, or name another target.") from error
    try:
        yield
    finally:
        os.close(handle)


def _ours(folder: Path) -> bool:
    return (folder / LOCK).is_file() or not any(folder.iterdir())
