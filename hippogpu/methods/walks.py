"""The graphs that a question may walk, and how passages score by the mass of phrases where none is a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array

from hippogpu.backends import Graph, steps_for
from hippogpu.config import LinearSolver, SearchConfig
from hippogpu.errors import UsageError
from hippogpu.graph import assemble, phrase_graph
from hippogpu.methods.loaded import Loaded
from hippogpu.resolve import linked
from hippogpu.store import Snapshot
from hippogpu.types import NO_EDGES, AnyFloats, Csr, Tables


def walk_graph(loaded: Loaded, config: SearchConfig) -> Graph:
    """The graph over passages and phrases; without its edges of synonyms and names where the settings say so."""
    if config.synonyms:
        return loaded.graph
    return loaded.derived.once("graph without synonyms", lambda: loaded.backend.put_graph(walk_edges(loaded, config)))


def walk_edges(loaded: Loaded, config: SearchConfig) -> Csr:
    """The arrays of that graph."""
    if config.synonyms:
        return loaded.snapshot.graph
    return loaded.derived.once("edges without synonyms", lambda: _without_synonyms(loaded.snapshot))


def walk_phrase_graph(loaded: Loaded, config: SearchConfig) -> Graph:
    """The graph over phrases alone, with or without the edges of synonyms and names. HippoRAG 1, section 2.3."""
    key = ("phrase graph on the backend", config.synonyms)
    return loaded.derived.once(key, lambda: loaded.backend.put_graph(phrase_edges(loaded, config)))


def phrase_edges(loaded: Loaded, config: SearchConfig) -> Csr:
    """The arrays of that graph."""
    return loaded.derived.once(("phrase graph", config.synonyms), lambda: _phrase_graph(loaded.snapshot, config))


def _phrase_graph(snapshot: Snapshot, config: SearchConfig) -> Csr:
    tables, built_by = snapshot.tables, snapshot.manifest.config
    synonyms = linked(tables, snapshot.synonyms, snapshot.passages.wholes, built_by) if config.synonyms else NO_EDGES
    return phrase_graph(tables, synonyms, built_by.edge_rule)


def _without_synonyms(snapshot: Snapshot) -> Csr:
    return assemble(snapshot.tables, NO_EDGES, snapshot.manifest.config.edge_rule)


def phrase_walk_solver(config: SearchConfig) -> LinearSolver:
    """The solver of a walk over phrases: auto takes power; UsageError for diffused, whose vectors are of passages."""
    if config.solver == "diffused":
        raise UsageError(
            "The solver 'diffused' ranks by passages that are nodes of the walk, and this method walks over phrases "
            "alone. Leave the choice to --solver auto."
        )
    return "power" if config.solver == "auto" else config.solver


def walked_masses(
    loaded: Loaded, graph: Graph, resets: AnyFloats, config: SearchConfig, solver: LinearSolver
) -> AnyFloats:
    """PageRank mass of every node, one row for each reset vector (B, n) that sums to 1."""
    backend, steps = loaded.backend, steps_for(solver, config.damping, config.tolerance)
    mass = backend.solve(graph, backend.put(resets), damping=config.damping, steps=steps, solver=solver)
    return backend.get(mass)


def phrase_resets(seeds: Sequence[Mapping[int, float]], phrases: int) -> csr_array:
    """Phrase seeds as sparse rows (B, E) float64 that sum to 1; a row without weight stays empty."""
    weights = np.array([weight for row in seeds for weight in row.values()], np.float64)
    columns = np.array([phrase for row in seeds for phrase in row], np.int64)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(row) for row in seeds], dtype=np.int64)])
    resets = csr_array((weights, columns, indptr), shape=(len(seeds), phrases))
    sums = resets.sum(axis=1)
    resets.data /= np.repeat(np.where(sums > 0, sums, 1.0), np.diff(indptr))
    return resets


def phrase_walk_masses(loaded: Loaded, resets: csr_array, config: SearchConfig) -> AnyFloats:
    """PageRank mass of every phrase (B, E) from the resets; rows without any reset stay zero."""
    solver = phrase_walk_solver(config)
    masses = np.zeros(resets.shape)
    walks = resets.sum(axis=1) > 0
    if walks.any():
        graph = walk_phrase_graph(loaded, config)
        masses[walks] = walked_masses(loaded, graph, resets[walks].toarray(), config, solver)
    return masses


def scores_by_phrases(loaded: Loaded, masses: AnyFloats | csr_array) -> AnyFloats:
    """What the phrases of each passage hold together, (B, P) float64, from masses (B, E), dense or sparse.

    A phrase counts once for each distinct fact of the passage that holds it. HippoRAG 1, section 2.3.
    """
    holdings = loaded.derived.once("holdings", lambda: fact_phrases(loaded.snapshot.tables))
    if isinstance(masses, csr_array):
        sums: AnyFloats = (masses @ holdings.T).toarray()
        return sums
    return np.ascontiguousarray((holdings @ masses.T).T)


def fact_phrases(tables: Tables) -> csr_array:
    """For each passage and phrase, how many distinct facts of the passage hold the phrase: (P, E) float64.

    A fact whose subject is its object holds it once.
    """
    facts, width = tables.facts, max(len(tables.facts), 1)
    passages = np.repeat(np.arange(len(tables.statements), dtype=np.int64), np.diff(tables.statements.indptr))
    keys = np.unique(passages * width + tables.statements.values)
    passage, fact = keys // width, keys % width
    subject, object_ = facts.subject[fact], facts.object[fact]
    apart = subject != object_
    rows, columns = np.concatenate([passage, passage[apart]]), np.concatenate([subject, object_[apart]])
    shape = (len(tables.statements), len(tables.phrases))
    return coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()
