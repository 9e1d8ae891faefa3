"""What an index folder holds that nobody can need any longer."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hippogpu.disk import read_plain, sync_folder
from hippogpu.errors import StoredIndexError
from hippogpu.store.generations import MANIFEST_BYTES, current_manifest, files_folder, logs_folder, manifest_path
from hippogpu.store.manifest import INDEX_FILE, Manifest, from_json

_MANIFEST = re.compile(r"([0-9]{10})\.json")
_TEMPORARY = re.compile(r"\..*\.[0-9]+\.tmp")


class Garbage(NamedTuple):
    """What was removed: generations, files beside manifests, and bytes. kept: earlier generations that stay."""

    generations: int
    files: int
    bytes: int
    kept: int


def collect_garbage(root: Path, *, grace_s: float) -> Garbage:
    """Removes earlier generations, files of none, and half-written ones; for a writer that holds the lock.

    grace_s : seconds for which a generation stays after the next one has replaced it
    A reader that has opened a generation keeps it: its files are mapped, and their bytes live until it lets go. What
    is no file of an index is left alone. OSError when something cannot be removed.
    """
    current = current_manifest(root)
    earlier = {number: path for number, path in _manifests(root) if number != current.generation}
    kept = {n: m for n, path in earlier.items() if _in_grace(root, n, current, grace_s) and (m := _readable(path))}
    needed = {entry.file for manifest in (current, *kept.values()) for entry in manifest.files.values()}
    for number, path in earlier.items():
        if number not in kept:
            path.unlink()
    files = size = 0
    for path in _removable(root, needed):
        files, size = files + 1, size + path.lstat().st_size
        path.unlink()
    if files or len(kept) < len(earlier):
        for folder in (manifest_path(root, 0).parent, files_folder(root)):
            sync_folder(folder)
    return Garbage(len(earlier) - len(kept), files, size, len(kept))


def _manifests(root: Path) -> Iterator[tuple[int, Path]]:
    for path in manifest_path(root, 0).parent.iterdir():
        found = _MANIFEST.fullmatch(path.name)
        if found:
            yield int(found[1]), path


def _in_grace(root: Path, number: int, current: Manifest, grace_s: float) -> bool:
    """Whether a generation was replaced less than so many seconds ago. One that never was current was not."""
    if number > current.generation:
        return False
    later = manifest_path(root, number + 1)
    replaced = later if later.exists() else manifest_path(root, current.generation)
    return time.time() - replaced.stat().st_mtime < grace_s


def _readable(path: Path) -> Manifest | None:
    """A manifest, None where nobody could open it."""
    try:
        return from_json(read_plain(path, most_bytes=MANIFEST_BYTES), path)
    except (StoredIndexError, OSError):
        return None


def _removable(root: Path, needed: set[str]) -> Iterator[Path]:
    """Files of no generation that stays, and temporary ones: the lock says that nobody is writing them."""
    files, vectors = files_folder(root), root / "vectors"
    own = [files, manifest_path(root, 0).parent, logs_folder(root), vectors]
    if vectors.is_dir() and not vectors.is_symlink():
        own += vectors.iterdir()
    for folder in (root, *(folder for folder in own if folder.is_dir() and not folder.is_symlink())):
        for path in folder.iterdir():
            orphan = folder == files and INDEX_FILE.fullmatch(path.name) and path.name not in needed
            if (orphan or _TEMPORARY.fullmatch(path.name)) and (path.is_file() or path.is_symlink()):
                yield path
