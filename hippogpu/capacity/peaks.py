"""Memory of the host at its most while each stage of an index run works: what it reads and makes, and its budget."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.capacity.arrays import index_files
from hippogpu.capacity.counts import Counts
from hippogpu.config import IndexConfig, RunConfig
from hippogpu.diffuse import columns_at_once

# Python, NumPy, numba and an encoder's weights and work, before anything of the corpus is held.
PROGRAM_BYTES = 700 * 2**20
# Bytes of one column and node while a diffusion works (hippogpu.diffuse).
_COLUMN_BYTES = 44


class Peak(NamedTuple):
    """Bytes that a stage holds at its most, the program's own among them, and of what."""

    stage: str
    bytes: int
    holds: str


def peaks(counts: Counts, width: int, config: IndexConfig, run: RunConfig, *, diffused: bool = True) -> list[Peak]:
    """The peak of each stage of a first build; memory-mapped files count as if they were held."""
    size = {array.name: array.bytes for array in index_files(counts, width, config, diffused=diffused)}
    texts = sum(size[name] for name in ("ids", "passages", "phrases", "facts"))
    tables = sum(size[name] for name in ("mentions_indptr", "mentions", "statements_indptr", "statements"))
    phrases, vectors = _vectors(size, "phrase"), sum(_vectors(size, kind) for kind in ("passage", "phrase", "fact"))
    found = sum(size[f"synonym_{name}"] for name in ("source", "target", "weight"))
    graph = sum(size[name] for name in ("graph_indptr", "graph_indices", "graph_weights"))
    held = texts + tables
    parts = {
        "tables": (held + run.budget_bytes, "texts, tables, budget"),
        "encode": (held + vectors, "texts, tables, vectors"),
        "synonyms": (held + vectors + phrases + found + run.budget_bytes, "texts, tables, vectors, synonyms, budget"),
        "graph": (held + vectors + found + graph, "texts, tables, vectors, synonyms, graph"),
        "commit": (held + vectors + found + graph, "texts, tables, vectors, synonyms, graph"),
    }
    if diffused:
        made = size["diffused_vectors"] + size["diffused_ones"]
        columns = columns_at_once(counts.nodes, run.budget_bytes) * _COLUMN_BYTES * counts.nodes
        parts["diffuse"] = (graph + _vectors(size, "passage") + made + columns, "graph, vectors, diffused, columns")
    return [Peak(stage, PROGRAM_BYTES + held, what) for stage, (held, what) in parts.items()]


def _vectors(size: dict[str, int], kind: str) -> int:
    return size[f"{kind}_vectors"] + size.get(f"{kind}_scales", 0)
