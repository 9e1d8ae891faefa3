"""What is done to a disk, few calls of the system: whole and durable or not at all, and never through a link."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hippogpu.errors import StoredIndexError

_NEXT_STEP = {
    errno.ENOSPC: "Make room",
    errno.EDQUOT: "Make room in your quota",
    errno.EACCES: "Set its permissions",
    errno.EPERM: "Set its permissions",
    errno.EROFS: "Mount the file system for writing or copy the index to another",
    errno.EIO: "Check the disk",
}


def write_atomically(path: Path, data: bytes) -> None:
    """Puts the bytes at the path: the old content or the new one is there at any moment, durably after the return.

    OSError that names the path when that fails; no temporary file stays behind.
    """
    replace_atomically(path, [data])


def replace_atomically(path: Path, parts: Iterable[bytes]) -> None:
    """As write_atomically, for content that comes in parts and is never held whole."""
    with _naming(path):
        with new_file(path.with_name(f".{path.name}.{os.getpid()}.tmp")) as (handle, temporary):
            for part in parts:
                write_all(handle, part)
            os.fsync(handle)
            os.replace(temporary, path)
        sync_folder(path.parent)


def write_all(handle: int, data: bytes | memoryview) -> None:
    """Writes all of the bytes, however many the system takes at a time."""
    rest = memoryview(data)
    while rest:
        taken = os.write(handle, rest)
        if not taken:
            raise OSError(errno.EIO, "the system takes no more bytes")
        rest = rest[taken:]


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it, where it is missing; the name of a new one is durable after the return."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync_name(folder)


def make_own_folder(folder: Path) -> None:
    """As make_folder, for a folder inside an index: StoredIndexError where it is a link out of it."""
    refuse_link(folder)
    make_folder(folder)


def forget_others(folder: Path, pattern: str) -> None:
    """Removes the folders of that pattern beside this one; StoredIndexError where the folder above is a link."""
    refuse_link(folder.parent)
    for other in folder.parent.glob(pattern):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def allocate(path: Path, size: int, *, anew: bool) -> None:
    """A plain file of at least so many bytes, to be mapped and written to; without `anew`, with what it held before.

    The disk gives them now, so that a full one is an error: a write to the mapping that found it full would end the
    process.
    """
    with failures_of(path):
        if anew:
            path.unlink(missing_ok=True)
        handle = open_plain(path, os.O_RDWR | os.O_CREAT)
        try:
            os.posix_fallocate(handle, 0, size)
        finally:
            os.close(handle)


def refuse_link(path: Path) -> None:
    """StoredIndexError when the path is a symbolic link: writing would reach what is not the index's."""
    if path.is_symlink():
        raise StoredIndexError(
            f"'{path}' is a symbolic link, and an index is written only inside its own folder. Put what it points to "
            "in its place if you know it, or remove it."
        )


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_name(folder: Path) -> None:
    """Waits until the name of a folder is on disk, where the folder above it may be opened at all."""
    with suppress(PermissionError):
        sync_folder(folder.resolve().parent)


@contextmanager
def failures_of(path: Path) -> Iterator[None]:
    """An OSError inside as a StoredIndexError: the path, the reason, what became of the index, the next step."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StoredIndexError:
    step = _NEXT_STEP.get(error.errno or 0, "Mend that")
    return StoredIndexError(
        f"'{path}' cannot be written: {error.strerror or error}. What was there before is as it was, and finished "
        f"extractions are kept. {step}, then run again."
    )


def open_plain(path: Path, access: int = os.O_RDONLY) -> int:
    """A plain file, open; OSError for a link (ELOOP) and for what is none, as a pipe, which is not waited for."""
    handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "it is no plain file", str(path))


def read_plain(path: Path, *, most_bytes: int) -> bytes:
    """The content of a small plain file; OSError for a link (ELOOP), anything else that is none, or too much.

    Nothing is read, and nothing waited for, before kind and size are known.
    """
    handle = open_plain(path)
    try:
        size = os.fstat(handle).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {size} bytes, over {most_bytes}", str(path))
        with open(handle, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(handle)


@contextmanager
def new_file(path: Path) -> Iterator[tuple[int, Path]]:
    """A new file open for writing, for the block to rename; removed when the block fails.

    One that a killed process of the same number left is removed first, and none that is there is written to.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        yield handle, path
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    finally:
        # What a failed write would say here, the wait for the disk has said before.
        with suppress(OSError):
            os.close(handle)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """An OSError inside names the path when it names none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
