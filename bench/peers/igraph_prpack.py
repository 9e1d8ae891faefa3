"""igraph with PRPACK, what the authors' library calls: float64, Gauss–Seidel, one question at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hippogpu.types import AnyFloats, Csr


class Prepared(NamedTuple):
    """The igraph graph and its edge weights in the order of its edges."""

    graph: Any
    weights: list[float]
    damping: float


def prepare(graph: Csr, *, damping: float) -> Prepared:
    """The graph as igraph holds it: undirected, each edge once."""
    import igraph  # type: ignore[import-untyped]

    rows = np.repeat(np.arange(graph.nodes, dtype=np.int32), np.diff(graph.indptr))
    once = rows < graph.indices
    edges = np.stack([rows[once], graph.indices[once]], axis=1)
    return Prepared(igraph.Graph(graph.nodes, edges, directed=False), graph.weights[once].tolist(), damping)


def run(prepared: Prepared, seeds: AnyFloats) -> AnyFloats:
    """Masses (B, n) float64, one call a row."""
    return np.array(
        [
            prepared.graph.personalized_pagerank(
                directed=False,
                damping=prepared.damping,
                reset=row.tolist(),
                weights=prepared.weights,
                implementation="prpack",
            )
            for row in seeds
        ]
    )
