"""An index to a folder of Parquet files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hippogpu.config import as_mapping
from hippogpu.exchange.graph_edges import triangles
from hippogpu.exchange.parquet_tables import (
    FORMAT,
    HEAD,
    HEAD_KIND,
    OPTIONAL,
    VECTOR,
    Declared,
    ranges,
    vector_column,
    write_rows,
)
from hippogpu.exchange.records import RecordFile, write_records
from hippogpu.exchange.values import OnProgress, Written
from hippogpu.precision import float_rows
from hippogpu.store import Snapshot
from hippogpu.store.mapped import sha256_of
from hippogpu.types import Edges, Ragged, UserEdge

_BLOCK_ROWS = 8192
_BLOCK_PAIRS = 1 << 20

Block = Mapping[str, Any]


def write_parquet(root: Path, snapshot: Snapshot, folder: Path, on_progress: OnProgress) -> Written:
    """A folder with a Parquet file a table, the extractors' records as JSON lines, and export.json."""
    folder.mkdir()
    width = snapshot.manifest.encoder.width
    rows: dict[str, int] = {}
    for name, (make, whole) in _BLOCKS.items():
        if name not in OPTIONAL or _has(snapshot, name):
            told = partial(_tell, on_progress, name, whole(snapshot))
            rows[name] = write_rows(folder, name, width, make(snapshot), told)
    records, notes = write_records(root, snapshot, folder, on_progress)
    files = {name: _declared(folder / f"{name}.parquet", count) for name, count in rows.items()}
    (folder / HEAD).write_text(json.dumps(_head(snapshot, files, records), indent=1) + "\n", "ascii")
    return Written({**rows, "records": sum(one.records for one in records)}, notes=notes)


def _tell(on_progress: OnProgress, name: str, whole: int, done: int) -> None:
    on_progress(name, done, whole)


def _head(snapshot: Snapshot, files: Mapping[str, Declared], records: list[RecordFile]) -> dict[str, Any]:
    manifest, mark = snapshot.manifest, snapshot.manifest.diffusion
    return {
        "what": HEAD_KIND,
        "format": FORMAT,
        "program": version("hippogpu"),
        "index": {"format": manifest.format, "generation": manifest.generation, "created": manifest.created},
        "config": as_mapping(manifest.config),
        "encoder": manifest.encoder._asdict(),
        "counts": dict(manifest.counts),
        "diffusion": {"damping": mark.damping, "error": mark.error} if mark and snapshot.diffused else None,
        "tables": {name: declared._asdict() for name, declared in files.items()},
        "records": [one._asdict() for one in records],
        "sha256": {role: entry.sha256 for role, entry in manifest.files.items() if _kept(snapshot, role)},
    }


def _kept(snapshot: Snapshot, role: str) -> bool:
    return snapshot.diffused is not None or not role.startswith("diffused_")


def _declared(path: Path, rows: int) -> Declared:
    return Declared(path.stat().st_size, sha256_of(path), rows)


def _has(snapshot: Snapshot, name: str) -> bool:
    return snapshot.diffused is not None if name == "diffused" else len(_user_edges(snapshot)) > 0


def _user_edges(snapshot: Snapshot) -> list[UserEdge]:
    return list(snapshot.user_edges)


def _passages(snapshot: Snapshot) -> Iterator[Block]:
    passages = snapshot.passages
    for begin, end in ranges(len(passages), _BLOCK_ROWS):
        numbers = [int(number) for number in passages.first[begin:end]]
        named = [passages.named(number) for number in numbers]
        yield {
            "id": [passage.id for passage in named],
            "title": [passage.title for passage in named],
            "text": [passage.text for passage in named],
            "meta": [passages.metas[number] for number in numbers],
            "extractor": list(passages.extractors[begin:end]),
            VECTOR: vector_column(float_rows(snapshot.passage_vectors, slice(begin, end))),
        }


