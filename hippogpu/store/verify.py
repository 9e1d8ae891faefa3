"""Is an index whole? Every problem is named, none is mended."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hippogpu.errors import HippoError
from hippogpu.store.generations import current_manifest, files_folder
from hippogpu.store.mapped import checked_path, sha256_of
from hippogpu.store.snapshot import Snapshot, load_snapshot

UNIT_TOLERANCE = 1e-3


def verify(root: Path, *, full: bool = False) -> list[str]:
    """One line a problem of the current generation, [] when there is none.

    Fast: manifest, presence, size, type and shape of each file, agreement of the counts.
    full adds: the SHA-256 of each file, that every number points inside its table, that the graph is symmetric and
    sorted, that vectors have length 1.
    """
    manifest = current_manifest(root)
    problems: list[str] = []
    for entry in manifest.files.values():
        try:
            path = checked_path(files_folder(root), entry)
        except HippoError as error:
            problems.append(str(error))
            continue
        if full and sha256_of(path) != entry.sha256:
            problems.append(f"The index file '{path}' was altered: its SHA-256 is not the one in the manifest.")
    if problems:
        return problems
    try:
        snapshot = load_snapshot(root, manifest)
        return _broken_promises(snapshot) if full else []
    except HippoError as error:
        return [str(error)]


def _broken_promises(snapshot: Snapshot) -> list[str]:
    snapshot.tables.check()
    snapshot.graph.check()
    if snapshot.diffused is not None:
        snapshot.diffused.check()
    problems = []
    for name in ("passage_vectors", "phrase_vectors", "fact_vectors"):
        lengths = np.linalg.norm(getattr(snapshot, name), axis=1)
        if not np.all(np.abs(lengths - 1) <= UNIT_TOLERANCE):
            problems.append(f"{name}: row {int(np.argmax(np.abs(lengths - 1)))} is no unit vector.")
    return problems
