"""A generation as values: what the writer commits and the reader maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError
from hippogpu.store.columns import Columns, read_table
from hippogpu.store.files import Entry, write_array, write_table
from hippogpu.store.generations import files_folder
from hippogpu.store.manifest import DIFFUSED, Manifest
from hippogpu.store.mapped import read_array
from hippogpu.store.passages import Passages, passage_tables, read_passages
from hippogpu.store.user_edges import COLUMNS, ROLES, StoredEdges
from hippogpu.types import NO_EDGES, Csr, Diffused, Edges, Facts, Floats, Ragged, Tables, UserEdge

_ARRAYS = {
    **dict.fromkeys(("mentions_indptr", "statements_indptr", "graph_indptr"), ("<i8", 1)),
    **dict.fromkeys(("mentions", "statements", "graph_indices", "synonym_source", "synonym_target"), ("<i4", 1)),
    **dict.fromkeys(("edge_source", "edge_target"), ("<i4", 1)),
    **dict.fromkeys(("graph_weights", "synonym_weight", "edge_weight"), ("<f4", 1)),
    **dict.fromkeys(("passage_vectors", "phrase_vectors", "fact_vectors", "diffused_vectors"), ("<f4", 2)),
    "diffused_ones": ("<f4", 1),
}
"""Type and number of axes of each array."""

_TEXT: pa.DataType = pa.large_string()
_NUMBER: pa.DataType = pa.int32()
_TABLES = {
    "phrases": pa.schema([("text", _TEXT)]),
    "facts": pa.schema([("subject", _NUMBER), ("predicate", _TEXT), ("object", _NUMBER), ("text", _TEXT)]),
    "edges": COLUMNS,
}
"""Columns of each table but those of passages, which have changed with the format."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything of one generation. Vectors are (P, w), (E, w) and (F, w) float32 with unit rows.

    diffused is None where there are no diffused vectors, or only those of an earlier graph. user_edges are as they were
    given; tables.user_edges are the nodes they join.
    """

    manifest: Manifest
    passages: Passages
    tables: Tables
    passage_vectors: Floats
    phrase_vectors: Floats
    fact_vectors: Floats
    synonyms: Edges
    graph: Csr
    diffused: Diffused | None = None
    user_edges: Iterable[UserEdge] = ()


def write_tables(root: Path, tables: Tables) -> dict[str, Entry]:
    folder, facts = files_folder(root), tables.facts
    columns = {
        "subject": pa.array(facts.subject),
        "predicate": _texts(facts.predicate),
        "object": pa.array(facts.object),
        "text": _texts(facts.text),
    }
    return {
        "phrases": write_table(folder, "phrases", pa.table({"text": _texts(tables.phrases)})),
        "facts": write_table(folder, "facts", pa.table(columns)),
        **_write_arrays(root, {"mentions_indptr": tables.mentions.indptr, "mentions": tables.mentions.values}),
        **_write_arrays(root, {"statements_indptr": tables.statements.indptr, "statements": tables.statements.values}),
    }


def write_vectors(root: Path, *, passage: Floats, phrase: Floats, fact: Floats) -> dict[str, Entry]:
    return _write_arrays(root, {"passage_vectors": passage, "phrase_vectors": phrase, "fact_vectors": fact})


def write_graph(root: Path, graph: Csr, synonyms: Edges) -> dict[str, Entry]:
    edges: dict[str, NDArray[Any]] = {f"synonym_{name}": column for name, column in synonyms._asdict().items()}
    rows: dict[str, NDArray[Any]] = {
        "graph_indptr": graph.indptr,
        "graph_indices": graph.indices,
        "graph_weights": graph.weights,
    }
    return _write_arrays(root, rows | edges)


def write_diffused(root: Path, diffused: Diffused) -> dict[str, Entry]:
    return _write_arrays(root, {"diffused_vectors": diffused.vectors, "diffused_ones": diffused.ones})


def load_snapshot(root: Path, manifest: Manifest, *, diffused: bool = True) -> Snapshot:
    """The generation of a manifest, memory-mapped; IndexDamagedError names the first file that does not fit.

    diffused: without it the diffused vectors are left out, so that they can be made again where they are damaged
    """
    snapshot = read_snapshot(root, manifest, diffused=diffused)
    found = disagreements(snapshot)
    if found:
        raise IndexDamagedError(f"The index '{root}' does not fit together: {found[0]} Restore it from a copy.")
    return snapshot


def disagreements(snapshot: Snapshot) -> list[str]:
    """One line for each count that is not what another file has it be."""
    counts = _agreements(snapshot).items()
    return [f"{name}: {have}, but {want} expected." for name, (have, want) in counts if have != want]


def unreadable(root: Path, manifest: Manifest) -> dict[str, str]:
    """By role, why the file of it cannot be taken: all that are needed, and all that are there."""
    reader = _Reader(root, manifest)
    found: dict[str, str] = {}
    for role in _roles(manifest):
        try:
            reader.array(role) if role in _ARRAYS else reader.table(role)
        except IndexDamagedError as error:
            found[role] = str(error)
    return found


def _roles(manifest: Manifest) -> list[str]:
    """Roles whose files must be there: those of user edges and of diffused vectors only together."""
    roles = [*_ARRAYS, *_TABLES, *passage_tables(manifest.format)]
    left_out = set() if any(role in manifest.files for role in ROLES) else set(ROLES)
    if manifest.diffusion_state != "fresh":
        left_out.update(DIFFUSED)
    return [role for role in roles if role not in left_out or role in manifest.files]


def _agreements(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Counts that must be equal."""
    passages, phrases, facts = len(snapshot.passages), len(snapshot.tables.phrases), len(snapshot.tables.facts)
    width, synonyms, diffused = snapshot.manifest.encoder.width, snapshot.synonyms, snapshot.diffused
    own = snapshot.tables.user_edges
    counts = (
        {}
        if diffused is None
        else {
            "diffused vectors": (len(diffused.vectors), passages),
            "width of diffused vectors": (diffused.vectors.shape[1], width),
            "diffused ones": (len(diffused.ones), passages),
        }
    )
    return counts | {
        "passage vectors": (len(snapshot.passage_vectors), passages),
        "phrase vectors": (len(snapshot.phrase_vectors), phrases),
        "fact vectors": (len(snapshot.fact_vectors), facts),
        "width of passage vectors": (snapshot.passage_vectors.shape[1], width),
        "width of phrase vectors": (snapshot.phrase_vectors.shape[1], width),
        "width of fact vectors": (snapshot.fact_vectors.shape[1], width),
        "rows of mentions": (len(snapshot.tables.mentions), passages),
        "rows of statements": (len(snapshot.tables.statements), passages),
        "targets of user edges": (len(own.target), len(own.source)),
        "weights of user edges": (len(own.weight), len(own.source)),
        "targets of synonyms": (len(synonyms.target), len(synonyms.source)),
        "weights of synonyms": (len(synonyms.weight), len(synonyms.source)),
        "nodes of the graph": (snapshot.graph.nodes, passages + phrases),
        "weights of the graph": (len(snapshot.graph.weights), snapshot.graph.nonzeros),
    }


