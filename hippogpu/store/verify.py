"""Are the files of an index whole, and does each hold what it may? Every problem is named, none is mended."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from hippogpu.errors import HippoError, IndexDamagedError
from hippogpu.precision import Vectors, float_rows, kind_of
from hippogpu.store.files import Entry
from hippogpu.store.generations import current_manifest, files_folder
from hippogpu.store.manifest import Manifest
from hippogpu.store.mapped import damaged, opened, sha256_in
from hippogpu.store.snapshot import VECTORS, Snapshot, disagreements, read_snapshot, unreadable
from hippogpu.types import Edges

UNIT_TOLERANCE = 1e-3
_ROWS = 1 << 14
_HALF_ROUNDOFF = 2.0**-11


def verify(root: Path, *, full: bool = False) -> list[str]:
    """One line a problem of the current generation, [] when there is none.

    Fast: CURRENT and manifest, presence, size, type and shape of each file, agreement of the counts.
    full adds: the SHA-256 of each file, and where all are right, that every number points inside its table, that the
    graph is symmetric and sorted, that vectors have length 1.
    IndexMissingError where there is no index, IndexFormatError where a newer version wrote it.
    """
    try:
        manifest = current_manifest(root)
    except IndexDamagedError as error:
        return [str(error)]
    problems = list(_file_problems(root, manifest, full=full).values())
    if problems:
        return problems
    try:
        snapshot = read_snapshot(root, manifest)
    except HippoError as error:
        return [str(error)]
    return disagreements(snapshot) or (list(_broken_promises(snapshot)) if full else [])


def _file_problems(root: Path, manifest: Manifest, *, full: bool) -> dict[str, str]:
    """By role, what is wrong with each file that is not what the manifest says of it, or that is needed and not named.

    That a file was altered is told rather than what no longer fits in it.
    """
    found = unreadable(root, manifest)
    for role, entry in manifest.files.items():
        try:
            _check_bytes(files_folder(root), entry, full=full)
        except HippoError as error:
            found[role] = str(error)
    return found


def require_whole(root: Path, manifest: Manifest, *, roles: Container[str], sound: Container[str] = ()) -> None:
    """IndexDamagedError for the first file of these roles whose bytes are not those that were written.

    For whoever takes over what a generation holds: under a new checksum nobody could tell any longer.
    sound : names of files that need no look
    """
    for role, entry in manifest.files.items():
        if role in roles and entry.file not in sound:
            _check_bytes(files_folder(root), entry, full=True)


def _check_bytes(folder: Path, entry: Entry, *, full: bool) -> None:
    with opened(folder, entry) as file:
        if full and sha256_in(file) != entry.sha256:
            raise damaged(folder / entry.file, "it was altered: its SHA-256 is not the one in the manifest")


def _broken_promises(snapshot: Snapshot) -> Iterator[str]:
    """One line for each thing that holds what it may not."""
    checks: list[Callable[[], object]] = [snapshot.tables.check, snapshot.graph.check]
    if snapshot.diffused is not None:
        checks.append(snapshot.diffused.check)
    if snapshot.fact_cells is not None:
        checks.append(partial(snapshot.fact_cells.check, *snapshot.fact_vectors.shape))
    if snapshot.words is not None:
        checks.append(snapshot.words.check)
    for check in checks:
        try:
            check()
        except HippoError as error:
            yield str(error)
    for name in VECTORS:
        row = _no_unit_row(getattr(snapshot, name))
        if row is not None:
            yield f"{name}: row {row} is no unit vector."
    yield from _wrong_synonyms(snapshot.synonyms, len(snapshot.tables.phrases))


def _no_unit_row(vectors: Vectors) -> int | None:
    """The first row whose length is not 1, found a block at a time."""
    tolerance = UNIT_TOLERANCE + (_HALF_ROUNDOFF if kind_of(vectors) == "float16" else 0.0)
    for first in range(0, vectors.shape[0], _ROWS):
        block = float_rows(vectors, slice(first, first + _ROWS))
        off = ~(np.abs(np.sqrt(np.einsum("ij,ij->i", block, block)) - 1) <= tolerance)
        if off.any():
            return first + int(np.argmax(off))
    return None


def _wrong_synonyms(synonyms: Edges, phrases: int) -> Iterator[str]:
    """Synonyms are phrases other than their own, each once, sorted by who found them, then falling cosine."""
    source, target, weight = synonyms
    ends = np.concatenate([source, target])
    if len(ends) and (ends.min() < 0 or ends.max() >= phrases):
        yield f"synonyms: one points outside [0, {phrases})."
        return
    if np.any(source == target) or not np.all((weight > 0) & (weight <= 1 + UNIT_TOLERANCE)):
        yield "synonyms: one is its own, or its cosine is not in (0, 1]."
    steps = [np.diff(column.astype(np.float64)) for column in (source, weight)]
    if np.any((steps[0] < 0) | ((steps[0] == 0) & (steps[1] > 0))):
        yield "synonyms: they are not sorted by source and falling cosine."
    pairs = np.sort(source.astype(np.int64) * phrases + target)
    if np.any(pairs[1:] == pairs[:-1]):
        yield "synonyms: one comes twice."
