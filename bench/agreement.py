"""Do all solvers give one ranking? python -m bench agreement INDEX --queries FILE"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console

from bench.checks import Check, all_passed, at_most, equal
from bench.peers import igraph_prpack
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.backends import load_backend, steps_for
from hippogpu.config import LinearSolver, RunConfig, SearchConfig
from hippogpu.corpus import read_queries
from hippogpu.embed import embedder_from_name, encode_all
from hippogpu.methods import Loaded, load
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.diffused import rank_by_diffusion
from hippogpu.methods.facts import near_facts
from hippogpu.methods.loaded import Queries
from hippogpu.methods.seeds import phrase_seeds, reset_vectors
from hippogpu.searcher import Searcher
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import AnyFloats, Floats

K = 20
# Passages whose exact masses are closer than this share of the row's greatest count as tied.
TIE = 1e-8
LEAST_EPSILONS = (1e-6, 1e-7, 1e-8, 1e-9)
LINEAR: tuple[LinearSolver, ...] = ("power", "chebyshev")
RUNS: dict[str, SearchConfig] = {
    "power": SearchConfig(method="hippo2", solver="power"),
    "chebyshev": SearchConfig(method="hippo2", solver="chebyshev"),
    "diffused": SearchConfig(method="hippo2", solver="diffused"),
    "diffused, epsilon 1e-8": SearchConfig(method="hippo2", solver="diffused", epsilon=1e-8, least_epsilon=1e-9),
}


class Asked(NamedTuple):
    """Questions with their seeds, and the exact masses of passages, (B, P) float64."""

    texts: Sequence[str]
    vectors: Floats
    seeds: Sequence[dict[int, float]]
    resets: AnyFloats
    exact: AnyFloats


def agreement(
    index: Annotated[Path, typer.Argument(help="The index; its diffused vectors must be fresh.")],
    queries: Annotated[Path, typer.Option(help="JSON lines of questions.")],
    json: Annotated[Path | None, typer.Option(help="Write the result here.")] = None,
) -> None:
    """Compare the top 20 of every solver, and of igraph, with a float64 solution. Exit 1 when a check fails."""
    console = Console() if sys.stdout.isatty() else Console(width=150)
    texts = [query.text for query in read_queries(queries).queries]
    manifest = current_manifest(index)
    snapshot = load_snapshot(index, manifest)
    asked = ask(load(snapshot, load_backend("reference")), texts, manifest.encoder.spec)
    rows = {"igraph": compared(asked, igraph_lists(snapshot.graph, asked))}
    searcher = Searcher.open(index, run=RunConfig(backend="cpu"))
    for name, config in RUNS.items():
        rankings = searcher.rank(texts, k=K, config=config)
        number = {searcher.passage(row).id: row for row in range(asked.exact.shape[1])}
        lists = [[number[hit.passage.id] for hit in ranking.hits] for ranking in rankings]
        rows[name] = compared(asked, lists)
        if rankings[0].certified is not None:
            rows[name]["certified"] = sum(bool(ranking.certified) for ranking in rankings)
    linear = {solver: solved(load(snapshot, load_backend("cpu")), asked, solver) for solver in LINEAR}
    depths = [certified_at(load(snapshot, load_backend("cpu")), asked, least) for least in LEAST_EPSILONS]
    checks = checked(rows, len(texts))
    result = {"bench": "agreement", "machine": machine(), "questions": len(texts), "passed": all_passed(checks)}
    result |= {"solvers": rows, "linear": linear, "tightening": depths, "checks": [check._asdict() for check in checks]}
    print_checks(checks, console)
    print_rows(
        "solvers", ["solver", *linear["power"]], [[name, *row.values()] for name, row in linear.items()], console
    )
    print_rows("certificates", list(depths[0]), [list(depth.values()) for depth in depths], console)
    if json is not None:
        write_json(json, result)
    if not result["passed"]:
        raise typer.Exit(1)


def ask(loaded: Loaded, texts: Sequence[str], spec: str) -> Asked:
    """Seeds of the questions as HippoRAG 2 has them, and their exact masses."""
    embedder, config = embedder_from_name(spec), SearchConfig(method="hippo2")
    to_facts, to_passages = (
        encode_all(texts, embedder, instruction=instruction)
        for instruction in (embedder.query_to_fact, embedder.query_to_passage)
    )
    kept = near_facts(loaded, to_facts, top=config.top_facts)
    facts, counts = loaded.snapshot.tables.facts, loaded.mention_counts
    seeds = [phrase_seeds(row, facts, counts, top_phrases=config.top_phrases) for row in kept]
    dense = passage_scores(loaded, Queries(to_facts, to_passages))
    resets = reset_vectors(seeds, dense, passage_weight=config.passage_weight, nodes=loaded.graph.nodes)
    steps = steps_for("power", config.damping, 1e-14)
    masses = loaded.backend.solve(loaded.graph, resets, damping=config.damping, steps=steps)
    return Asked(texts, to_passages, seeds, resets, masses[:, : dense.shape[1]])


def igraph_lists(graph: Any, asked: Asked) -> list[list[int]]:
    """igraph's top passages of each question, from the same seeds."""
    prepared = igraph_prpack.prepare(graph, damping=SearchConfig().damping)
    passages = asked.exact.shape[1]
    masses = [igraph_prpack.run(prepared, reset[None])[0, :passages] for reset in asked.resets]
    return [np.argsort(-row, kind="stable")[:K].tolist() for row in masses]


