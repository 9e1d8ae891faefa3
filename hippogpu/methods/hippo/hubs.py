"""Edges that weigh less the more their ends are joined to."""

from __future__ import annotations

import numpy as np

from hippogpu.backends import Graph
from hippogpu.config import SearchConfig
from hippogpu.methods.loaded import Loaded
from hippogpu.types import Csr


def hub_damped_graph(loaded: Loaded, config: SearchConfig) -> Graph:
    """The graph with each weight divided by (degree · degree) ** hubs of its two ends, made once for each exponent."""
    key = ("hub-damped graph", config.hubs)
    return loaded.derived.once(key, lambda: loaded.backend.put_graph(damp_hubs(loaded.snapshot.graph, config.hubs)))


def damp_hubs(graph: Csr, exponent: float) -> Csr:
    """The weights divided by (degree · degree) ** exponent; symmetric as before."""
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    degrees = np.bincount(rows, weights=graph.weights, minlength=graph.nodes)
    weights = graph.weights / (degrees[rows] * degrees[graph.indices]) ** exponent
    return Csr(graph.indptr, graph.indices, weights.astype(np.float32))
