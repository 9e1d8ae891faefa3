"""What certified rankings cost and how often they come; and the passage part against a full solve."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import spread
from bench.ppr.diffused import Answer, Loaded, extremes, prepare, rank
from bench.ppr.problem import DAMPING, Problem
from bench.ppr.questions import PASSAGE_WEIGHT, Questions, questions_near
from hippogpu.backends import load_backend, steps_for
from hippogpu.backends.cpu import CpuBackend
from hippogpu.methods.diffused import passage_seed_line

BATCH = 32
LEAST_EPSILONS = (1e-6, 1e-7, 1e-8, 1e-9)
QUANTILES = (0.5, 0.9, 0.99, 1.0)
PART_QUESTIONS, DOUBLE_PASSAGES = 8, 10_000
FACTS_A_PASSAGE, MOST_FACT_BYTES = 9, 4 * 2**30


def measure_certificates(problem: Problem, *, repeats: int) -> dict[str, Any]:
    """Shares, edges and times over 512 questions (256 above 100,000 passages), for each depth of tightening."""
    count = 512 if problem.passages <= 100_000 else 256
    loaded = prepare(problem)
    asked = questions_near(problem.vectors, problem.graph, count, seed=1)
    rank(loaded, asked.rows(0, BATCH))
    return {
        "questions": count,
        "part": passage_part_errors(problem, loaded, asked.rows(0, PART_QUESTIONS)),
        "tightening": [_depth(loaded, asked, least) for least in LEAST_EPSILONS],
        "stages": _stages(loaded, asked.rows(0, BATCH), repeats),
        "facts": _fact_scoring(problem, asked, repeats),
    }


def _depth(loaded: Loaded, asked: Questions, least_epsilon: float) -> dict[str, Any]:
    """All questions in batches of 32, and then alone, tightened so far."""
    answers: list[Answer] = []
    batched, alone = [], []
    for start in range(0, len(asked.near), BATCH):
        here = asked.rows(start, BATCH)
        batched.append(_seconds(lambda here=here: answers.append(rank(loaded, here, least_epsilon=least_epsilon))))
    for row in range(len(asked.near)):
        here = asked.rows(row, 1)
        alone.append(_seconds(lambda here=here: rank(loaded, here, least_epsilon=least_epsilon)))
    edges = np.concatenate([answer.found.edges for answer in answers])
    certified = np.concatenate([answer.found.certified for answer in answers])
    return {
        "least_epsilon": least_epsilon,
        "certified": float(certified.mean()),
        "edges": _quantiles(edges),
        "edges_mean": float(edges.mean()),
        "ms_in_batches": 1000 * sum(batched) / len(asked.near),
        "ms_alone": _quantiles(1000 * np.array(alone)),
    }


def _stages(loaded: Loaded, asked: Questions, repeats: int) -> dict[str, Any]:
    """Milliseconds a question, in a batch and alone: the product for the extremes, the other product, and all of it."""
    found: dict[str, Any] = {}
    for name, rows in ((str(BATCH), asked), ("1", asked.rows(0, 1))):
        parts: dict[str, Callable[[], Any]] = {
            "extremes": lambda rows=rows: extremes(loaded, rows),
            "product": lambda rows=rows: loaded.backend.scores(rows.vectors, loaded.diffused.vectors),
            "whole": lambda rows=rows: rank(loaded, rows),
        }
        found[name] = {part: _times(work, len(rows.near), repeats) for part, work in parts.items()}
    return found


def _fact_scoring(problem: Problem, asked: Questions, repeats: int) -> dict[str, Any] | None:
    """The five best of nine facts a passage, by random unit vectors; None when they take more than 4 GiB."""
    facts, width = FACTS_A_PASSAGE * problem.passages, problem.vectors.shape[1]
    if 4 * facts * width > MOST_FACT_BYTES:
        return None
    keys = np.random.default_rng(5).standard_normal((facts, width), np.float32)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    backend = load_backend("cpu")
    times = {
        str(batch): _times(lambda batch=batch: backend.topk(asked.vectors[:batch], keys, 5), batch, repeats)
        for batch in (BATCH, 1)
    }
    return {"facts": facts, "ms": times}


def passage_part_errors(problem: Problem, loaded: Loaded, asked: Questions) -> dict[str, float]:
    """Greatest difference between slope·(G·V)·q + offset·G·1 and G·(passage seeds), as a share of the row's greatest.

    float32: of the vectors as stored. float64: diffused anew in double precision, for at most 10,000 passages.
    """
    backend = CpuBackend(precision="float64")
    graph, passages = backend.put_graph(problem.graph), problem.passages
    low, high = extremes(loaded, asked)
    slope, offset = passage_seed_line(low, high, PASSAGE_WEIGHT, np.float32)
    vectors, questions = problem.vectors.astype(np.float64), asked.vectors.astype(np.float64)
    seeds = np.zeros((graph.nodes, len(asked.near)))
    seeds[:passages] = (slope[:, None] * (questions @ vectors.T) + offset[:, None]).T
    steps = steps_for("chebyshev", DAMPING, 1e-15)
    wanted = backend.diffuse(graph, seeds, damping=DAMPING, steps=steps)[:passages].T
    stored = loaded.diffused

    def error(diffused: Any, ones: Any) -> float:
        found = slope[:, None] * (questions @ diffused.astype(np.float64).T) + offset[:, None] * ones
        return float((np.abs(found - wanted).max(axis=1) / wanted.max(axis=1)).max())

    errors = {"float32": error(stored.vectors, stored.ones)}
    if passages <= DOUBLE_PASSAGES:
        right = np.zeros((graph.nodes, vectors.shape[1] + 1))
        right[:passages] = np.column_stack([vectors, np.ones(passages)])
        exact = backend.diffuse(graph, right, damping=DAMPING, steps=steps)[:passages]
        errors["float64"] = error(exact[:, :-1], exact[:, -1])
    return errors


def _quantiles(values: Any) -> dict[str, float]:
    return {f"{quantile:g}": float(f"{np.quantile(values, quantile):.5g}") for quantile in QUANTILES}


def _times(work: Callable[[], Any], questions: int, repeats: int) -> Any:
    work()
    return spread([1000 * _seconds(work) / questions for _ in range(repeats)])


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
