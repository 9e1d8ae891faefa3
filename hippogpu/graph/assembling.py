"""The one function that assembles the graph: passages 0…P−1, then phrases, as a symmetric CSR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hippogpu.config import EdgeRule
from hippogpu.errors import UsageError
from hippogpu.tables import Pairs, stated_mentions, user_pairs
from hippogpu.types import AnyFloats, Csr, Edges, Floats, Longs, Tables

if TYPE_CHECKING:
    from hippogpu.graph.kernels import Rows, Sources

BUDGET_BYTES = 512 * 2**20
_ENTRY_BYTES = 8
_MOST_NODES = 2**31 - 1

OnRows = Callable[[int, int], None]


def assemble(
    tables: Tables,
    synonyms: Edges,
    rule: EdgeRule,
    *,
    budget_bytes: int = BUDGET_BYTES,
    on_progress: OnRows | None = None,
) -> Csr:
    """The graph over n = P + E nodes: fact and synonym edges between phrases, mention edges of weight 1, user edges.

    synonyms : directed edges phrase → found phrase with their cosine, above 0; each ordered pair once
    max      : one edge a pair; its weight is the greatest of the number of statements, the cosine (between phrases), 1
               (a mention that is stated) and the weights of its user edges
    parallel : between phrases each ordered pair is an edge of its own and the two add up; a cosine replaces the number
               of statements in its own direction (the papers' library). User edges add their weight once
    Rows are made a block after another. Beyond arguments and result it takes budget_bytes, 16 bytes a node, 8 a
    mention and 4 a fact; more only for a row that is beyond the budget alone. on_progress counts rows of phrases.
    """
    passages = len(tables.mentions)
    mentions = Csr(tables.mentions.indptr, tables.mentions.values, _mention_weights(tables, rule))
    linked = _both_ways(_passage_pairs(tables, rule), passages)
    return _made(tables, linked, mentions, synonyms, rule, budget_bytes, on_progress)


def phrase_graph(tables: Tables, synonyms: Edges, rule: EdgeRule, *, budget_bytes: int = BUDGET_BYTES) -> Csr:
    """The graph over the E phrases alone, with the edges that assemble makes between them. HippoRAG 1, section 2.3."""
    none = Csr(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    return _made(tables, none, none, synonyms, rule, budget_bytes, None)


def _made(
    tables: Tables,
    linked: Csr,
    mentions: Csr,
    synonyms: Edges,
    rule: EdgeRule,
    budget_bytes: int,
    on_progress: OnRows | None,
) -> Csr:
    """Rows of passages, then rows of phrases: their passages, then their phrases, both ascending.

    linked : passages joined with each other · mentions : rows of passages, columns of phrases
    """
    from hippogpu.graph import kernels

    passages, phrases = mentions.nodes, len(tables.phrases)
    if passages + phrases > _MOST_NODES:
        raise UsageError(f"{passages + phrases} passages and phrases are more than {_MOST_NODES}. Split the corpus.")
    of, own_weights = _sources(tables, synonyms)
    begins, back = kernels.entry_rows(of, phrases), kernels.mentioned_by(_rows(mentions), phrases)
    most = linked.nonzeros + 2 * mentions.nonzeros + int(begins[-1])
    # Where entries of one pair fall together less is needed: pages that are never written to take no memory.
    graph = kernels.Rows(
        np.zeros(passages + phrases + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.float32)
    )
    at = kernels.passage_rows(_rows(linked), _rows(mentions), graph)
    entries = np.empty(0, np.uint64)
    for first, last in _blocks(begins, budget_bytes // _ENTRY_BYTES):
        wanted = int(begins[last] - begins[first])
        entries = entries if len(entries) >= wanted else np.empty(wanted, np.uint64)
        kernels.gather_entries(of, begins, first, last, entries)
        at = kernels.phrase_rows(entries, begins, first, last, back, own_weights, rule == "max", at, graph)
        if on_progress is not None:
            on_progress(last, phrases)
    graph.columns.resize(at, refcheck=False)
    graph.weights.resize(at, refcheck=False)
    return Csr(*graph)


def _sources(tables: Tables, synonyms: Edges) -> tuple[Sources, AnyFloats]:
    """What edges between phrases come of, and the weights of the user edges."""
    from hippogpu.graph.kernels import Sources

    facts, own = tables.facts, user_pairs(tables.user_edges, len(tables.mentions)).phrases
    stated = np.bincount(tables.statements.values, minlength=len(facts)).astype(np.int32)
    cosines = np.ascontiguousarray(synonyms.weight, np.float32).view(np.int32)
    columns = (facts.subject, facts.object, stated, synonyms.source, synonyms.target, cosines)
    numbers = [_read_only(np.ascontiguousarray(column, np.int32)) for column in columns]
    return Sources._make([*numbers, _read_only(own.low), _read_only(own.high)]), _read_only(own.weight)


def _blocks(begins: Longs, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most so many entries together; a row that has more is one alone."""
    first, rows = 0, len(begins) - 1
    while first < rows:
        last = int(np.searchsorted(begins, begins[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _passage_pairs(tables: Tables, rule: EdgeRule) -> Pairs:
    """Pairs of passages that user edges join, each once."""
    own = user_pairs(tables.user_edges, len(tables.mentions)).passages
    width = max(len(tables.mentions), 1)
    keys = np.unique(own.low * width + own.high)
    weight = _joined(np.zeros(len(keys)), keys, own, width=width, rule=rule)
    return Pairs(keys // width, keys % width, weight)


def _both_ways(pairs: Pairs, rows: int) -> Csr:
    """Rows of both directions of pairs that are there once, columns ascending."""
    source, target = np.concatenate([pairs.low, pairs.high]), np.concatenate([pairs.high, pairs.low])
    order = np.lexsort((target, source))
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=rows), out=indptr[1:])
    weight = np.concatenate([pairs.weight, pairs.weight])[order]
    return Csr(indptr, target[order].astype(np.int32), weight.astype(np.float32))


def _mention_weights(tables: Tables, rule: EdgeRule) -> Floats:
    """Of each mention: 1 where a statement makes it, and what user edges give it."""
    passages, width = len(tables.mentions), max(len(tables.phrases), 1)
    own = user_pairs(tables.user_edges, passages).mentions
    if not len(own.low):
        return np.ones(len(tables.mentions.values), np.float32)
    low = np.repeat(np.arange(passages, dtype=np.int64), np.diff(tables.mentions.indptr))
    weight, keys = stated_mentions(tables).astype(np.float64), low * width + tables.mentions.values
    return _joined(weight, keys, own, width=width, rule=rule).astype(np.float32)


def _joined(weight: AnyFloats, keys: Longs, own: Pairs, *, width: int, rule: EdgeRule) -> AnyFloats:
    """The weights of ascending keys low · width + high, with those of user edges joined in under the rule."""
    join = np.maximum if rule == "max" else np.add
    join.at(weight, np.searchsorted(keys, own.low * width + own.high), own.weight)
    return weight


def _rows(matrix: Csr) -> Rows:
    from hippogpu.graph.kernels import Rows

    return Rows(_read_only(matrix.indptr), _read_only(matrix.indices), _read_only(matrix.weights))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array as mapped ones are, so that one compiled form serves both."""
    view = array.view()
    view.flags.writeable = False
    return view
