"""Points of a vector store to passages with unit vectors, each one taken or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hippogpu.embed import Embedder
from hippogpu.embed.encode import UNIT_TOLERANCE, shortened
from hippogpu.errors import CorpusError, EncoderMismatchError
from hippogpu.exchange.points import Point, store_of
from hippogpu.exchange.values import Form, OnProgress
from hippogpu.text import identity
from hippogpu.types import Floats, Passage, Refusal

CHECKED_TEXTS = 16
LEAST_COSINE = 0.999
"""Encoders give the same text the same vector but for rounding, also through float16; other encoders do not."""


class Fields(NamedTuple):
    """Under which names points hold what a passage has; "a.b" is b inside of a. The empty name stands for nothing.

    Where a point has no such id its own is taken. Fields beside these four become meta, beside what `meta` holds.
    """

    id: str = "id"
    title: str = "title"
    text: str = "text"
    meta: str = "meta"


class PointsRead(NamedTuple):
    """Passages, their vectors (None where they were not asked for), and the points that are none."""

    passages: tuple[Passage, ...]
    vectors: Floats | None
    refused: tuple[Refusal, ...]


def read_points(
    source: Path,
    form: Form,
    *,
    collection: str,
    fields: Fields,
    vector_field: str | None,
    width: int | None,
    on_progress: OnProgress,
) -> PointsRead:
    """The passages of a collection, with vectors of that width, or without vectors where width is None.

    Refused: a point without text, with fields of other types, or whose vector is not finite or not of length 1 within
    1e-3. EncoderMismatchError when the vectors have another width; CorpusError when no passage is left.
    """
    if not source.exists():
        raise CorpusError(f"There is no '{source}'. Check the path.")
    if not store_of(form).is_store(source):
        raise CorpusError(f"'{source}' is not what {form} keeps its collections in. Check the path and the form.")
    passages, vectors, refused = list[Passage](), list[Floats](), list[Refusal]()
    for point in store_of(form).read(source, collection, vector_field, on_progress):
        taken = _taken(point, fields, width, source)
        if isinstance(taken, str):
            refused.append(Refusal(f"{source}: point '{point.id:.60}'", taken))
        else:
            passages.append(taken.passage)
            vectors.append(taken.vector)
    if not passages:
        first = f", the first: {refused[0]}" if refused else ""
        raise CorpusError(f"No passage in the collection '{collection}' of '{source}' ({len(refused)} refused{first}).")
    rows = None if width is None else np.stack(vectors)
    return PointsRead(tuple(passages), rows, tuple(refused))


def check_encoder(read: PointsRead, embedder: Embedder, source: Path) -> float:
    """The least cosine between the vectors of a few passages and what the encoder makes of them now.

    EncoderMismatchError when it is below 0.999: then the vectors are another encoder's, or of another text.
    """
    assert read.vectors is not None
    chosen = np.unique(np.linspace(0, len(read.passages) - 1, CHECKED_TEXTS).astype(np.int64))
    texts = [identity(read.passages[row].title, read.passages[row].text) for row in chosen]
    fresh = embedder.encode(texts).astype(np.float64)
    stored = read.vectors[chosen].astype(np.float64)
    cosines = (fresh * stored).sum(axis=1) / (np.linalg.norm(fresh, axis=1) * np.linalg.norm(stored, axis=1))
    worst = int(np.argmin(cosines))
    if not cosines[worst] >= LEAST_COSINE:
        raise EncoderMismatchError(
            f"The vectors of '{source}' are not those of the encoder '{embedder.name}': of {len(chosen)} texts encoded "
            f"again {int(np.sum(~(cosines >= LEAST_COSINE)))} differ, the cosine of {shortened(texts[worst])} is "
            f"{cosines[worst]:.4f}. Name the encoder that made them (of title, line break and text; --title-field '' "
            "leaves titles out), or import the passages with --no-vectors."
        )
    return float(cosines[worst])


class _Taken(NamedTuple):
    """A passage, and its vector (of no width where vectors are left out)."""

    passage: Passage
    vector: Floats


def _taken(point: Point, fields: Fields, width: int | None, source: Path) -> _Taken | str:
    """The passage and the vector of a point, or why it is refused."""
    passage = _passage(point, fields)
    vector = np.empty(0, np.float32) if width is None else _vector(point, width, source)
    if isinstance(passage, str):
        return passage
    return vector if isinstance(vector, str) else _Taken(passage, vector)


def _passage(point: Point, fields: Fields) -> Passage | str:
    """The passage of a point, or why it is none."""
    text, title = _at(point.fields, fields.text), _at(point.fields, fields.title)
    id_ = _at(point.fields, fields.id)
    if isinstance(id_, int | float) and not isinstance(id_, bool):
        id_ = str(id_)
    id_, title = point.id if id_ is None else id_, "" if title is None else title
    if text is None:
        return f"it has no field '{fields.text}'; it has: {', '.join(sorted(map(str, point.fields))) or 'none'}"
    for name, value in zip(("id", "title", "text"), (id_, title, text), strict=True):
        if not isinstance(value, str):
            return f"its {name} is no text but {type(value).__name__}"
    return Passage(str(id_), str(title), str(text), _meta(point.fields, fields))


def _meta(found: Mapping[str, object], fields: Fields) -> dict[str, object]:
    """What is no id, title or text: the fields beside, and over them those of an object, or of its JSON."""
    used = {name for field in fields if field for name in (field, field.partition(".")[0])}
    meta = {str(name): value for name, value in found.items() if name not in used}
    own = _at(found, fields.meta)
    decoded = _decoded(own)
    if decoded is None:
        return meta if own is None else {**meta, fields.meta: own}
    inside = {field.partition(".")[2] for field in fields if field.partition(".")[0] == fields.meta}
    return {**meta, **{name: value for name, value in decoded.items() if name not in inside}}


def _decoded(value: object) -> dict[str, object] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else None


def _at(fields: Mapping[str, object], name: str) -> object:
    """The field of that name, or along a path of names; None where there is none."""
    if not name:
        return None
    if name in fields:
        return fields[name]
    first, _, rest = name.partition(".")
    inner = fields.get(first)
    return _at(inner, rest) if rest and isinstance(inner, dict) else None


def _vector(point: Point, width: int, source: Path) -> Floats | str:
    """The vector of a point as float32, or why it is none."""
    if point.vector is None:
        return "it has no vector"
    try:
        vector: Floats = np.asarray(point.vector, np.float32)
    except (TypeError, ValueError) as error:
        return f"its vector is none ({error})"
    if vector.ndim == 1 and len(vector) != width:
        raise EncoderMismatchError(
            f"The vectors of '{source}' have the width {len(vector)}, those of the encoder {width}. Name the encoder "
            "that made them, or import the passages with --no-vectors."
        )
    length = float(np.linalg.norm(vector))
    if vector.ndim != 1 or not abs(length - 1) <= UNIT_TOLERANCE:
        return f"its vector has the length {length:g}, not 1 within {UNIT_TOLERANCE:g}"
    return vector
