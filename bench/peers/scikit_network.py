"""scikit-network's PageRank, one question at a time: RH in float64, diteration in float32.

Its other solvers compute something else: piteration treats nodes without edges in its own way (7e-4 off on
MuSiQue-train), push ignores weights (4e-2 off).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from bench.peers.scipy_power import narrow_pointers
from hippogpu.types import AnyFloats, Csr


class Prepared(NamedTuple):
    """The adjacency as scikit-network takes it and the set-up PageRank object."""

    adjacency: csr_matrix
    pagerank: Any


def prepare(graph: Csr, *, damping: float, solver: Literal["RH", "diteration"], steps: int) -> Prepared:
    """The adjacency in float64 with 32-bit numbers; the object's iterations are the steps."""
    from sknetwork.ranking import PageRank  # type: ignore[import-untyped]

    parts = (graph.weights.astype(np.float64), graph.indices, narrow_pointers(graph))
    adjacency = csr_matrix(parts, shape=(graph.nodes, graph.nodes))
    return Prepared(adjacency, PageRank(damping_factor=damping, solver=solver, n_iter=steps, tol=0.0))


def run(prepared: Prepared, seeds: AnyFloats) -> AnyFloats:
    """Masses (B, n), one call a row."""
    weights = seeds.astype(np.float64)
    return np.array([prepared.pagerank.fit_predict(prepared.adjacency, weights=row) for row in weights])