def compared(asked: Asked, lists: Sequence[Sequence[int]]) -> dict[str, Any]:
    """How many lists are exact, up to ties, and as sets; and the farthest exchange, as a share of the greatest mass."""
    same = tied = sets = 0
    farthest = 0.0
    for masses, found in zip(asked.exact, lists, strict=True):
        wanted = np.argsort(-masses, kind="stable")[: len(found)]
        apart = float(np.abs(masses[wanted] - masses[list(found)]).max() / masses.max())
        same += wanted.tolist() == list(found)
        tied += apart <= TIE
        sets += set(wanted.tolist()) == set(found)
        farthest = max(farthest, apart)
    return {"identical": same, "identical_up_to_ties": tied, "same_set": sets, "farthest_exchange": farthest}


def solved(loaded: Loaded, asked: Asked, solver: LinearSolver) -> dict[str, float]:
    """How far masses are from their equation and from a sum of 1: the greatest over all questions."""
    config, backend = SearchConfig(), loaded.backend
    steps = steps_for(solver, config.damping, config.tolerance)
    seeds = backend.put(asked.resets)
    masses = backend.solve(loaded.graph, seeds, damping=config.damping, steps=steps, solver=solver)
    plain = backend.diffuse(loaded.graph, seeds.T, damping=config.damping, steps=steps, solver=solver)
    left = backend.residual(loaded.graph, seeds.T, plain, damping=config.damping)
    return {
        "steps": steps,
        "residual, L1": float(left.l1.max()),
        "mass off 1": float(np.abs(masses.sum(axis=1, dtype=np.float64) - 1).max()),
        "largest error": float(np.abs(masses[:, : asked.exact.shape[1]] - asked.exact).max()),
    }


def certified_at(loaded: Loaded, asked: Asked, least_epsilon: float) -> dict[str, Any]:
    """Certificates of the questions, tightened so far, and the edges touched by quantile."""
    config = SearchConfig(method="hippo2", epsilon=max(1e-5, least_epsilon), least_epsilon=least_epsilon)
    nearest = loaded.backend.topk(asked.vectors, loaded.passages, 1)
    found, _ = rank_by_diffusion(loaded, asked.vectors, asked.seeds, nearest.low, nearest.high, k=K, config=config)
    edges = {f"edges {q:g}": int(np.quantile(found.edges, q)) for q in (0.5, 0.9, 0.99, 1.0)}
    return {"least_epsilon": least_epsilon, "certified": float(found.certified.mean()), **edges}


def checked(rows: dict[str, dict[str, Any]], questions: int) -> list[Check]:
    """What must hold: exact solvers agree up to ties, and so does diffused when it pushes far; its sets are exact."""
    exact = ("igraph", "power", "chebyshev", "diffused, epsilon 1e-8")
    checks = [
        equal(f"{name}: top 20 identical up to ties", rows[name]["identical_up_to_ties"], questions) for name in exact
    ]
    checks.append(equal("diffused: top 20 of the same passages", rows["diffused"]["same_set"], questions))
    checks.append(at_most("diffused: farthest exchange within a list", rows["diffused"]["farthest_exchange"], 1e-3))
    return checks
