"""Index folders: immutable files, one manifest a generation, one pointer to the current one."""

from __future__ import annotations

from hippogpu.store.fact_cells import FACT_CELLS, FactCells
from hippogpu.store.finding import places_of
from hippogpu.store.garbage import Garbage, collect_garbage
from hippogpu.store.generations import (
    current_manifest,
    files_folder,
    has_index,
    logs_folder,
    lost_manifest,
    publish,
)
from hippogpu.store.lock import WriterLock
from hippogpu.store.manifest import DIFFUSED, DiffusionMark, Encoder, Manifest, diffusion_sources
from hippogpu.store.passages import Passages, passages_of, write_passages
from hippogpu.store.snapshot import (
    Snapshot,
    load_snapshot,
    read_diffused,
    write_diffused,
    write_fact_cells,
    write_graph,
    write_tables,
    write_vectors,
)
from hippogpu.store.user_edges import write_user_edges
from hippogpu.store.vectors import StoredVectors
from hippogpu.store.verify import require_whole, verify
from hippogpu.store.words import write_words

__all__ = [
    "DIFFUSED",
    "FACT_CELLS",
    "DiffusionMark",
    "Encoder",
    "FactCells",
    "Garbage",
    "Manifest",
    "Passages",
    "Snapshot",
    "StoredVectors",
    "WriterLock",
    "collect_garbage",
    "current_manifest",
    "diffusion_sources",
    "files_folder",
    "has_index",
    "load_snapshot",
    "logs_folder",
    "lost_manifest",
    "passages_of",
    "places_of",
    "publish",
    "read_diffused",
    "require_whole",
    "verify",
    "write_diffused",
    "write_fact_cells",
    "write_graph",
    "write_passages",
    "write_tables",
    "write_user_edges",
    "write_vectors",
    "write_words",
]
