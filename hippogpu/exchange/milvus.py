"""Milvus Lite: a database that pymilvus keeps under one path, without a server."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hippogpu.errors import CorpusError, UsageError, require_extra
from hippogpu.exchange.points import Collection, Point, Points, meta_text, no_collection, one_vector_field
from hippogpu.exchange.values import OnProgress
from hippogpu.types import Refusal

_PURPOSE = "A Milvus Lite database"
_POINTS_AT_ONCE = 1024
# The most bytes that a text, and that a JSON value, may have in Milvus.
_MOST_BYTES = 65_535
_OURS = {"LOCK", "collections", "databases", ".database-staging"}


def write(path: Path, collections: Sequence[Collection], told: OnProgress) -> list[Refusal]:
    """A collection each: id (the key), title, text, meta (JSON) and vector; an exact index by inner product.

    A point with a text beyond 65,535 bytes is refused.
    """
    library, refused = _library(), list[Refusal]()
    with _client(path) as client:
        for collection in collections:
            client.create_collection(
                collection.name,
                schema=_schema(client, library, collection.width),
                index_params=_index(client),
            )
            for block in collection.blocks():
                rows = list(_rows(collection.name, block, refused))
                if rows:
                    client.insert(collection.name, rows)
                told(collection.name, block.first + len(block.ids), collection.size)
    return refused


def read(path: Path, collection: str, vector_field: str | None, told: OnProgress) -> Iterator[Point]:
    """The points of a collection in the order of their keys."""
    library = _library()
    with _client(path) as client:
        names = client.list_collections()
        if collection not in names:
            raise no_collection(path, collection, names)
        fields = client.describe_collection(collection)["fields"]
        key = next(field["name"] for field in fields if field.get("is_primary"))
        vectors = [field["name"] for field in fields if field["type"] == library.DataType.FLOAT_VECTOR]
        vector = one_vector_field(path, vector_field, vectors)
        client.load_collection(collection)
        blocks = client.query_iterator(collection, batch_size=_POINTS_AT_ONCE, output_fields=["*"])
        done, whole = 0, int(client.get_collection_stats(collection)["row_count"])
        while rows := blocks.next():
            done += len(rows)
            told("read", done, whole)
            for row in rows:
                kept = {name: value for name, value in row.items() if name not in vectors and name != "$meta"}
                yield Point(str(row[key]), kept, row.get(vector))
        blocks.close()


def is_store(path: Path) -> bool:
    """Whether the path is a database of Milvus Lite 3: a folder. (Older versions kept a file, which 3 cannot open.)"""
    names = {one.name for one in path.iterdir()} if path.is_dir() else set()
    return "collections" in names and names <= _OURS


def _schema(client: Any, library: Any, width: int) -> Any:
    kinds = library.DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=_MOST_BYTES)
    schema.add_field("title", kinds.VARCHAR, max_length=_MOST_BYTES)
    schema.add_field("text", kinds.VARCHAR, max_length=_MOST_BYTES)
    schema.add_field("meta", kinds.JSON)
    schema.add_field("vector", kinds.FLOAT_VECTOR, dim=width)
    return schema


def _index(client: Any) -> Any:
    parameters = client.prepare_index_params()
    parameters.add_index("vector", index_type="FLAT", metric_type="IP")
    return parameters


def _rows(name: str, block: Points, refused: list[Refusal]) -> Iterator[dict[str, Any]]:
    columns = (block.ids, block.titles, block.texts, block.metas, block.vectors)
    for id_, title, text, meta, vector in zip(*columns, strict=True):
        sizes = {"id": id_, "title": title, "text": text, "meta": meta_text(meta)}
        long = [field for field, value in sizes.items() if len(value.encode()) > _MOST_BYTES]
        if long:
            refused.append(Refusal(f"{name} '{id_:.60}'", f"its {long[0]} has more than {_MOST_BYTES:,} bytes"))
            continue
        yield {"id": id_, "title": title, "text": text, "meta": dict(meta), "vector": vector}


def _library() -> Any:
    return require_extra("pymilvus", package="pymilvus", extra="milvus", purpose=_PURPOSE)


@contextmanager
def _client(path: Path) -> Iterator[Any]:
    """The database, open; CorpusError when the client cannot open or read it."""
    library = _library()
    if path.suffix != ".db":
        raise UsageError(f"A Milvus Lite database has a name that ends in .db; '{path.name}' does not. Rename it.")
    with _quiet(), _served(path):
        try:
            with closing(library.MilvusClient(str(path))) as client:
                yield client
        except library.MilvusException as error:
            raise CorpusError(
                f"Milvus cannot use '{path}' ({error}). Check what wrote it, and who else has it open."
            ) from error


@contextmanager
def _served(path: Path) -> Iterator[None]:
    """Stops, at the end, what the client starts for the path: a server in threads of this process, which locks it."""
    servers: Any = require_extra("milvus_lite.server_manager", package="milvus-lite", extra="milvus", purpose=_PURPOSE)
    try:
        yield
    finally:
        servers.server_manager_instance.release_server(str(path))


@contextmanager
def _quiet() -> Iterator[None]:
    """The libraries warn of a time stamp that no local database has, and print what they also raise."""
    loggers = [logging.getLogger(name) for name in ("pymilvus", "milvus_lite")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
