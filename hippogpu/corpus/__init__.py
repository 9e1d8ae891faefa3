"""Files to passages, questions and gold: readers, the rule for repeated ids, and chunking."""

from __future__ import annotations

from hippogpu.corpus.chunking import chunk, parent_id
from hippogpu.corpus.questions import Qrels, Queries, Query, read_qrels, read_queries
from hippogpu.corpus.reader import Distinct, Reading, distinct, read_corpus
from hippogpu.corpus.rows import content_id

__all__ = [
    "Distinct",
    "Qrels",
    "Queries",
    "Query",
    "Reading",
    "chunk",
    "content_id",
    "distinct",
    "parent_id",
    "read_corpus",
    "read_qrels",
    "read_queries",
]
