"""The folder of an index: which generation is current, and the one pointer that is ever replaced."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from hippogpu.disk import failures_of, make_own_folder, read_plain, sync_folder, unwritable, write_atomically
from hippogpu.errors import IndexDamagedError, IndexMissingError, StoredIndexError
from hippogpu.store.manifest import Manifest, from_json, to_json

CURRENT = "CURRENT"
_CURRENT_BYTES, MANIFEST_BYTES = 200, 16 << 20
_POINTER = re.compile(rb"(?P<generation>[0-9]{10})(?: (?P<sha256>[0-9a-f]{64})\n|\n?)")
# Since this format CURRENT names the manifest's SHA-256.
_DIGEST_SINCE = 2
_WAY_OUT = (
    "Restore the index from a copy, or remove its CURRENT file and index the corpus again (finished extractions are "
    "kept)."
)


def files_folder(root: Path) -> Path:
    return root / "files"


def logs_folder(root: Path) -> Path:
    return root / "openie"


def manifest_path(root: Path, generation: int) -> Path:
    return root / "manifests" / f"{generation:010d}.json"


def has_index(root: Path) -> bool:
    """Whether the folder has a CURRENT; that it is a sound one is for current_manifest to say."""
    return os.path.lexists(root / CURRENT)


def current_manifest(root: Path) -> Manifest:
    """The manifest that CURRENT names; IndexMissingError where there is no index, IndexDamagedError for any other.

    A manifest that was replaced or removed by a writer since CURRENT was read is no damage: then CURRENT is read again.
    """
    named = _named(root)
    while True:
        try:
            return _manifest(root, named)
        except IndexDamagedError:
            newer = _named(root)
            if newer == named:
                raise
            named = newer


class _Named(NamedTuple):
    """What CURRENT says: the generation, and the SHA-256 of its manifest; "" in an index of format 1."""

    generation: int
    sha256: str


def _named(root: Path) -> _Named:
    path = root / CURRENT
    try:
        text = read_plain(path, most_bytes=_CURRENT_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing(root) from error
    except OSError as error:
        raise _no_pointer(root, _unreadable(error)) from error
    match = _POINTER.fullmatch(text)
    if match is None:
        raise _no_pointer(root, repr(text[:80].decode("ascii", "replace")))
    return _Named(int(match["generation"]), (match["sha256"] or b"").decode())


def _manifest(root: Path, named: _Named) -> Manifest:
    """The manifest of that generation, after a look at its SHA-256 and its own number."""
    path = manifest_path(root, named.generation)
    try:
        data = read_plain(path, most_bytes=MANIFEST_BYTES)
    except FileNotFoundError as error:
        raise IndexDamagedError(
            f"'{root / CURRENT}' names generation {named.generation:010d}, but '{path}' is missing. {_WAY_OUT}"
        ) from error
    except OSError as error:
        raise IndexDamagedError(f"The manifest '{path}' cannot be read: {_unreadable(error)}. {_WAY_OUT}") from error
    digest = hashlib.sha256(data).hexdigest()
    if named.sha256 and digest != named.sha256:
        raise IndexDamagedError(
            f"The manifest '{path}' is not the one that '{root / CURRENT}' names: its SHA-256 is {digest}, not "
            f"{named.sha256}. One of the two was altered. {_WAY_OUT}"
        )
    manifest = from_json(data, path)
    if not named.sha256 and manifest.format >= _DIGEST_SINCE:
        raise IndexDamagedError(
            f"'{root / CURRENT}' lacks the SHA-256 of '{path}', which an index of format {manifest.format} must have. "
            f"{_WAY_OUT}"
        )
    if manifest.generation != named.generation:
        raise IndexDamagedError(f"'{path}' calls itself generation {manifest.generation}. {_WAY_OUT}")
    return manifest


def _no_pointer(root: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"'{root / CURRENT}' names no generation: {what}. Restore it from a copy, or write into it the ten-digit "
        f"number of the newest file of '{root / 'manifests'}', a space and that file's SHA-256 (sha256sum), and run: "
        f"hippogpu verify {root} --full"
    )


def _unreadable(error: OSError) -> str:
    return "it is a link, no plain file" if error.errno == errno.ELOOP else str(error.strerror)


def publish(root: Path, manifest: Manifest) -> None:
    """Makes a generation whose files are written the current one: their names first, then manifest, then CURRENT.

    StoredIndexError when that fails: then the generation before is the current one, or the message says otherwise.
    """
    _refuse_older(root, manifest)
    path, data = manifest_path(root, manifest.generation), to_json(manifest)
    with failures_of(files_folder(root)):
        sync_folder(files_folder(root))
    with failures_of(path):
        make_own_folder(path.parent)
        write_atomically(path, data)
    pointer = f"{manifest.generation:010d} {hashlib.sha256(data).hexdigest()}\n".encode("ascii")
    try:
        write_atomically(root / CURRENT, pointer)
    except OSError as error:
        if _says(root / CURRENT, pointer):
            raise StoredIndexError(
                f"Generation {manifest.generation} of '{root}' is written and current, but the disk has not confirmed "
                f"it ({error.strerror}): after a power cut the one before may be back. Check the disk, then run: "
                f"hippogpu verify {root} --full"
            ) from error
        raise unwritable(root / CURRENT, error) from error


def _refuse_older(root: Path, manifest: Manifest) -> None:
    """A manifest that CURRENT names, or one before it, is never replaced: that would damage the index for a moment."""
    if has_index(root) and (named := _named(root)).generation >= manifest.generation:
        raise StoredIndexError(
            f"The index '{root}' is at generation {named.generation} already, so {manifest.generation} cannot "
            "be written. Open the index again, then commit."
        )


def _says(path: Path, content: bytes) -> bool:
    try:
        return read_plain(path, most_bytes=len(content)) == content
    except OSError:
        return False


def lost_manifest(root: Path) -> Manifest | None:
    """Where CURRENT is missing, the newest manifest that can be read: it says by what the index was made."""
    if has_index(root):
        return None
    for path in sorted((root / "manifests").glob("[0-9]*.json"), reverse=True):
        try:
            return from_json(read_plain(path, most_bytes=MANIFEST_BYTES), path)
        except (OSError, StoredIndexError):
            continue
    return None


def _missing(root: Path) -> IndexMissingError:
    if lost_manifest(root) is not None:
        return IndexMissingError(str(_no_pointer(root, "it is missing")))
    if root.exists() and not root.is_dir():
        return IndexMissingError(f"'{root}' is a file and holds no index. Name the folder of one.")
    if not root.exists():
        return IndexMissingError(f"There is no folder '{root}'. Make an index first: hippogpu index {root} CORPUS")
    return IndexMissingError(f"The folder '{root}' holds no index. Make one first: hippogpu index {root} CORPUS")
