"""The tables of a Parquet export to the values of an index: nothing is taken that an index could not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.config import VectorType
from hippogpu.corpus import edge_fault
from hippogpu.exchange.parquet_head import Head
from hippogpu.exchange.parquet_tables import Table, unfit
from hippogpu.graph import assemble
from hippogpu.precision import Vectors, rounded
from hippogpu.resolve import NameEdges, names_for, with_names
from hippogpu.store import Passages, passages_of
from hippogpu.text import identity
from hippogpu.types import NO_EDGES, Csr, Edges, Facts, Ints, Ragged, Tables, UserEdge

_MOST_COSINE = 1.0 + 1e-3


class Contents(NamedTuple):
    """The values that an index is written from."""

    passages: Passages
    tables: Tables
    passage_vectors: Vectors
    phrase_vectors: Vectors
    fact_vectors: Vectors
    synonyms: Edges
    graph: Csr
    user_edges: tuple[UserEdge, ...]
    names: NameEdges | None


def contents(folder: Path, head: Head, read: Mapping[str, Table]) -> Contents:
    """The values of an export; CorpusError naming the file, or IndexDamagedError naming the array, when one is none."""
    passages = _passages(folder, read["passages"], read["ids"])
    phrases = _phrases(folder, read["phrases"])
    facts = _facts(folder, read["facts"], phrases)
    tables = Tables(
        phrases,
        facts,
        _ragged(folder, "mentions", read["mentions"], "phrase", len(passages)),
        _ragged(folder, "statements", read["statements"], "fact", len(passages)),
        _edges(read["user_edge_nodes"]) if "user_edge_nodes" in read else NO_EDGES,
    ).check()
    synonyms = _synonyms(folder, read["synonyms"], len(phrases))
    user_edges = _user_edges(folder, read["user_edges"], passages) if "user_edges" in read else ()
    if bool(user_edges) != ("user_edges" in read):
        raise unfit(folder / "user_edges.parquet", "it holds no edge")
    names = names_for(tables, passages.wholes, head.config)
    graph = assemble(tables, with_names(synonyms, names), head.config.edge_rule)
    _check_graph(folder, read["graph"], graph)
    return Contents(
        passages,
        tables,
        _vectors(read["passages"], head.config.passage_vectors),
        _vectors(read["phrases"], head.config.phrase_vectors),
        _vectors(read["facts"], head.config.fact_vectors),
        synonyms,
        graph,
        user_edges,
        names,
    )


def _vectors(table: Table, kind: VectorType) -> Vectors:
    """The rows as the index stores them: an export has them in float32, and a second rounding changes nothing."""
    assert table.vectors is not None
    return rounded(table.vectors, kind)


def _passages(folder: Path, texts: Table, ids: Table) -> Passages:
    path = folder / "passages.parquet"
    pairs = zip(texts.texts("title"), texts.texts("text"), strict=True)
    wholes = [identity(*pair) for pair in pairs]
    bare = next((row for row, one in enumerate(wholes) if not one.strip()), None)
    if bare is not None:
        raise unfit(path, f"row {bare} has neither title nor text")
    if len(set(wholes)) < len(wholes):
        raise unfit(path, "a text comes twice")
    names, titles, metas = (ids.texts(name) for name in ("id", "title", "meta"))
    if not all(names) or len(set(names)) < len(names):
        raise unfit(folder / "ids.parquet", "an id is empty or there twice")
    passages = passages_of(
        names, titles, metas, ids.numbers("passage"), wholes=wholes, extractors=texts.texts("extractor")
    )
    if np.any(np.diff(passages.first) <= 0):
        raise unfit(folder / "ids.parquet", "its passages are not in the order in which their first ids come")
    for number in range(len(names)):
        passages.named(number)
    _check_first(path, passages, texts)
    return passages


def _check_first(path: Path, passages: Passages, texts: Table) -> None:
    """Each passage stands under the first of its ids."""
    columns = {"id": passages.ids, "title": passages.titles, "meta": passages.metas}
    for name, column in columns.items():
        expected = [column[int(number)] for number in passages.first]
        if texts.texts(name) != expected:
            raise unfit(path, f"a '{name}' is not that of the passage's first id in ids.parquet")


def _phrases(folder: Path, table: Table) -> list[str]:
    phrases = table.texts("text")
    if not _ascend(phrases):
        raise unfit(folder / "phrases.parquet", "its texts do not ascend")
    return phrases


def _facts(folder: Path, table: Table, phrases: Sequence[str]) -> Facts:
    facts = Facts(table.numbers("subject"), table.numbers("object"), table.texts("predicate"), table.texts("text"))
    ends = np.concatenate([facts.subject, facts.object])
    if len(ends) and (ends.min() < 0 or ends.max() >= len(phrases)):
        raise unfit(folder / "facts.parquet", f"a fact names a phrase outside [0, {len(phrases)})")
    keys = zip(facts.subject.tolist(), facts.predicate, facts.object.tolist(), strict=True)
    if not _ascend(list(keys)):
        raise unfit(folder / "facts.parquet", "its facts do not ascend")
    return facts


def _ascend(values: Sequence[str] | Sequence[tuple[int, str, int]]) -> bool:
    return all(one < other for one, other in pairwise(values))  # type: ignore[operator]


def _ragged(folder: Path, name: str, table: Table, column: str, rows: int) -> Ragged:
    passage, values = table.numbers("passage"), table.numbers(column)
    path = folder / f"{name}.parquet"
    if len(passage) and (passage.min() < 0 or passage.max() >= rows or np.any(np.diff(passage) < 0)):
        raise unfit(path, f"its passages do not ascend inside [0, {rows})")
    if name == "mentions" and np.any((np.diff(passage) == 0) & (np.diff(values) <= 0)):
        raise unfit(path, "the phrases of a passage do not ascend")
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(passage, minlength=rows), out=indptr[1:])
    return Ragged(indptr, values)


def _edges(table: Table) -> Edges:
    return Edges(*(table.numbers(name) for name in Edges._fields))


def _synonyms(folder: Path, table: Table, phrases: int) -> Edges:
    synonyms = _edges(table)
    ends: Ints = np.concatenate([synonyms.source, synonyms.target])
    path = folder / "synonyms.parquet"
    if len(ends) and (ends.min() < 0 or ends.max() >= phrases or np.any(synonyms.source == synonyms.target)):
        raise unfit(path, f"it joins no two phrases inside [0, {phrases})")
    if not np.all((synonyms.weight > 0) & (synonyms.weight <= _MOST_COSINE)):
        raise unfit(path, "a weight is no cosine above 0")
    return synonyms


def _user_edges(folder: Path, table: Table, passages: Passages) -> tuple[UserEdge, ...]:
    names = ("passage", "other_passage", "phrase", "other_phrase", "kind")
    rows = zip(*(table.texts(name) for name in names), table.numbers("weight").tolist(), strict=True)
    edges = tuple(
        UserEdge(_named(passage, other), _named(phrase, another), kind, weight)
        for passage, other, phrase, another, kind, weight in rows
    )
    for number, edge in enumerate(edges, start=1):
        fault = edge_fault(edge)
        if fault is not None:
            raise unfit(folder / "user_edges.parquet", f"row {number}: {fault}")
    return edges


def _named(*ends: str) -> tuple[str, ...]:
    return tuple(end for end in ends if end)


def _check_graph(folder: Path, table: Table, graph: Csr) -> None:
    """The graph of the export is the one that its tables make: a graph is a function of the tables."""
    source = np.repeat(np.arange(graph.nodes, dtype=np.int64), np.diff(graph.indptr))
    above = graph.indices > source
    columns: dict[str, NDArray[Any]] = {
        "source": source[above],
        "target": graph.indices[above],
        "weight": graph.weights[above],
    }
    for name, expected in columns.items():
        if not np.array_equal(table.numbers(name), expected):
            raise unfit(folder / "graph.parquet", f"its '{name}' is not that of the graph that the other tables make")
