"""A generation as values: what the writer commits and the reader maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.config import VectorType
from hippogpu.errors import IndexDamagedError
from hippogpu.precision import ScaledRows, Vectors
from hippogpu.store.columns import Columns, read_table
from hippogpu.store.fact_cells import FACT_CELLS, FactCells
from hippogpu.store.files import Entry, write_array, write_table
from hippogpu.store.generations import files_folder
from hippogpu.store.manifest import DIFFUSED, Manifest
from hippogpu.store.mapped import read_array
from hippogpu.store.passages import Passages, passage_tables, read_passages
from hippogpu.store.user_edges import COLUMNS, ROLES, StoredEdges
from hippogpu.store.words import (
    COUNT_DTYPES,
    COUNTS,
    WORD_ARRAYS,
    WORD_ROLES,
    WORDS,
    read_words,
    word_agreements,
)
from hippogpu.text_columns import texts_array
from hippogpu.types import NO_EDGES, Csr, Diffused, Edges, Facts, Ragged, Tables, UserEdge, WordCounts

VECTORS: Mapping[str, str] = {f"{name}_vectors": f"{name}_scales" for name in ("passage", "phrase", "fact")}
"""Roles of vectors, and of the scales of their rows where they are stored in int8."""

VECTOR_DTYPES: Mapping[VectorType, str] = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
_ARRAYS = {
    **dict.fromkeys(("mentions_indptr", "statements_indptr", "graph_indptr"), ("<i8", 1)),
    **dict.fromkeys(("mentions", "statements", "graph_indices", "synonym_source", "synonym_target"), ("<i4", 1)),
    **dict.fromkeys(("edge_source", "edge_target"), ("<i4", 1)),
    **dict.fromkeys(("graph_weights", "synonym_weight", "edge_weight"), ("<f4", 1)),
    **WORD_ARRAYS,
    **dict.fromkeys((*VECTORS, "diffused_vectors"), ("<f4", 2)),
    **dict.fromkeys((*VECTORS.values(), "diffused_ones"), ("<f4", 1)),
    **FACT_CELLS,
}
"""Type and number of axes of each array; vectors are of the type that the settings name."""

_TEXT: pa.DataType = pa.large_string()
_NUMBER: pa.DataType = pa.int32()
_TABLES = {
    "phrases": pa.schema([("text", _TEXT)]),
    "facts": pa.schema([("subject", _NUMBER), ("predicate", _TEXT), ("object", _NUMBER), ("text", _TEXT)]),
    "edges": COLUMNS,
    "words": WORDS,
}
"""Columns of each table but those of passages, which have changed with the format."""

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "user edges": ROLES,
    "diffused vectors": DIFFUSED,
    "words": WORD_ROLES,
    "cells of facts": tuple(FACT_CELLS),
    **{f"scales of {vectors}": (scales,) for vectors, scales in VECTORS.items()},
}
"""Roles that an index may do without, by what they hold: those of one group are there together or not at all."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything of one generation. Vectors are (P, w), (E, w) and (F, w) with unit rows, stored as the settings say.

    diffused is None where there are no diffused vectors, or only those of an earlier graph. user_edges are as they were
    given; tables.user_edges are the nodes they join. fact_cells is None where facts are searched without.
    """

    manifest: Manifest
    passages: Passages
    tables: Tables
    passage_vectors: Vectors
    phrase_vectors: Vectors
    fact_vectors: Vectors
    synonyms: Edges
    graph: Csr
    diffused: Diffused | None = None
    user_edges: Iterable[UserEdge] = ()
    words: WordCounts | None = None
    fact_cells: FactCells | None = None


def write_tables(root: Path, tables: Tables) -> dict[str, Entry]:
    folder, facts = files_folder(root), tables.facts
    columns = {
        "subject": pa.array(facts.subject),
        "predicate": texts_array(facts.predicate),
        "object": pa.array(facts.object),
        "text": texts_array(facts.text),
    }
    return {
        "phrases": write_table(folder, "phrases", pa.table({"text": texts_array(tables.phrases)})),
        "facts": write_table(folder, "facts", pa.table(columns)),
        **_write_arrays(root, {"mentions_indptr": tables.mentions.indptr, "mentions": tables.mentions.values}),
        **_write_arrays(root, {"statements_indptr": tables.statements.indptr, "statements": tables.statements.values}),
    }


def write_vectors(root: Path, *, passage: Vectors, phrase: Vectors, fact: Vectors) -> dict[str, Entry]:
    given = {"passage_vectors": passage, "phrase_vectors": phrase, "fact_vectors": fact}
    return {name: entry for role, rows in given.items() for name, entry in _write_vectors(root, role, rows).items()}


def _write_vectors(root: Path, role: str, rows: Vectors) -> dict[str, Entry]:
    if isinstance(rows, ScaledRows):
        return _write_arrays(root, {role: rows.values, VECTORS[role]: rows.scales})
    return _write_arrays(root, {role: rows})


def write_graph(root: Path, graph: Csr, synonyms: Edges) -> dict[str, Entry]:
    edges: dict[str, NDArray[Any]] = {f"synonym_{name}": column for name, column in synonyms._asdict().items()}
    rows: dict[str, NDArray[Any]] = {
        "graph_indptr": graph.indptr,
        "graph_indices": graph.indices,
        "graph_weights": graph.weights,
    }
    return _write_arrays(root, rows | edges)


def write_fact_cells(root: Path, cells: FactCells) -> dict[str, Entry]:
    return _write_arrays(root, dict(zip(FACT_CELLS, cells, strict=True)))


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
    """Roles whose files must be there: those of a group that is optional only where one of them is."""
    roles = [*_ARRAYS, *_TABLES, *passage_tables(manifest.format)]
    left_out = {role for group in OPTIONAL if not has_group(manifest, group) for role in OPTIONAL[group]}
    return [role for role in roles if role not in left_out]


def has_group(manifest: Manifest, group: str) -> bool:
    """Whether a generation must have the roles of an optional group: it has one, or the settings ask for it."""
    needed = {VECTORS[role] for role in VECTORS if getattr(manifest.config, role) == "int8"}
    facts = manifest.files.get("fact_vectors")
    if manifest.config.fact_search == "ivfpq" and facts is not None and facts.shape[0]:
        needed.update(FACT_CELLS)
    return any(role in manifest.files or role in needed for role in OPTIONAL[group])


def _agreements(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Counts that must be equal."""
    rows = (len(snapshot.passages), len(snapshot.tables.phrases), len(snapshot.tables.facts))
    passages, phrases, _ = rows
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
    for role, count in zip(VECTORS, rows, strict=True):
        vectors, name = getattr(snapshot, role), role.replace("_", " ")
        counts |= {name: (vectors.shape[0], count), f"width of {name}": (vectors.shape[1], width)}
        if isinstance(vectors, ScaledRows):
            counts[f"scales of {name}"] = (len(vectors.scales), count)
    counts |= {} if snapshot.words is None else word_agreements(snapshot.words, passages)
    return counts | {
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
    reader = _Reader(root, manifest)
    arrays, tables = reader.array, reader.table
    facts = tables("facts")
    has_edges = has_group(manifest, "user edges")
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
        passage_vectors=reader.vectors("passage_vectors"),
        phrase_vectors=reader.vectors("phrase_vectors"),
        fact_vectors=reader.vectors("fact_vectors"),
        synonyms=Edges(arrays("synonym_source"), arrays("synonym_target"), arrays("synonym_weight")),
        graph=Csr(arrays("graph_indptr"), arrays("graph_indices"), arrays("graph_weights")),
        diffused=read_diffused(root, manifest) if diffused else None,
        user_edges=StoredEdges(tables("edges")) if has_edges else (),
        words=read_words(tables, arrays) if has_group(manifest, "words") else None,
        fact_cells=FactCells(*map(arrays, FACT_CELLS)) if has_group(manifest, "cells of facts") else None,
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
        self._folder, self._files, self._config = files_folder(root), manifest.files, manifest.config
        self._schemas = _TABLES | passage_tables(manifest.format)

    def array(self, role: str) -> NDArray[Any]:
        dtype, axes = _ARRAYS[role]
        if role in VECTORS:
            dtype = VECTOR_DTYPES[getattr(self._config, role)]
        held = self._files.get(role)
        if role == COUNTS and held is not None and held.dtype in COUNT_DTYPES:
            dtype = held.dtype
        return read_array(self._folder, self._entry(role, dtype, axes))

    def vectors(self, role: str) -> Vectors:
        rows = self.array(role)
        return ScaledRows(rows, self.array(VECTORS[role])) if rows.dtype == np.int8 else rows

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
