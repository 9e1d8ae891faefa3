"""Edges of one's own, between passages and phrases, from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hippogpu.corpus.reader import rows_of
from hippogpu.corpus.rows import RowError, as_id, as_object, kind_of, storable
from hippogpu.errors import CorpusError
from hippogpu.types import Refusal, UserEdge

# Beyond these, a degree or its inverse would leave what float32 holds well.
LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6
DEFAULT_KIND, DEFAULT_WEIGHT = "link", 1.0

_PASSAGES = ("passages", "passage", "other_passage")
_PHRASES = ("phrases", "phrase", "other_phrase")
_FIELDS = (*_PASSAGES, *_PHRASES, "kind", "weight")


class EdgesRead(NamedTuple):
    """The edges of a file in order, and the rows that are none."""

    edges: tuple[UserEdge, ...]
    refusals: tuple[Refusal, ...]


def read_edges(path: Path) -> EdgesRead:
    """The edges of a file in one of the row formats (JSON lines or array, CSV, TSV, Parquet).

    Each edge keeps the place it stood at. An edge that comes twice is here twice: whether two rows say the same is for
    the index to tell (Index.add_edges). CorpusError when the file cannot be read or holds no edge.
    """
    edges: list[UserEdge] = []
    refusals: list[Refusal] = []
    for row in rows_of(Path(path)):
        if isinstance(row, Refusal):
            refusals.append(row)
            continue
        try:
            edges.append(_edge_of(row.value, row.where))
        except RowError as error:
            refusals.append(Refusal(row.where, str(error)))
    if not edges:
        why = f"{len(refusals)} refused, the first: {refusals[0]}" if refusals else "empty"
        raise CorpusError(f"No edge in '{path}' ({why}). See 'Edges of one's own' in docs/corpus.md.")
    return EdgesRead(tuple(edges), tuple(refusals))


def edge_fault(edge: UserEdge) -> str | None:
    """Why an edge can be none in any index, None when it can."""
    ends = len(edge.passages) + len(edge.phrases)
    if ends != 2:
        return f"an edge has 2 ends, passages and phrases together; this one has {ends}"
    if len({*edge.passages}) < len(edge.passages) or len({*edge.phrases}) < len(edge.phrases):
        return f"it joins '{(*edge.passages, *edge.phrases)[0]}' with itself"
    texts = (*edge.passages, *edge.phrases, edge.kind)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return f"its ends and its kind must be texts that are not empty; got {texts!r}"
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    if not isinstance(edge.weight, int | float) or not LEAST_WEIGHT <= edge.weight <= MOST_WEIGHT:
        return f"its weight must be a number from {LEAST_WEIGHT:f} to {MOST_WEIGHT:.0f}; got {edge.weight}"
    return None


def _edge_of(row: object, where: str) -> UserEdge:
    """The edge that a row states; RowError saying what is wrong with it."""
    fields = as_object(row)
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown is not None:
        raise RowError(f"no field of an edge is called '{unknown}'; there are {', '.join(_FIELDS)}")
    passages = tuple(id_ for name in _PASSAGES for id_ in _ends(fields, name))
    phrases = tuple(phrase for name in _PHRASES for phrase in _ends(fields, name))
    kind = fields.get("kind")
    kind = DEFAULT_KIND if kind is None or kind == "" else storable(kind, "kind")
    edge = UserEdge(passages, phrases, kind, _weight(fields.get("weight")), where)
    fault = edge_fault(edge)
    if fault is not None:
        raise RowError(fault)
    return edge


def _ends(fields: Mapping[str, object], name: str) -> list[str]:
    """The ends of a field: a text or number, or a list of them; none for null, and for the empty text of a CSV cell."""
    value = fields.get(name)
    if value is None or value == "":
        return []
    return [as_id(item, name) for item in (value if isinstance(value, list) else [value])]


def _weight(value: object) -> float:
    """The number of a field or cell; the default where there is none."""
    if value is None or value == "":
        return DEFAULT_WEIGHT
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise RowError(f"'weight' is no number but {kind_of(value)}")
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise RowError(f"'weight' is no number: {value!r:.40}") from error
