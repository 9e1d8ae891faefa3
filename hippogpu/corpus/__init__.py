"""Files to passages, edges, questions and gold: readers, the rule for repeated ids, and chunking."""

from __future__ import annotations

from hippogpu.corpus.chunking import chunk, parent_id
from hippogpu.corpus.edges import EdgesRead, edge_fault, read_edges
from hippogpu.corpus.questions import Qrels, Queries, Query, read_qrels, read_queries
from hippogpu.corpus.reader import Distinct, Reading, distinct, read_corpus
from hippogpu.corpus.rows import content_id

__all__ = [
    "Distinct",
    "EdgesRead",
    "Qrels",
    "Queries",
    "Query",
    "Reading",
    "chunk",
    "content_id",
    "distinct",
    "edge_fault",
    "parent_id",
    "read_corpus",
    "read_edges",
    "read_qrels",
    "read_queries",
]
