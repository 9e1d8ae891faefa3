"""What an index puts into a vector store: passages, phrases or facts with their vectors, in blocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hippogpu.errors import UsageError
from hippogpu.exchange.values import WHATS, Form, OnProgress, What, Written
from hippogpu.precision import float_rows
from hippogpu.store import Snapshot
from hippogpu.tables import mention_counts
from hippogpu.types import Floats, Refusal

BLOCK_POINTS = 1024


class Points(NamedTuple):
    """A block of points, numbered from first on. vectors (points, w) float32."""

    first: int
    ids: Sequence[str]
    titles: Sequence[str]
    texts: Sequence[str]
    metas: Sequence[Mapping[str, Any]]
    vectors: Floats


class Collection(NamedTuple):
    """Points under a name. blocks gives them anew at each call."""

    name: What
    width: int
    size: int
    blocks: Callable[[], Iterator[Points]]


class Point(NamedTuple):
    """A point as a store gives it back: its own id, its fields, and its vector (None without one)."""

    id: str
    fields: Mapping[str, object]
    vector: Any


class Store(Protocol):
    """A vector store in files of its own. Modules of that shape: qdrant, milvus, chroma."""

    def write(self, path: Path, collections: Sequence[Collection], told: OnProgress) -> list[Refusal]:
        """Makes the store at the path; the points that it cannot hold."""
        ...

    def read(self, path: Path, collection: str, vector_field: str | None, told: OnProgress) -> Iterator[Point]:
        """The points of a collection; UsageError, naming those there are, for another name."""
        ...

    def is_store(self, path: Path) -> bool:
        """Whether the path holds a store of this kind and nothing else."""
        ...


def store_of(form: Form) -> Store:
    """The module that speaks to a kind of store; it asks for its extra when it is used."""
    from hippogpu.exchange import chroma, milvus, qdrant

    stores: Mapping[Form, Store] = {"qdrant": qdrant, "milvus": milvus, "chroma": chroma}
    return stores[form]


def write_store(snapshot: Snapshot, path: Path, form: Form, what: Sequence[What], on_progress: OnProgress) -> Written:
    """The collections of the snapshot in a store at the path."""
    unknown = [name for name in what if name not in WHATS]
    if unknown or not what:
        raise UsageError(f"Nothing of an index is called {', '.join(unknown) or repr('')}. Use {', '.join(WHATS)}.")
    collections = [collection_of(snapshot, name) for name in dict.fromkeys(what)]
    refused = store_of(form).write(path, collections, on_progress)
    rows = {collection.name: collection.size for collection in collections}
    for item in refused:
        rows[item.where.partition(" ")[0]] -= 1  # type: ignore[index]
    return Written({str(name): count for name, count in rows.items()}, refused=tuple(refused))


def collection_of(snapshot: Snapshot, what: What) -> Collection:
    """Passages (a point an id), phrases or facts of a snapshot."""
    size = {
        "passages": len(snapshot.passages.ids),
        "phrases": len(snapshot.tables.phrases),
        "facts": len(snapshot.tables.facts),
    }[what]
    make = {"passages": _passages, "phrases": _phrases, "facts": _facts}[what]

    def blocks() -> Iterator[Points]:
        for begin in range(0, size, BLOCK_POINTS):
            yield make(snapshot, begin, min(begin + BLOCK_POINTS, size))

    return Collection(what, snapshot.manifest.encoder.width, size, blocks)


def _passages(snapshot: Snapshot, begin: int, end: int) -> Points:
    passages = snapshot.passages
    named = [passages.named(number) for number in range(begin, end)]
    return Points(
        begin,
        [passage.id for passage in named],
        [passage.title for passage in named],
        [passage.text for passage in named],
        [passage.meta for passage in named],
        float_rows(snapshot.passage_vectors, passages.rows[begin:end]),
    )


def _phrases(snapshot: Snapshot, begin: int, end: int) -> Points:
    counts = mention_counts(snapshot.tables)[begin:end].tolist()
    texts = list(snapshot.tables.phrases[begin:end])
    metas = [{"passages": count} for count in counts]
    vectors = float_rows(snapshot.phrase_vectors, slice(begin, end))
    return Points(begin, _numbers(begin, end), [""] * len(texts), texts, metas, vectors)


def _facts(snapshot: Snapshot, begin: int, end: int) -> Points:
    facts, phrases = snapshot.tables.facts, snapshot.tables.phrases
    texts = list(facts.text[begin:end])
    triples = zip(facts.subject[begin:end], facts.predicate[begin:end], facts.object[begin:end], strict=True)
    metas = [{"subject": phrases[s], "predicate": predicate, "object": phrases[o]} for s, predicate, o in triples]
    vectors = float_rows(snapshot.fact_vectors, slice(begin, end))
    return Points(begin, _numbers(begin, end), [""] * len(texts), texts, metas, vectors)


def _numbers(begin: int, end: int) -> list[str]:
    return [str(number) for number in range(begin, end)]


def meta_text(meta: Mapping[str, Any]) -> str:
    """Metadata as one JSON text, for stores that hold flat values only."""
    return json.dumps(dict(meta), ensure_ascii=False, separators=(",", ":"))


def no_collection(path: Path, collection: str, there: Sequence[str]) -> UsageError:
    """An error that names the collections there are."""
    names = ", ".join(sorted(there)) or "none"
    return UsageError(f"'{path}' has no collection '{collection}'; there is: {names}. Name one with --collection.")


def one_vector_field(path: Path, named: str | None, there: Sequence[str]) -> str:
    """The field to take vectors from: the one that was named, or the only one."""
    if named in there or (named is None and len(there) == 1):
        return named or there[0]
    names = ", ".join(sorted(there)) or "none"
    raise UsageError(f"'{path}' holds these fields of vectors: {names}. Name one of them with --vector-field.")
