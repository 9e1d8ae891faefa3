"""A graph with its questions in a folder, so that each solver can be measured in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.peers import scipy_power
from bench.ppr.questions import Questions, passage_vectors, questions_near, seed_rows
from bench.ppr.synthetic import synthetic_graph
from hippogpu.backends import power_steps
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import AnyFloats, Csr, Floats

DAMPING = 0.5
TOLERANCE = 1e-6
QUESTIONS = 64
EXACT_ROWS, EXACT_TOLERANCE = 4, 1e-12
GRAPH_ARRAYS = ("indptr", "indices", "weights")
FORMAT = 1


class Problem(NamedTuple):
    """One graph and B questions over it.

    about    counts of the graph and how it was made
    exact    (a few, n) float64 masses of the first questions, within 1e-12 in L1
    vectors  (P, w) float32 unit rows of the passages
    folder   where all of it lies, and the diffused vectors once they are made
    """

    about: Mapping[str, Any]
    graph: Csr
    passages: int
    vectors: Floats
    questions: Questions
    exact: AnyFloats
    folder: Path


class Batch(NamedTuple):
    """Consecutive questions and their restart mass over all nodes, (B, n) float32."""

    questions: Questions
    seeds: Floats


def batch_of(problem: Problem, rows: int) -> Batch:
    """The first questions, densely seeded."""
    first = problem.questions.rows(0, rows)
    return Batch(first, seed_rows(first, problem.graph.nodes))


def rows_of(batch: Batch, start: int, count: int) -> Batch:
    """Some of a batch's questions."""
    return Batch(batch.questions.rows(start, count), batch.seeds[start : start + count])


def make_synthetic(folder: Path, passages: int, *, width: int, seed: int = 0) -> None:
    """Write a synthetic graph with its questions; nothing when the folder holds the same already."""
    made_from = {"format": FORMAT, "kind": "synthetic", "passages": passages, "width": width, "seed": seed}
    if _holds(folder, made_from):
        return
    folder.mkdir(parents=True, exist_ok=True)
    made = synthetic_graph(passages, seed=seed)
    families = {name: getattr(made, name) for name in ("facts", "mentions", "synonyms")}
    vectors = np.lib.format.open_memmap(
        folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(passages, width)
    )  # fmt: skip
    passage_vectors(passages, width, seed=seed, out=vectors)
    _write(folder, made_from, made.graph, vectors, families, seed=seed)


def make_from_index(folder: Path, index: Path, *, seed: int = 0) -> None:
    """Write the graph and the passage vectors of an index, with questions near its passages."""
    manifest = current_manifest(index)
    made_from = {"format": FORMAT, "kind": "index", "generation": manifest.generation, "seed": seed}
    made_from["index"] = index.resolve().name
    if _holds(folder, made_from):
        return
    folder.mkdir(parents=True, exist_ok=True)
    snapshot = load_snapshot(index, manifest)
    np.save(folder / "vectors.npy", snapshot.passage_vectors)
    _write(folder, made_from, snapshot.graph, snapshot.passage_vectors, {}, seed=seed)


def _holds(folder: Path, made_from: Mapping[str, Any]) -> bool:
    about = folder / "about.json"
    return about.exists() and json.loads(about.read_text())["made_from"] == made_from


def _write(
    folder: Path, made_from: Mapping[str, Any], graph: Csr, vectors: Floats, families: Mapping[str, int], *, seed: int
) -> None:
    """The arrays, and last of all about.json, which marks the folder as whole."""
    for mark in ("about.json", "diffused.json"):
        (folder / mark).unlink(missing_ok=True)
    questions = questions_near(vectors, graph, QUESTIONS, seed=seed)
    arrays = {f"questions-{name}": array for name, array in questions._asdict().items()}
    arrays |= {f"graph-{name}": getattr(graph, name) for name in GRAPH_ARRAYS}
    arrays["exact"] = exact_masses(graph, questions)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    degrees = np.diff(graph.indptr)
    about = {
        "made_from": dict(made_from),
        "passages": len(vectors),
        "phrases": graph.nodes - len(vectors),
        "nodes": graph.nodes,
        "nonzeros": graph.nonzeros,
        **families,
        "isolated": int(np.sum(degrees == 0)),
        "most_edges_at_a_node": int(degrees.max()),
    }
    (folder / "about.json").write_text(json.dumps(about))


def exact_masses(graph: Csr, questions: Questions) -> AnyFloats:
    """Masses of the first questions in float64, by SciPy, (rows, n), within 1e-12 in L1."""
    seeds = seed_rows(questions, graph.nodes, rows=EXACT_ROWS).astype(np.float64)
    seeds /= seeds.sum(axis=1, keepdims=True)
    prepared = scipy_power.prepare(graph, damping=DAMPING, dtype=np.float64)
    return scipy_power.run(prepared, seeds, steps=power_steps(DAMPING, EXACT_TOLERANCE))


def open_problem(folder: Path) -> Problem:
    """The folder's problem, its arrays memory-mapped."""
    about = json.loads((folder / "about.json").read_text())
    graph = Csr(*(mapped(folder, f"graph-{name}") for name in GRAPH_ARRAYS))
    questions = Questions(*(mapped(folder, f"questions-{name}") for name in Questions._fields))
    vectors, exact = mapped(folder, "vectors"), mapped(folder, "exact")
    return Problem(about, graph, about["passages"], vectors, questions, exact, folder)


def mapped(folder: Path, name: str) -> NDArray[Any]:
    """An array of a problem's folder."""
    # Plain arrays over the map: compiled code takes no other class of array.
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
