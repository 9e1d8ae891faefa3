"""When the passage vectors of an index are diffused, and where the result goes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from hippogpu.backends import Backend, load_backend
from hippogpu.config import DiffuseRule, RunConfig, SearchConfig
from hippogpu.diffuse import OnProgress, diffuse_passages, estimated_seconds
from hippogpu.errors import IndexDamagedError
from hippogpu.index.tidying import DIFFUSING, tidy
from hippogpu.precision import Vectors
from hippogpu.store import (
    DIFFUSED,
    DiffusionMark,
    Manifest,
    Snapshot,
    WriterLock,
    current_manifest,
    diffusion_sources,
    load_snapshot,
    publish,
    read_diffused,
    require_whole,
    write_diffused,
)
from hippogpu.store.files import Entry
from hippogpu.store.manifest import DIFFUSION_SOURCES
from hippogpu.types import Csr

# A commit diffuses by itself what takes less than this.
AUTO_SECONDS = 60.0


class Diffusion:
    """Diffuses the vectors of one generation, by its files: what they hold names the folder of unfinished work."""

    def __init__(self, root: Path, files: Mapping[str, Entry], *, damping: float, run: RunConfig) -> None:
        self._root, self._run, self._damping = root, run, damping
        self._sources = diffusion_sources(files)

    def due(self, rule: DiffuseRule, graph: Csr, width: int) -> bool:
        """Whether a commit under the rule diffuses now, in its own generation."""
        if rule == "never":
            return False
        return estimated_seconds(graph, width, damping=self._damping, backend=self._backend()) <= AUTO_SECONDS

    def run(
        self, graph: Csr, vectors: Vectors, on_progress: OnProgress | None
    ) -> tuple[dict[str, Entry], DiffusionMark]:
        """The files of the diffused vectors, and their mark."""
        diffused = diffuse_passages(
            graph,
            vectors,
            damping=self._damping,
            backend=self._backend(),
            budget_bytes=self._run.budget_bytes,
            scratch=self._scratch(),
            on_progress=on_progress,
        )
        files = write_diffused(self._root, diffused)
        return files, DiffusionMark(self._damping, diffused.error, self._sources)

    def _backend(self) -> Backend:
        return load_backend(self._run.backend, budget_bytes=self._run.budget_bytes)

    def _scratch(self) -> Path:
        settings = [self._sources, self._damping, self._backend().name, self._run.budget_bytes]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        return self._root / DIFFUSING / digest[:16]


def kept_diffusion(
    stored: Snapshot | None, files: Mapping[str, Entry]
) -> tuple[dict[str, Entry], DiffusionMark | None]:
    """What a new generation of these files takes over: the newest mark, and its files while it is fresh."""
    if stored is None or stored.manifest.diffusion is None:
        return {}, None
    mark = stored.manifest.diffusion
    if dict(mark.sources) != diffusion_sources(files) or stored.manifest.diffusion_state != "fresh":
        return {}, mark
    return {role: stored.manifest.files[role] for role in DIFFUSED}, mark


def _is_whole(root: Path, manifest: Manifest) -> bool:
    """Whether there are fresh diffused vectors that can be read; damaged ones are made again."""
    try:
        diffused = read_diffused(root, manifest)
        return diffused is not None and diffused.check() is diffused
    except IndexDamagedError:
        return False


@dataclass(frozen=True, slots=True)
class DiffuseReport:
    """What diffuse_index did. changed is False when the vectors were fresh already.

    error: for a unit question, a passage's diffused product is off by at most error · degree
    """

    generation: int
    changed: bool
    damping: float
    error: float
    passages: int
    width: int


def diffuse_index(
    path: str | Path,
    *,
    damping: float = SearchConfig().damping,
    run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
    on_progress: OnProgress | None = None,
) -> DiffuseReport:
    """Brings the diffused vectors of an index up to date, as a generation of its own.

    A run that was cut short goes on where it stopped, and leaves the index as it was until it is done. Progress counts
    columns. IndexLockedError while another writer holds the folder.
    """
    root = Path(path)
    # A folder that holds no index is refused before a lock would make one.
    current_manifest(root)
    with WriterLock(root):
        return diffuse_current(root, damping=damping, run=run, on_progress=on_progress)


def diffuse_current(root: Path, *, damping: float, run: RunConfig, on_progress: OnProgress | None) -> DiffuseReport:
    """As diffuse_index, for a writer that holds the lock."""
    manifest = current_manifest(root)
    snapshot = load_snapshot(root, manifest, diffused=False)
    passages, width = snapshot.passage_vectors.shape
    mark = manifest.diffusion
    if mark is not None and mark.damping == damping and _is_whole(root, manifest):
        return DiffuseReport(manifest.generation, False, damping, mark.error, passages, width)
    require_whole(root, manifest, roles=DIFFUSION_SOURCES)
    work = Diffusion(root, manifest.files, damping=damping, run=run)
    files, mark = work.run(snapshot.graph, snapshot.passage_vectors, on_progress)
    generation = manifest.generation + 1
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = replace(manifest, generation=generation, created=now, program=version("hippogpu"))
    publish(root, replace(made, files={**manifest.files, **files}, diffusion=mark))
    tidy(root, run)
    return DiffuseReport(generation, True, damping, mark.error, passages, width)
