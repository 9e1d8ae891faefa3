"""Qdrant's local mode: a folder that its client keeps."""

from __future__ import annotations

import io
import pickle
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hippogpu.errors import CorpusError, require_extra
from hippogpu.exchange.points import Collection, Point, no_collection, one_vector_field
from hippogpu.exchange.values import OnProgress
from hippogpu.types import Refusal

_POINTS_AT_ONCE = 1024
_STORAGE = "storage.sqlite"
# What a point of the local mode is made of, besides plain values.
_HARMLESS = {
    ("qdrant_client.http.models.models", "PointStruct"),
    ("qdrant_client.http.models.models", "SparseVector"),
}


def write(path: Path, collections: Sequence[Collection], told: OnProgress) -> list[Refusal]:
    """A collection each: points 0…, payload id, title, text and meta. The distance is Dot, which of unit vectors is
    the cosine; under Cosine the client would scale each vector anew, and it would not come back as it was.
    """
    library = _library()
    with _client(path) as client:
        for collection in collections:
            sizes = library.models.VectorParams(size=collection.width, distance=library.models.Distance.DOT)
            client.create_collection(collection.name, vectors_config=sizes)
            for block in collection.blocks():
                rows = zip(block.ids, block.titles, block.texts, block.metas, strict=True)
                batch = library.models.Batch(
                    ids=list(range(block.first, block.first + len(block.ids))),
                    vectors=block.vectors.tolist(),
                    payloads=[{"id": i, "title": title, "text": t, "meta": dict(meta)} for i, title, t, meta in rows],
                )
                client.upsert(collection.name, batch)
                told(collection.name, block.first + len(block.ids), collection.size)
    return []


def read(path: Path, collection: str, vector_field: str | None, told: OnProgress) -> Iterator[Point]:
    """The points of a collection in the order of their ids."""
    _library()
    check_pickles(path)
    with _client(path) as client:
        names = [one.name for one in client.get_collections().collections]
        if collection not in names:
            raise no_collection(path, collection, names)
        offset: Any = None
        done, whole = 0, client.count(collection).count
        while True:
            points, offset = client.scroll(
                collection, limit=_POINTS_AT_ONCE, offset=offset, with_payload=True, with_vectors=True
            )
            for point in points:
                yield Point(str(point.id), point.payload or {}, _vector(path, point.vector, vector_field))
            done += len(points)
            told("read", done, whole)
            if offset is None:
                return


def is_store(path: Path) -> bool:
    """Whether a folder is one of the local mode."""
    names = {one.name for one in path.iterdir()} if path.is_dir() else set()
    return "meta.json" in names and names <= {"meta.json", "collection", ".lock"}


def check_pickles(path: Path) -> None:
    """Nothing when every point of the folder is made of plain values; else CorpusError naming the file.

    The local mode keeps points as pickles, and opening a folder loads them all: one from elsewhere could run any code.
    """
    for storage in sorted(path.glob(f"collection/*/{_STORAGE}")):
        try:
            with closing(sqlite3.connect(f"{storage.resolve().as_uri()}?mode=ro", uri=True)) as base:
                for (value,) in base.execute("SELECT point FROM points"):
                    _Plain(io.BytesIO(value)).load()
        except (sqlite3.Error, pickle.UnpicklingError, EOFError, TypeError, ValueError, AttributeError) as error:
            raise CorpusError(
                f"'{storage}' is not opened: {error}. Take a folder that Qdrant's own client wrote from a source you "
                "trust."
            ) from error


class _Plain(pickle.Unpickler):
    """Loads plain values and points, and refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(f"one of its points is made of '{module}.{name}', which no point needs")
        return super().find_class(module, name)


def _vector(path: Path, vector: Any, field: str | None) -> Any:
    """The vector of a point; of named ones, the one that is asked for."""
    if not isinstance(vector, dict):
        return vector
    return vector[one_vector_field(path, field, list(vector))]


def _library() -> Any:
    return require_extra("qdrant_client", package="qdrant-client", extra="qdrant", purpose="A Qdrant folder")


@contextmanager
def _client(path: Path) -> Iterator[Any]:
    """The folder, open; CorpusError when the client cannot open it."""
    try:
        client = _library().QdrantClient(path=str(path))
    except (RuntimeError, ValueError, KeyError, TypeError, OSError, sqlite3.Error) as error:
        raise CorpusError(f"'{path}' cannot be opened as a Qdrant folder ({error}). Check what wrote it.") from error
    try:
        yield client
    except sqlite3.Error as error:
        raise CorpusError(f"Qdrant cannot go on with '{path}' ({error}). Make room, or check what wrote it.") from error
    finally:
        client.close()