def _ids(snapshot: Snapshot) -> Iterator[Block]:
    passages = snapshot.passages
    for begin, end in ranges(len(passages.ids), _BLOCK_ROWS):
        columns = {"id": passages.ids, "title": passages.titles, "meta": passages.metas}
        yield {
            **{name: list(column[begin:end]) for name, column in columns.items()},
            "passage": passages.rows[begin:end],
        }


def _phrases(snapshot: Snapshot) -> Iterator[Block]:
    phrases = snapshot.tables.phrases
    for begin, end in ranges(len(phrases), _BLOCK_ROWS):
        rows = float_rows(snapshot.phrase_vectors, slice(begin, end))
        yield {"text": list(phrases[begin:end]), VECTOR: vector_column(rows)}


def _facts(snapshot: Snapshot) -> Iterator[Block]:
    facts = snapshot.tables.facts
    for begin, end in ranges(len(facts), _BLOCK_ROWS):
        yield {
            "subject": facts.subject[begin:end],
            "predicate": list(facts.predicate[begin:end]),
            "object": facts.object[begin:end],
            "text": list(facts.text[begin:end]),
            VECTOR: vector_column(float_rows(snapshot.fact_vectors, slice(begin, end))),
        }


def _pairs(ragged: Ragged, name: str) -> Iterator[Block]:
    """The rows of a ragged array as pairs of passage and value."""
    indptr = np.asarray(ragged.indptr)
    for begin, end in ranges(len(ragged.values), _BLOCK_PAIRS):
        passage = np.searchsorted(indptr, np.arange(begin, end), side="right") - 1
        yield {"passage": passage.astype(np.int32), name: ragged.values[begin:end]}


def _edges(edges: Edges) -> Iterator[Block]:
    for begin, end in ranges(len(edges.source), _BLOCK_PAIRS):
        yield {name: column[begin:end] for name, column in edges._asdict().items()}


def _graph(snapshot: Snapshot) -> Iterator[Block]:
    for block in triangles(snapshot):
        yield {"source": block.source.astype(np.int32), "target": block.target, "weight": block.weight}


def _own(snapshot: Snapshot) -> Iterator[Block]:
    edges = _user_edges(snapshot)
    ends = [((*edge.passages, "", "")[:2], (*edge.phrases, "", "")[:2]) for edge in edges]
    yield {
        "passage": [passages[0] for passages, _ in ends],
        "other_passage": [passages[1] for passages, _ in ends],
        "phrase": [phrases[0] for _, phrases in ends],
        "other_phrase": [phrases[1] for _, phrases in ends],
        "kind": [edge.kind for edge in edges],
        "weight": [edge.weight for edge in edges],
    }


def _diffused(snapshot: Snapshot) -> Iterator[Block]:
    diffused = snapshot.diffused
    assert diffused is not None
    for begin, end in ranges(len(diffused.ones), _BLOCK_ROWS):
        yield {"one": diffused.ones[begin:end], VECTOR: vector_column(diffused.vectors[begin:end])}


_BLOCKS: Mapping[str, tuple[Callable[[Snapshot], Iterator[Block]], Callable[[Snapshot], int]]] = {
    "passages": (_passages, lambda one: len(one.passages)),
    "ids": (_ids, lambda one: len(one.passages.ids)),
    "phrases": (_phrases, lambda one: len(one.tables.phrases)),
    "facts": (_facts, lambda one: len(one.tables.facts)),
    "statements": (lambda one: _pairs(one.tables.statements, "fact"), lambda one: len(one.tables.statements.values)),
    "mentions": (lambda one: _pairs(one.tables.mentions, "phrase"), lambda one: len(one.tables.mentions.values)),
    "synonyms": (lambda one: _edges(one.synonyms), lambda one: len(one.synonyms.source)),
    "graph": (_graph, lambda one: one.graph.nonzeros // 2),
    "user_edges": (_own, lambda one: len(_user_edges(one))),
    "user_edge_nodes": (lambda one: _edges(one.tables.user_edges), lambda one: len(one.tables.user_edges.source)),
    "diffused": (_diffused, lambda one: len(one.passages)),
}
"""Of each table: its rows in blocks, and how many there will be."""
