"""An index with every kind of edge, and walks worked out by a dense solve: for tests of the method hippo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from method_cases import asked
from small_index import open_index, stating

from hippogpu.config import IndexConfig, SearchConfig
from hippogpu.methods import Clock, Loaded
from hippogpu.methods.hippo.method import Worked, work_out
from hippogpu.types import AnyFloats, Csr, Longs, UserEdge

HIPPO = SearchConfig(method="hippo")
ASKED = ["what did Ada write about the engine?", "who burns coal?", "zzz", "Ada, coal and steam"]
TEXTS = {
    "two ways": "Ada|wrote|notes;Ada|read|notes;notes|are by|Ada",
    "itself": "steam|is|steam;steam|drives|engines",
    "again": "engine|burns|coal;Ada|wrote|notes",
    "alone": "nothing is stated",
    "apart": "Otto|met|Ida",
}
EDGES = [
    UserEdge(("alone",), ("coal",)),
    UserEdge(("two ways", "itself")),
    UserEdge((), ("ada", "coal")),
    UserEdge((), ("coal", "a mine")),
]


def every_edge(root: Path) -> Path:
    """Several facts on a pair, in both directions; a fact of one phrase; synonyms; edges of one's own; a node alone."""
    with open_index(root, config=IndexConfig(synonym_threshold=0.4)) as index:
        index.add([*(stating(id_, text) for id_, text in TEXTS.items()), stating("lone", "no edge")])
        index.add_edges(EDGES)
        index.commit()
    return root


def matrix(graph: Csr) -> AnyFloats:
    """The weights of the graph, (n, n) float64."""
    dense = np.zeros((graph.nodes, graph.nodes))
    dense[rows_of(graph), graph.indices] = graph.weights
    return dense


def rows_of(graph: Csr) -> Longs:
    """The row of each entry."""
    return np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))


def walked(weights: AnyFloats, seeds: AnyFloats, damping: float) -> AnyFloats:
    """(1 − d)·(I − d·A·D⁻¹)⁻¹·seeds, (n,)."""
    degrees = weights.sum(axis=0)
    moves = np.divide(weights, degrees, out=np.zeros_like(weights), where=degrees > 0)
    mass: AnyFloats = np.linalg.solve(np.eye(len(weights)) - damping * moves, (1 - damping) * seeds)
    return mass


def spread(seeds: Mapping[int, float], nodes: int, *, first: int = 0) -> AnyFloats:
    """Seeds as a row (n,); number 0 is the node `first`."""
    row = np.zeros(nodes)
    for number, weight in seeds.items():
        row[first + number] = weight
    return row


def worked(here: Loaded, config: SearchConfig, questions: Sequence[str] = ASKED) -> Worked:
    """What the method works out of questions."""
    return work_out(here, asked(questions), config=config, clock=Clock())
