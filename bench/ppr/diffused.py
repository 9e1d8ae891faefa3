"""The solver diffused on a problem: its vectors made once and kept, its rankings held to the exact masses."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench.ppr.errors import Errors
from bench.ppr.memory import forget_peak, peak_bytes, resident_bytes
from bench.ppr.problem import DAMPING, Batch, Problem, mapped
from bench.ppr.questions import PASSAGE_WEIGHT, Questions
from hippogpu.backends import Backend, Certified, PassagePart, load_backend
from hippogpu.config import RunConfig, SearchConfig
from hippogpu.diffuse import diffuse_passages
from hippogpu.methods.diffused import passage_seed_line, sparse_seeds
from hippogpu.types import AnyFloats, Diffused

K = 20
MIB = 2**20
MARK = "diffused.json"
# Twenty scores that are each short by their bounds, as shares of all mass, on the smallest graphs.
LIMIT = 1e-4
# What a score may be over, or short beyond its bound, as a share of the row's greatest mass: float32 vectors.
ROUNDING = 1e-6


class Loaded(NamedTuple):
    """Everything a diffused ranking reads."""

    backend: Backend
    graph: Any
    vectors: AnyFloats
    diffused: Diffused


class Answer(NamedTuple):
    """Rankings of some questions."""

    found: Certified
    loaded: Loaded
    asked: Questions


def make_diffused(problem: Problem) -> dict[str, Any]:
    """What diffusing the problem's vectors costs; the vectors are kept, and so are the figures."""
    folder = problem.folder
    if (folder / MARK).exists():
        kept: dict[str, Any] = json.loads((folder / MARK).read_text())
        return kept
    backend, budget_bytes = load_backend("cpu"), RunConfig().budget_bytes
    tiny = np.eye(2, 8, dtype=np.float32)
    warm = type(problem.graph)(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32))
    diffuse = partial(diffuse_passages, damping=DAMPING, backend=backend, budget_bytes=budget_bytes)
    diffuse(warm, tiny)
    before = resident_bytes()
    forget_peak()
    start = time.perf_counter()
    diffused = diffuse(problem.graph, problem.vectors)
    seconds = time.perf_counter() - start
    figures = {
        "seconds": round(seconds, 2),
        "columns": problem.vectors.shape[1] + 1,
        "peak_mib": round((peak_bytes() - before) / MIB, 1),
        "error": diffused.error,
    }
    np.save(folder / "diffused-vectors.npy", diffused.vectors)
    np.save(folder / "diffused-ones.npy", diffused.ones)
    (folder / MARK).write_text(json.dumps(figures))
    return figures


def prepare(problem: Problem) -> Loaded:
    """Graph, vectors and diffused vectors on the backend."""
    figures = make_diffused(problem)
    backend = load_backend("cpu")
    vectors, ones = (backend.put(mapped(problem.folder, f"diffused-{name}")) for name in ("vectors", "ones"))
    diffused = Diffused(vectors, ones, DAMPING, figures["error"])
    return Loaded(backend, backend.put_graph(problem.graph), backend.put(problem.vectors), diffused)


def run(loaded: Loaded, batch: Batch) -> Answer:
    """What a question pays after its facts are found: both dense products, the push, the certificate."""
    return rank(loaded, batch.questions)


def rank(loaded: Loaded, asked: Questions, *, least_epsilon: float = SearchConfig().least_epsilon) -> Answer:
    """Rankings of questions, tightened down to least_epsilon."""
    low, high = extremes(loaded, asked)
    slope, offset = passage_seed_line(low, high, PASSAGE_WEIGHT, np.float32)
    phrases = [
        dict(zip(row.tolist(), weights.tolist(), strict=True))
        for row, weights in zip(asked.phrases, asked.weights, strict=True)
    ]
    part = PassagePart(
        loaded.diffused.vectors, loaded.diffused.ones, asked.vectors, slope, offset, loaded.diffused.error
    )
    found = loaded.backend.rank_diffused(
        loaded.graph,
        part,
        sparse_seeds(phrases, first=len(loaded.vectors)),
        K,
        damping=DAMPING,
        epsilon=SearchConfig().epsilon,
        least_epsilon=least_epsilon,
    )
    return Answer(found, loaded, asked)


def extremes(loaded: Loaded, asked: Questions) -> tuple[AnyFloats, AnyFloats]:
    """Least and greatest product of each question with the passages."""
    nearest = loaded.backend.topk(asked.vectors, loaded.vectors, 1)
    return nearest.low, nearest.high


def mass_of(loaded: Loaded, asked: Questions) -> AnyFloats:
    """Seed mass of each question less d times that on nodes without edges, from its scores of the passages."""
    lone = loaded.graph.degrees[: len(loaded.vectors)] == 0
    whole = asked.weights.sum(axis=1) + PASSAGE_WEIGHT * asked.scores.sum(axis=1, dtype=np.float64)
    alone: AnyFloats = PASSAGE_WEIGHT * asked.scores[:, lone].sum(axis=1, dtype=np.float64)
    return whole - DAMPING * alone


def ranking_errors(answer: Answer, exact: AnyFloats) -> Errors:
    """Of the scores of the passages found; infinite when a bound is broken or a certified list is not the exact one."""
    largest, l1, passages = 0.0, 0.0, len(answer.loaded.vectors)
    mass = mass_of(answer.loaded, answer.asked)
    for row, masses in enumerate(exact[: len(mass)]):
        ids, scores = answer.found.ids[row], answer.found.scores[row] / mass[row]
        apart = np.abs(scores - masses[ids])
        short = masses[ids] - scores
        slack = ROUNDING * masses[:passages].max()
        if np.any(short < -slack) or np.any(short > answer.found.bounds[row] / mass[row] + slack):
            return Errors(np.inf, np.inf)
        largest, l1 = max(largest, float(apart.max())), max(l1, float(apart.sum()))
        others = np.delete(masses[:passages], ids)
        if answer.found.certified[row] and others.max(initial=0.0) > masses[ids].min() * (1 + 1e-9):
            return Errors(np.inf, np.inf)
    return Errors(largest, l1)
