"""Memory of the host at its most while each stage of an index run works: what it holds, what it makes, its budget."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.capacity.counts import Counts
from hippogpu.config import IndexConfig, RunConfig
from hippogpu.diffuse import ORDERED_NODES, columns_at_once

# Python, NumPy, compiled loops and an encoder, before anything of the corpus is held.
PROGRAM_BYTES = 160 * 2**20
# Of each passage while it is indexed, beside its text: its id, title and places in Python's lists and dictionaries.
_PASSAGE_BYTES = 500
_TEXT_BYTES, _GRAPH_NODE_BYTES, _GRAPH_MENTION_BYTES, _GRAPH_FACT_BYTES = 40, 16, 8, 4
"""Of each text that is encoded (index.encoding); of nodes, mentions and facts while the graph is made (graph)."""
_STATEMENT_BYTES, _LETTER_BYTES, _EDGE_BYTES, _WORD_BYTES = 300, 2, 16, 100
"""Of what a stage works with while all of it fits its budget: statements, letters, non-zeros, words."""
# Bytes of one column and node while a diffusion works (diffuse).
_COLUMN_BYTES = 44
# Facts that cells are learned from, once as they are and once as what their centroids leave over.
_LEARNED_BYTES = 2 * 2**28
_CENTRE_SHARE = 64


class Peak(NamedTuple):
    """Bytes that a stage holds at its most, and of what: memory that no file backs, as a commit reports it."""

    stage: str
    bytes: int
    holds: str


def peaks(counts: Counts, width: int, config: IndexConfig, run: RunConfig, *, diffused: bool = True) -> list[Peak]:
    """The peak of each stage of a first build.

    Files that are mapped (texts, vectors, synonyms) are left out: the system drops their pages when it needs room.
    """
    budget = run.budget_bytes
    passages = _PASSAGE_BYTES * counts.passages + counts.passages_bytes + counts.ids_bytes
    numbers = 4 * (counts.mentions + counts.statements + 2 * counts.facts) + 16 * counts.passages
    graph = 8 * counts.nonzeros + 8 * counts.nodes
    making = (
        _GRAPH_NODE_BYTES * counts.nodes + _GRAPH_MENTION_BYTES * counts.mentions + _GRAPH_FACT_BYTES * counts.facts
    )
    texts = counts.passages + counts.phrases + counts.facts
    centres = 4 * width * counts.phrases // _CENTRE_SHARE if config.synonym_search == "cells" else 0
    held = passages + numbers
    letters = counts.passages_bytes + counts.phrases_bytes + counts.facts_bytes

    def worked(size: int) -> int:
        """What a stage works with: its budget, or less where there is less to do."""
        return min(budget, size)

    parts = {
        "tables": (held + worked(_STATEMENT_BYTES * counts.statements), "passages, tables, budget"),
        "encode": (held + _TEXT_BYTES * texts + worked(_LETTER_BYTES * letters), "passages, tables, texts, budget"),
        "synonyms": (held + centres + worked(4 * width * counts.phrases), "passages, tables, budget"),
        "graph": (held + graph + making + worked(_EDGE_BYTES * counts.nonzeros), "passages, tables, graph, budget"),
        "words": (held + graph + worked(_WORD_BYTES * counts.words), "passages, tables, graph, budget"),
        "commit": (held + graph, "passages, tables, graph"),
    }
    if config.fact_search == "ivfpq":
        parts["cells"] = (held + graph + _LEARNED_BYTES, "passages, tables, graph, a sample of facts")
    if diffused:
        columns = columns_at_once(counts.nodes, budget) * _COLUMN_BYTES * counts.nodes
        ordered = graph if counts.nodes >= ORDERED_NODES else 0
        vectors = 4 * counts.passages * (width + 1)
        parts["diffuse"] = (vectors + columns + ordered, "diffused vectors, columns, the graph in another order")
    return [Peak(stage, PROGRAM_BYTES + size, what) for stage, (size, what) in parts.items()]
