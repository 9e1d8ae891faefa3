"""The tables of a Parquet export: names, columns, and how rows are written and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hippogpu.errors import CorpusError
from hippogpu.types import Floats

FORMAT = 1
HEAD = "export.json"
HEAD_KIND = "hippogpu index"

_TEXT: pa.DataType = pa.large_string()
_NUMBER: pa.DataType = pa.int32()
_WEIGHT: pa.DataType = pa.float32()
_ENDS = ("passage", "other_passage", "phrase", "other_phrase", "kind")

Packing = Literal["gzip", "brotli", "lz4", "zstd", "snappy", "none"]
Columns = Mapping[str, pa.DataType]
TABLES: Mapping[str, Columns] = {
    "passages": {"id": _TEXT, "title": _TEXT, "text": _TEXT, "meta": _TEXT, "extractor": _TEXT},
    "ids": {"id": _TEXT, "title": _TEXT, "meta": _TEXT, "passage": _NUMBER},
    "phrases": {"text": _TEXT},
    "facts": {"subject": _NUMBER, "predicate": _TEXT, "object": _NUMBER, "text": _TEXT},
    "statements": {"passage": _NUMBER, "fact": _NUMBER},
    "mentions": {"passage": _NUMBER, "phrase": _NUMBER},
    "synonyms": {"source": _NUMBER, "target": _NUMBER, "weight": _WEIGHT},
    "graph": {"source": _NUMBER, "target": _NUMBER, "weight": _WEIGHT},
    "user_edges": {**dict.fromkeys(_ENDS, _TEXT), "weight": pa.float64()},
    "user_edge_nodes": {"source": _NUMBER, "target": _NUMBER, "weight": _WEIGHT},
    "diffused": {"one": _WEIGHT},
}
"""Columns of each table beside the vectors. The last three are there only where the index has what they hold."""

OPTIONAL = ("user_edges", "user_edge_nodes", "diffused")
WITH_VECTORS = ("passages", "phrases", "facts", "diffused")
VECTOR = "vector"
_LEAF = "vector.list.element"


class Declared(NamedTuple):
    """A file as the head of the export names it."""

    bytes: int
    sha256: str
    rows: int


def schema_of(name: str, width: int) -> pa.Schema:
    """The columns of a table in an export of vectors of that width."""
    columns: dict[str, pa.DataType] = dict(TABLES[name])
    if name in WITH_VECTORS:
        columns[VECTOR] = pa.list_(pa.field("item", pa.float32(), nullable=False), width)
    return pa.schema([pa.field(column, kind, nullable=False) for column, kind in columns.items()])


def vector_column(rows: Floats) -> pa.Array[Any]:
    """Vectors as a column of lists of one length."""
    flat: pa.Array[Any] = pa.array(np.ascontiguousarray(rows, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])


def write_rows(
    folder: Path, name: str, width: int, blocks: Iterable[Mapping[str, Any]], told: Callable[[int], None]
) -> int:
    """Writes a table from blocks of columns; how many rows there were, which are told as they are written."""
    schema = schema_of(name, width)
    # Vectors do not shrink, and plain ones let a reader compare the size of the file with what it says it holds.
    packing: dict[str, Packing] = dict.fromkeys(TABLES[name], "zstd")
    packing |= {_LEAF: "none"} if name in WITH_VECTORS else {}
    rows = 0
    with pq.ParquetWriter(folder / f"{name}.parquet", schema, compression=packing, use_dictionary=False) as writer:
        for block in blocks:
            arrays = [pa.array(block[field.name], field.type) for field in schema]
            table = pa.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table)
            rows += table.num_rows
            told(rows)
    return rows


class Table(NamedTuple):
    """A table as it was read: columns without the vectors, and the vectors where it has any."""

    columns: pa.Table
    vectors: Floats | None

    def texts(self, name: str) -> list[str]:
        values: list[str] = self.columns[name].to_pylist()  # type: ignore[assignment]
        return values

    def numbers(self, name: str) -> Any:
        """A column of numbers as an array of its own type."""
        return np.ascontiguousarray(self.columns[name].to_numpy())


def read_rows(folder: Path, name: str, width: int, declared: Declared) -> Table:
    """A table, checked: columns and types, number of rows, no missing value, texts in UTF-8.

    CorpusError naming the file otherwise. Its bytes have been compared with the declared ones before.
    """
    path = folder / f"{name}.parquet"
    schema = schema_of(name, width)
    vectors = name in WITH_VECTORS
    if vectors and declared.bytes < 4 * width * declared.rows:
        raise unfit(path, f"{declared.bytes} bytes hold no {declared.rows} vectors of width {width}")
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(schema):
                raise unfit(path, f"its columns are not {', '.join(map(str, schema))}")
            if file.metadata.num_rows != declared.rows:
                raise unfit(path, f"it holds {file.metadata.num_rows} rows, not {declared.rows}")
            leaves = [column for column in schema.names if column != VECTOR]
            table = file.read(columns=leaves)
            table.validate(full=True)
            rows = _vectors(path, file, width, declared.rows) if vectors else None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unfit(path, f"it is no readable Parquet file ({error})") from error
    if any(column.null_count for column in table.columns):
        raise unfit(path, "it holds missing values")
    return Table(table, rows)


def _vectors(path: Path, file: pq.ParquetFile, width: int, rows: int) -> Floats:
    found = np.empty((rows, width), np.float32)
    at = 0
    for batch in file.iter_batches(4096, columns=[VECTOR]):
        column = batch.column(0)
        flat = pc.list_flatten(column)
        if column.null_count or flat.null_count or len(flat) != len(column) * width:
            raise unfit(path, f"a vector near row {at} has missing values")
        found[at : at + len(column)] = flat.to_numpy().reshape(-1, width)
        at += len(column)
    return found


def unfit(path: Path, what: str) -> CorpusError:
    """An error about a file of an export."""
    return CorpusError(f"'{path}' cannot be imported: {what}. Export the index again.")


def ranges(rows: int, step: int) -> Iterator[tuple[int, int]]:
    """Begin and end of blocks of rows; one empty block for no rows, so that a table is written all the same."""
    for begin in range(0, max(rows, 1), step):
        yield begin, min(begin + step, rows)
