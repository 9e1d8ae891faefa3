"""The folder of an index: which generation is current, who writes, and the one pointer that is ever replaced."""

from __future__ import annotations

import fcntl
import os
import re
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from hippogpu.errors import IndexDamagedError, IndexLockedError, IndexMissingError, StoredIndexError
from hippogpu.store.files import sync_folder, write_atomically
from hippogpu.store.manifest import Manifest, from_json, to_json

CURRENT, LOCK = "CURRENT", "LOCK"


def files_folder(root: Path) -> Path:
    return root / "files"


def logs_folder(root: Path) -> Path:
    return root / "openie"


def manifest_path(root: Path, generation: int) -> Path:
    return root / "manifests" / f"{generation:010d}.json"


def has_index(root: Path) -> bool:
    """Whether the folder has a committed generation."""
    return (root / CURRENT).is_file()


def current_manifest(root: Path) -> Manifest:
    """The manifest that CURRENT names; IndexMissingError where there is no index."""
    try:
        text = (root / CURRENT).read_text(encoding="ascii", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing(root) from error
    except OSError as error:
        raise IndexDamagedError(f"'{root / CURRENT}' cannot be read ({error}). Restore it from a copy.") from error
    if not re.fullmatch(r"[0-9]{10}", text):
        raise IndexDamagedError(
            f"'{root / CURRENT}' names no generation: {text[:40]!r}. Write into it the ten-digit number of the newest "
            f"file of '{root / 'manifests'}'."
        )
    path = manifest_path(root, int(text))
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise IndexDamagedError(
            f"'{root / CURRENT}' names generation {text}, but '{path}' is missing. Restore it from a copy, or remove "
            "CURRENT and index the corpus again (finished extractions are kept)."
        ) from error
    except OSError as error:
        raise IndexDamagedError(f"The manifest '{path}' cannot be read ({error}). Restore it from a copy.") from error
    manifest = from_json(data, path)
    if manifest.generation != int(text):
        raise IndexDamagedError(f"'{path}' calls itself generation {manifest.generation}. Restore it from a copy.")
    return manifest


def publish(root: Path, manifest: Manifest) -> None:
    """Makes a generation whose files are written the current one: their names first, then manifest, then CURRENT."""
    sync_folder(files_folder(root))
    path = manifest_path(root, manifest.generation)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, to_json(manifest))
    write_atomically(root / CURRENT, f"{manifest.generation:010d}\n".encode("ascii"))


def _missing(root: Path) -> IndexMissingError:
    if root.exists() and not root.is_dir():
        return IndexMissingError(f"'{root}' is a file and holds no index. Name the folder of one.")
    if not root.exists():
        return IndexMissingError(f"There is no folder '{root}'. Make an index first: hippogpu index {root} CORPUS")
    return IndexMissingError(f"The folder '{root}' holds no index. Make one first: hippogpu index {root} CORPUS")


class WriterLock:
    """The right to write an index folder; the system takes it back when the process ends, however it ends."""

    def __init__(self, root: Path) -> None:
        self._path = root / LOCK
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StoredIndexError(
                f"The folder '{root}' cannot be written ({error.strerror}). Set its permissions, or name another."
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(self._file, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._file)
            raise IndexLockedError(
                f"The index '{root}' is being written by {owner or 'another process'}. Wait for it to finish."
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        if self._file >= 0:
            # A forked child that lives on shares the lock, and would keep it if it were only closed here.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
