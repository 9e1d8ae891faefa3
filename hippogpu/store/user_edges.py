"""User edges on disk: as they were given, and as the nodes they join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from hippogpu.store.columns import Columns
from hippogpu.store.files import Entry, write_array, write_table
from hippogpu.store.generations import files_folder
from hippogpu.types import Edges, UserEdge

_ENDS = ("passage", "other_passage", "phrase", "other_phrase")
_TYPES: dict[str, pa.DataType] = {**dict.fromkeys((*_ENDS, "kind"), pa.large_string()), "weight": pa.float64()}
COLUMNS = pa.schema(_TYPES)
"""An end that an edge does not have is the empty text."""

ROLES = ("edges", "edge_source", "edge_target", "edge_weight")
"""All are there, or, without user edges, none."""


def write_user_edges(root: Path, edges: Sequence[UserEdge], nodes: Edges) -> dict[str, Entry]:
    """The files of user edges, none where there are none. nodes: the pairs they join (Tables.user_edges)."""
    if not edges:
        return {}
    folder = files_folder(root)
    rows = [(*_padded(edge.passages), *_padded(edge.phrases), edge.kind, edge.weight) for edge in edges]
    columns = dict(zip(COLUMNS.names, zip(*rows, strict=True), strict=True))
    arrays = {f"edge_{name}": array for name, array in nodes._asdict().items()}
    return {
        "edges": write_table(folder, "edges", pa.table(columns, schema=COLUMNS)),
        **{role: write_array(folder, role, array) for role, array in arrays.items()},
    }


def _padded(ends: tuple[str, ...]) -> tuple[str, str]:
    first, second = (*ends, "", "")[:2]
    return first, second


class StoredEdges:
    """The user edges of a table, made one at a time from its mapping."""

    def __init__(self, table: Columns) -> None:
        self._ends = [table.texts[name] for name in _ENDS]
        self._kinds, self._weights = table.texts["kind"], table.numbers["weight"]

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[UserEdge]:
        ends = zip(*self._ends, strict=True)
        for (passage, other_passage, *phrases), kind, weight in zip(ends, self._kinds, self._weights, strict=True):
            yield UserEdge(_named(passage, other_passage), _named(*phrases), kind, float(weight))


def _named(*ends: str) -> tuple[str, ...]:
    return tuple(end for end in ends if end)
