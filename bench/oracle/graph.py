"""The graph from the oracle's phrase vectors against the oracle's edges, and PageRank from its reset vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, triu

from bench.checks import Check, at_most, equal
from bench.oracle.data import Oracle, reset_vectors
from hippogpu.backends import Graph, load_backend, power_steps
from hippogpu.config import BackendName
from hippogpu.types import AnyFloats, AnyInts, Csr

# Weights are stored as float32; the heaviest pair weighs less than 32, where half a unit in the last place is 9.6e-7.
WEIGHT_TOLERANCE = 1e-6
# The float32 weights move the float64 solution by about their own rounding times the mass of a passage; with the
# oracle's own float64 weights only the tolerance of the iteration is left.
MASS_TOLERANCE = {"reference": 1e-9, "cpu": 1e-7}
SAME_WEIGHTS_TOLERANCE = 1e-12
# Passages whose masses in the oracle are closer than this may change places.
TIE = {"reference": 1e-9, "cpu": 1e-8}
STEPS_TOLERANCE = {"reference": 1e-13, "cpu": 1e-6}
BACKENDS: tuple[BackendName, ...] = ("reference", "cpu")


def compare_graph(oracle: Oracle, graph: Csr) -> tuple[list[Check], dict[str, Any]]:
    """Edge for edge and weight for weight, the oracle's parallel edges summed."""
    theirs, ours = _oracle_matrix(oracle, graph.nodes), _matrix(graph)
    missing, surplus = _absent(theirs, ours), _absent(ours, theirs)
    apart = float(abs(ours - theirs).max())
    checks = [
        equal("edges of the oracle that are missing", missing, 0),
        equal("edges that the oracle has not", surplus, 0),
        at_most("largest difference of a weight", apart, WEIGHT_TOLERANCE),
    ]
    return checks, {"edges": theirs.nnz // 2, "missing": missing, "surplus": surplus, "weight_difference": apart}


def compare_ppr(oracle: Oracle, graph: Csr) -> tuple[list[Check], dict[str, Any]]:
    """Mass of every passage from the oracle's reset vectors, on each backend."""
    checks: list[Check] = []
    figures: dict[str, Any] = {}
    wanted, top, resets = oracle.answers["ppr"], oracle.answers["top20"], reset_vectors(oracle)
    exact_apart = same_weights_apart(oracle, resets)
    checks.append(
        at_most("largest difference of a mass, reference, the oracle's weights", exact_apart, SAME_WEIGHTS_TOLERANCE)
    )
    figures["reference_same_weights"] = {"difference": exact_apart}
    for name in BACKENDS:
        backend = load_backend(name)
        steps = power_steps(0.5, STEPS_TOLERANCE[name])
        mass = backend.get(backend.solve(backend.put_graph(graph), backend.put(resets), damping=0.5, steps=steps))
        mass = mass[:, : wanted.shape[1]]
        apart = float(np.abs(mass - wanted).max())
        found = backend.select(mass, top.shape[1])
        same = int(np.sum(places_apart(found, top, wanted) <= TIE[name]))
        sets = int(sum(set(a.tolist()) == set(b.tolist()) for a, b in zip(found, top, strict=True)))
        checks.append(at_most(f"largest difference of a passage's mass, {name}", apart, MASS_TOLERANCE[name]))
        checks.append(equal(f"top 20 identical up to ties of {TIE[name]:g}, {name}", same, len(top)))
        exact = int(np.sum(np.all(found == top, axis=1)))
        figures[name] = {"difference": apart, "steps": steps, "top20_same": same, "top20_sets": sets, "exact": exact}
    return checks, figures


def same_weights_apart(oracle: Oracle, resets: AnyFloats) -> float:
    """The largest difference of a mass when the reference backend walks on the oracle's weights in float64."""
    matrix, backend = _oracle_matrix(oracle, resets.shape[1]), load_backend("reference")
    matrix.sort_indices()
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    graph = Graph(indptr, indices, matrix.data, degrees)
    steps = power_steps(0.5, STEPS_TOLERANCE["reference"])
    mass = backend.solve(graph, resets, damping=0.5, steps=steps)
    return float(np.abs(mass[:, : oracle.answers["ppr"].shape[1]] - oracle.answers["ppr"]).max())


def places_apart(found: AnyInts, wanted: AnyInts, scores: AnyFloats) -> AnyFloats:
    """For each question the largest difference, over places, of the true scores of the two passages found there.

    0 when the rankings are the same or differ among equals only.
    """
    apart = np.take_along_axis(scores, found, axis=1) - np.take_along_axis(scores, wanted, axis=1)
    worst: AnyFloats = np.abs(apart).max(axis=1)
    return worst


def _oracle_matrix(oracle: Oracle, nodes: int) -> csr_array:
    edges = oracle.graph
    low, high = np.minimum(edges["source"], edges["target"]), np.maximum(edges["source"], edges["target"])
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    return coo_array((np.tile(edges["weight"], 2), (rows, columns)), shape=(nodes, nodes)).tocsr()


def _matrix(graph: Csr) -> csr_array:
    weights = graph.weights.astype(np.float64)
    return csr_array((weights, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))


def _absent(left: csr_array, right: csr_array) -> int:
    """Undirected edges of the left matrix that the right one lacks."""
    return len(np.setdiff1d(_places(left), _places(right)))


def _places(matrix: csr_array) -> AnyInts:
    """Each undirected edge as one number: row × nodes + column, row below column."""
    upper = triu(matrix).tocoo()
    places: AnyInts = upper.row.astype(np.int64) * matrix.shape[0] + upper.col
    return places
