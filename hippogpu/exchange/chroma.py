"""Chroma's persistent client: a folder that it keeps."""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hippogpu.errors import CorpusError, UsageError, require_extra
from hippogpu.exchange.points import Collection, Point, meta_text, no_collection
from hippogpu.exchange.values import OnProgress
from hippogpu.types import Refusal

_POINTS_AT_ONCE = 1024
_BASE = "chroma.sqlite3"
_SEGMENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def write(path: Path, collections: Sequence[Collection], told: OnProgress) -> list[Refusal]:
    """A collection each: ids, documents (the texts), metadata title and meta (JSON). Space: inner product.

    Chroma's metadata are flat, so meta is one text.
    """
    with _client(path) as client:
        for collection in collections:
            made = client.create_collection(
                collection.name, embedding_function=None, configuration={"hnsw": {"space": "ip"}}
            )
            for block in collection.blocks():
                pairs = zip(block.titles, block.metas, strict=True)
                made.add(
                    ids=list(block.ids),
                    embeddings=block.vectors,
                    documents=list(block.texts),
                    metadatas=[{"title": title, "meta": meta_text(meta)} for title, meta in pairs],
                )
                told(collection.name, block.first + len(block.ids), collection.size)
    return []


def read(path: Path, collection: str, vector_field: str | None, told: OnProgress) -> Iterator[Point]:
    """The points of a collection in the order they came. The document is the field "text"."""
    if vector_field is not None:
        raise UsageError("A point of Chroma has one vector without a name. Leave --vector-field out.")
    _check_database(path)
    with _client(path) as client:
        names = [one.name for one in client.list_collections()]
        if collection not in names:
            raise no_collection(path, collection, names)
        found = client.get_collection(collection, embedding_function=None)
        whole = found.count()
        for offset in range(0, whole, _POINTS_AT_ONCE):
            block = found.get(limit=_POINTS_AT_ONCE, offset=offset, include=["embeddings", "documents", "metadatas"])
            columns = (block["ids"], block["documents"], block["metadatas"], block["embeddings"])
            told("read", offset, whole)
            for id_, document, metadata, vector in zip(*columns, strict=True):
                yield Point(id_, {**(metadata or {}), **({} if document is None else {"text": document})}, vector)


def is_store(path: Path) -> bool:
    """Whether a folder is one of Chroma: its database, and folders called by UUIDs beside it."""
    if not (path / _BASE).is_file():
        return False
    return all(_SEGMENT.fullmatch(one.name) or one.name.startswith(_BASE) for one in path.iterdir())


def _check_database(path: Path) -> None:
    """CorpusError when the database, or a text in it, is damaged: the client would end in a panic of its own."""
    try:
        with closing(sqlite3.connect(f"{(path / _BASE).resolve().as_uri()}?mode=ro", uri=True)) as base:
            answer = base.execute("PRAGMA quick_check(1)").fetchone()[0]
            tables = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            for name in (name for name, sql in tables if not sql.upper().startswith("CREATE VIRTUAL")):
                # Each text of a row is decoded here, and that is all that is wanted.
                deque(base.execute('SELECT * FROM "{}"'.format(name.replace('"', '""'))), maxlen=0)
    except sqlite3.Error as error:
        answer = str(error)
    if answer != "ok":
        raise CorpusError(f"'{path / _BASE}' is damaged ({answer}). Restore it from a copy.")


def _library() -> Any:
    return require_extra("chromadb", package="chromadb", extra="chroma", purpose="A Chroma folder")


@contextmanager
def _client(path: Path) -> Iterator[Any]:
    """The folder, open, with nothing reported to anybody; CorpusError when the client cannot open or read it."""
    library = _library()
    settings = library.config.Settings(anonymized_telemetry=False)
    try:
        client = library.PersistentClient(path=str(path), settings=settings)
    except (library.errors.ChromaError, ValueError, RuntimeError, OSError) as error:
        raise CorpusError(f"'{path}' cannot be opened as a Chroma folder ({error}). Check what wrote it.") from error
    try:
        yield client
    except library.errors.ChromaError as error:
        raise CorpusError(f"Chroma cannot go on with '{path}' ({error}). Check what wrote it.") from error
    finally:
        client.close()