def read_snapshot(root: Path, manifest: Manifest, *, diffused: bool = True) -> Snapshot:
    """As load_snapshot, without a look at whether the counts agree."""
    arrays, tables = _Reader(root, manifest).array, _Reader(root, manifest).table
    facts = tables("facts")
    # An index without user edges has none of their files, and one that has any has all.
    has_edges = any(role in manifest.files for role in ROLES)
    passages = read_passages(tables, format_=manifest.format)
    fact_table = Facts(
        facts.numbers["subject"],
        facts.numbers["object"],
        facts.texts["predicate"],
        facts.texts["text"],
    )
    return Snapshot(
        manifest,
        passages,
        Tables(
            tables("phrases").texts["text"],
            fact_table,
            Ragged(arrays("mentions_indptr"), arrays("mentions")),
            Ragged(arrays("statements_indptr"), arrays("statements")),
            Edges(*(arrays(role) for role in ROLES[1:])) if has_edges else NO_EDGES,
        ),
        passage_vectors=arrays("passage_vectors"),
        phrase_vectors=arrays("phrase_vectors"),
        fact_vectors=arrays("fact_vectors"),
        synonyms=Edges(arrays("synonym_source"), arrays("synonym_target"), arrays("synonym_weight")),
        graph=Csr(arrays("graph_indptr"), arrays("graph_indices"), arrays("graph_weights")),
        diffused=read_diffused(root, manifest) if diffused else None,
        user_edges=StoredEdges(tables("edges")) if has_edges else (),
    )


def read_diffused(root: Path, manifest: Manifest) -> Diffused | None:
    """The diffused vectors, None where there are none that are fresh; IndexDamagedError where they do not fit."""
    mark = manifest.diffusion
    if mark is None or manifest.diffusion_state != "fresh":
        return None
    arrays = _Reader(root, manifest).array
    try:
        return Diffused(arrays("diffused_vectors"), arrays("diffused_ones"), mark.damping, mark.error)
    except IndexDamagedError as error:
        raise IndexDamagedError(f"{error} Or make it again: hippogpu diffuse {root}") from error


class _Reader:
    """Files of a manifest by role."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self._folder, self._files = files_folder(root), manifest.files
        self._schemas = _TABLES | passage_tables(manifest.format)

    def array(self, role: str) -> NDArray[Any]:
        return read_array(self._folder, self._entry(role, *_ARRAYS[role]))

    def table(self, role: str) -> Columns:
        return read_table(self._folder, self._entry(role, "arrow", 1), self._schemas[role])

    def _entry(self, role: str, dtype: str, axes: int) -> Entry:
        entry = self._files.get(role)
        if entry is None:
            raise IndexDamagedError(f"The manifest names no file for '{role}'. Restore it from a copy.")
        if (entry.dtype, len(entry.shape)) != (dtype, axes) or not entry.file.startswith(f"{role}-"):
            raise IndexDamagedError(
                f"The manifest names '{entry.file}', {entry.dtype}{entry.shape}, for '{role}', which is no {dtype} of "
                f"{axes} axes by that name. Restore it from a copy."
            )
        return entry


def _write_arrays(root: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Entry]:
    return {role: write_array(files_folder(root), role, array) for role, array in arrays.items()}


def _texts(values: Sequence[str]) -> pa.Array[Any]:
    return pa.array(values, pa.large_string())
