"""A small index with something of everything that an export carries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from small_index import PASSAGES, Saying, open_index, stating

from hippogpu import Passage, UserEdge
from hippogpu.exchange import export_index
from hippogpu.store import Snapshot, current_manifest, load_snapshot

FIRST = PASSAGES[0]
RICH = [
    *PASSAGES,
    Passage("alias", FIRST.title, FIRST.text, {"source": None, "pages": [1, 2.5], "ü": {"a": "b"}}),
    Passage("split", "", f"{FIRST.title}\n{FIRST.text}"),
    stating("ünï 漢", "Zoë|mag|𝄞 Musik;the engine|is in|Zoë", title="<&\"'> \u2028 title"),
    stating("down", "never|is|read"),
]
EDGES = [
    UserEdge(("p1", "p2"), kind="link", weight=0.123456789),
    UserEdge(("p3",), ("steam",), kind="tag"),
    UserEdge((), ("notes", "Charles Babbage"), kind="see & also", weight=3.0),
]


def rich_index(root: Path) -> Path:
    """Aliases, a text split in two ways, other scripts, edges of one's own, and a passage that nobody could read."""
    with open_index(root, extractor=Saying(failing={"down"})) as index:
        index.add(RICH)
        index.add_edges(EDGES)
        index.commit()
    return root


def snapshot_of(root: Path) -> Snapshot:
    return load_snapshot(root, current_manifest(root))


def exported(root: Path) -> Path:
    """The Parquet export of the index, beside it."""
    target = root.with_suffix(".parquet")
    export_index(root, target)
    return target


def rewrite(export: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Changes a table of an export, and makes the head say so: as somebody would who knows how."""
    path = export / f"{name}.parquet"
    table = change(pq.read_table(path))
    pq.write_table(table, path, compression="none", use_dictionary=False)
    declare(export, path, lambda entry: entry["tables"][name], rows=table.num_rows)


def declare(export: Path, path: Path, of: Callable[[Any], Any], *, rows: int | None = None) -> None:
    """Puts size and hash of a changed file into the head."""
    head = json.loads((export / "export.json").read_text())
    data = path.read_bytes()
    of(head).update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    if rows is not None:
        of(head)["rows"] = rows
    (export / "export.json").write_text(json.dumps(head))


def with_column(name: str, values: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """A change of one column's values; its type stays."""

    def change(table: pa.Table) -> pa.Table:
        place, field = table.schema.get_field_index(name), table.schema.field(name)
        return table.set_column(place, field, pa.array(values(table[name].to_pylist()), field.type))

    return change
