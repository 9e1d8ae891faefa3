"""The one function that assembles the graph: passages 0…P−1, then phrases, as a symmetric CSR."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from hippogpu.config import EdgeRule
from hippogpu.tables import Pairs, fact_pairs, stated_mentions, user_pairs
from hippogpu.types import AnyFloats, Csr, Edges, Floats, Longs, Tables


def assemble(tables: Tables, synonyms: Edges, rule: EdgeRule) -> Csr:
    """The graph over n = P + E nodes: fact and synonym edges between phrases, mention edges of weight 1, user edges.

    synonyms : directed edges phrase → found phrase with their cosine
    max      : one edge a pair; its weight is the greatest of the number of statements, the cosine (between phrases), 1
               (a mention that is stated) and the weights of its user edges
    parallel : between phrases each ordered pair is an edge of its own and the two add up; a cosine replaces the number
               of statements in its own direction (the papers' library). User edges add their weight once
    """
    passages = len(tables.mentions)
    linked, mentions = passage_pairs(tables, rule), mention_pairs(tables, rule)
    between = phrase_pairs(tables, synonyms, rule)
    source = np.concatenate([linked.low, mentions.low, between.low + passages])
    target = np.concatenate([linked.high, mentions.high + passages, between.high + passages])
    weights = np.concatenate([linked.weight, mentions.weight, between.weight]).astype(np.float32)
    return _symmetric(source, target, weights, passages + len(tables.phrases))


def phrase_graph(tables: Tables, synonyms: Edges, rule: EdgeRule) -> Csr:
    """The graph over the E phrases alone, with the edges that assemble makes between them. HippoRAG 1, section 2.3."""
    between = phrase_pairs(tables, synonyms, rule)
    return _symmetric(between.low, between.high, between.weight.astype(np.float32), len(tables.phrases))


def passage_pairs(tables: Tables, rule: EdgeRule) -> Pairs:
    """Pairs of passages that user edges join, each once."""
    own = user_pairs(tables.user_edges, len(tables.mentions)).passages
    width = max(len(tables.mentions), 1)
    keys = np.unique(own.low * width + own.high)
    weight = _joined(np.zeros(len(keys)), keys, own, width=width, rule=rule)
    return Pairs(keys // width, keys % width, weight)


def mention_pairs(tables: Tables, rule: EdgeRule) -> Pairs:
    """Each mention, (passage, phrase), with 1 where a statement makes it and what user edges give it."""
    passages, width = len(tables.mentions), max(len(tables.phrases), 1)
    own = user_pairs(tables.user_edges, passages).mentions
    low = np.repeat(np.arange(passages, dtype=np.int64), np.diff(tables.mentions.indptr))
    high = tables.mentions.values.astype(np.int64)
    if not len(own.low):
        return Pairs(low, high, np.ones(len(low)))
    weight = stated_mentions(tables).astype(np.float64)
    return Pairs(low, high, _joined(weight, low * width + high, own, width=width, rule=rule))


def phrase_pairs(tables: Tables, synonyms: Edges, rule: EdgeRule) -> Pairs:
    """Pairs of phrases, each once, with the weight of their facts, their synonymy and their user edges."""
    width = max(len(tables.phrases), 1)
    low, high, count = fact_pairs(tables)
    own = user_pairs(tables.user_edges, len(tables.mentions)).phrases
    facts = low.astype(np.int64) * width + high
    source, target = synonyms.source.astype(np.int64), synonyms.target.astype(np.int64)
    cosine = synonyms.weight.astype(np.float64)
    ends = np.minimum(source, target) * width + np.maximum(source, target)
    keys = np.unique(np.concatenate([facts, ends, own.low * width + own.high]))
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
    return Pairs(keys // width, keys % width, _joined(weight, keys, own, width=width, rule=rule))


def _joined(weight: AnyFloats, keys: Longs, own: Pairs, *, width: int, rule: EdgeRule) -> AnyFloats:
    """The weights of ascending keys low · width + high, with those of user edges joined in under the rule."""
    join = np.maximum if rule == "max" else np.add
    join.at(weight, np.searchsorted(keys, own.low * width + own.high), own.weight)
    return weight


def _symmetric(source: Longs, target: Longs, weights: Floats, nodes: int) -> Csr:
    """Rows of both directions, columns ascending."""
    rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
    matrix = coo_array((np.concatenate([weights, weights]), (rows, columns)), shape=(nodes, nodes)).tocsr()
    matrix.sort_indices()
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
