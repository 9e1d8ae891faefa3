"""The one function that assembles the graph: passages 0…P−1, then phrases, as a symmetric CSR."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array

from hippogpu.config import EdgeRule
from hippogpu.tables import fact_pairs
from hippogpu.types import AnyFloats, Csr, Edges, Floats, Longs, Tables


class Pairs(NamedTuple):
    """Unordered phrase pairs low < high, each once, with one weight (float64)."""

    low: Longs
    high: Longs
    weight: AnyFloats


def assemble(tables: Tables, synonyms: Edges, rule: EdgeRule) -> Csr:
    """The graph over n = P + E nodes: fact and synonym edges between phrases, mention edges of weight 1.

    synonyms : directed edges phrase → found phrase with their cosine
    max      : one edge a pair; its weight is the greater of the number of statements and the cosine
    parallel : each ordered pair is an edge of its own and the two add up; a cosine replaces the number of statements
               in its own direction (the papers' library)
    """
    passages = len(tables.mentions)
    low, high, weight = phrase_pairs(tables, synonyms, rule)
    stating = np.repeat(np.arange(passages, dtype=np.int64), np.diff(tables.mentions.indptr))
    mentioned = tables.mentions.values.astype(np.int64) + passages
    source = np.concatenate([stating, low + passages])
    target = np.concatenate([mentioned, high + passages])
    weights = np.concatenate([np.ones(len(stating)), weight]).astype(np.float32)
    return _symmetric(source, target, weights, passages + len(tables.phrases))


def phrase_pairs(tables: Tables, synonyms: Edges, rule: EdgeRule) -> Pairs:
    """The weight between two phrases from their facts and their synonymy, under the edge rule."""
    width = max(len(tables.phrases), 1)
    low, high, count = fact_pairs(tables)
    facts = low.astype(np.int64) * width + high
    source, target = synonyms.source.astype(np.int64), synonyms.target.astype(np.int64)
    cosine = synonyms.weight.astype(np.float64)
    ends = np.minimum(source, target) * width + np.maximum(source, target)
    keys = np.union1d(facts, ends)
    forward, backward = np.zeros(len(keys)), np.zeros(len(keys))
    forward[np.searchsorted(keys, facts)] = backward[np.searchsorted(keys, facts)] = count
    place, ascending = np.searchsorted(keys, ends), source < target
    if rule == "max":
        np.maximum.at(forward, place, cosine)
        weight = forward
    else:
        forward[place[ascending]] = cosine[ascending]
        backward[place[~ascending]] = cosine[~ascending]
        weight = forward + backward
    return Pairs(keys // width, keys % width, weight)


def _symmetric(source: Longs, target: Longs, weights: Floats, nodes: int) -> Csr:
    """Rows of both directions, columns ascending."""
    rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
    matrix = coo_array((np.concatenate([weights, weights]), (rows, columns)), shape=(nodes, nodes)).tocsr()
    matrix.sort_indices()
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
