"""The edges that hippo walks; with damped hubs they weigh less the more their ends are joined to."""

from __future__ import annotations

import numpy as np

from hippogpu.backends import Graph
from hippogpu.backends.reference import row_sums
from hippogpu.config import SearchConfig
from hippogpu.errors import UsageError
from hippogpu.methods.loaded import Loaded
from hippogpu.methods.walks import walk_edges
from hippogpu.types import Csr


def hub_damped_graph(loaded: Loaded, config: SearchConfig) -> Graph:
    """The edges with damped hubs on the backend, put there once for each exponent."""
    key = ("hub-damped graph", config.synonyms, config.hubs)
    return loaded.derived.once(key, lambda: loaded.backend.put_graph(walked_edges(loaded, config)))


def walked_edges(loaded: Loaded, config: SearchConfig) -> Csr:
    """The edges of the settings synonyms and hubs, on the host; made once where they are not the index's own."""
    if config.hubs > 0:
        key = ("hub-damped edges", config.synonyms, config.hubs)
        return loaded.derived.once(key, lambda: damp_hubs(walk_edges(loaded, config), config.hubs))
    return walk_edges(loaded, config)


def damp_hubs(graph: Csr, exponent: float) -> Csr:
    """The weights divided by (degree · degree) ** exponent of the two ends; symmetric as before.

    UsageError for an exponent under which a weight is no normal float32 above 0 any more.
    """
    rows, degrees = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr)), row_sums(graph, graph.weights)
    with np.errstate(over="ignore"):
        weights = graph.weights / (degrees[rows] * degrees[graph.indices]) ** exponent
    float32 = np.finfo(np.float32)
    if len(weights) and not float32.tiny <= weights.min() <= weights.max() <= float32.max:
        raise UsageError(
            f"Under so strong a damping of hubs some edges weigh nothing. Got hubs = {exponent}: lower it."
        )
    return Csr(graph.indptr, graph.indices, weights.astype(np.float32))
