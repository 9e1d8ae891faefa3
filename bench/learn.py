"""Learns the weights of the method hippo from questions with known passages: python -m bench learn.

A listwise softmax over each question's pool: the weights w maximise the mean log share that the gold passages get of
Σ exp(w · evidence), less l2 · |w|², a set counting as much as is given for it however many questions it has.
"""

from __future__ import annotations

import itertools
import json as json_module
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from scipy.optimize import minimize

from bench.checks import all_passed
from bench.quality.indexes import embedder_for, place_of, ready_index
from bench.quality.measuring import Bench, open_bench
from bench.quality.recipe import RECIPES, read_recipe, read_yaml
from bench.report import print_checks, print_rows
from hippogpu.backends import load_backend
from hippogpu.config import SearchConfig
from hippogpu.errors import ConfigError
from hippogpu.methods import Clock, Tools, ask, load
from hippogpu.methods.hippo.evidence import EVIDENCE
from hippogpu.methods.hippo.method import work_out
from hippogpu.methods.hippo.weights import WEIGHTS_FILE, kinds_of
from hippogpu.methods.registry import method_of
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import AnyFloats, Bools, Ints

WEIGHTS = Path(__file__).resolve().parents[1] / "hippogpu" / "methods" / "hippo" / WEIGHTS_FILE
FOLDS = 5
CUTOFFS = (1, 2, 5, 10, 20)
_DIGITS = 3


class Pools(NamedTuple):
    """The pools of one set's questions, padded to one width m: evidence (B, m, 8), which entries are gold and which
    are there (B, m); the number of gold passages of each question (B,), those outside the pool among them.
    """

    evidence: AnyFloats
    gold: Bools
    there: Bools
    known: Ints

    def rows(self, chosen: Bools) -> Pools:
        return Pools(self.evidence[chosen], self.gold[chosen], self.there[chosen], self.known[chosen])


class Trained(NamedTuple):
    """A set with what it counts in the training."""

    name: str
    weight: float
    pools: Pools


def learn(
    data: Annotated[Path, typer.Option(help="The folder that holds the data folders of the recipes.")] = Path("data"),
    work: Annotated[Path, typer.Option(help="The indexes are here, or are built here.")] = Path("work"),
    recipe: Annotated[Path, typer.Option(help="Sets and their weights, and the penalty.")] = RECIPES / "learn.yaml",
    out: Annotated[Path, typer.Option(help="The weights go here.")] = WEIGHTS,
) -> None:
    """Learn the weights of the method hippo from training questions alone; prints what they do on held-out ones."""
    console, plan = Console(), read_yaml(recipe)
    benches = [(_opened(name, data, work, console), weight) for name, weight in plan["sets"].items()]
    weights, tables = {}, {}
    for names, pairs in itertools.product((True, False), repeat=2):
        config = SearchConfig(method="hippo", names=names, pairs=pairs)
        sets = [Trained(bench.recipe.name, weight, pools_of(bench, config)) for bench, weight in benches]
        kinds = kinds_of(config)
        columns = [EVIDENCE.index(kind) for kind in kinds]
        learned = fit(sets, columns, l2=plan["l2"])
        weights["+".join(kinds)] = {kind: round(float(w), _DIGITS) for kind, w in zip(kinds, learned, strict=True)}
        tables["+".join(kinds)] = held_out(sets, columns, l2=plan["l2"])
    value = {"sets": plan["sets"], "l2": plan["l2"], "weights": weights, "held_out": tables}
    out.write_text(json_module.dumps(value, indent=1) + "\n", encoding="utf-8")
    for kinds_name, table in tables.items():
        print(kinds_name, weights[kinds_name])
        rows = [[name, *figures.values()] for name, figures in table.items()]
        heads = ["set", *next(iter(table.values()))]
        print_rows("percent, each question ranked by weights of other questions", heads, rows, console)


def _opened(name: str, data: Path, work: Path, console: Console) -> Bench:
    """The index and the questions of a training set, after its checks."""
    read = read_recipe(Path(name))
    if read.use != "train":
        raise ConfigError(f"The set '{name}' is for reporting: nothing is learned from it. Leave it out.")
    place = place_of(read, data, work, {})
    embedder = embedder_for(read, place, data)
    checks, _ = ready_index(read, place, embedder)
    if not all_passed(checks):
        print_checks(checks, console)
        raise typer.Exit(1)
    return open_bench(read, place.root, place.data, embedder, None)


def pools_of(bench: Bench, config: SearchConfig) -> Pools:
    """Evidence and gold of every question of a set that has any gold; what the index lacks of that is never found."""
    snapshot = load_snapshot(bench.root, current_manifest(bench.root))
    loaded, clock = load(snapshot, load_backend("cpu")), Clock()
    wanted = {query: [id_ for id_, score in row.items() if score > 0] for query, row in bench.questions.gold.items()}
    queries = [query for query in bench.questions.queries if wanted.get(query.id)]
    method = method_of("hippo")
    rule = snapshot.manifest.config.text_rule
    asked = ask(
        Tools(bench.embedder),
        [q.text for q in queries],
        method.needs(loaded, config),
        config=config,
        rule=rule,
        clock=clock,
    )
    pools = work_out(loaded, asked, config=config, clock=clock).pools
    row_of = dict(zip(snapshot.passages.ids, snapshot.passages.rows.tolist(), strict=True))
    # Ids of one passage are one; an id that the index lacks stands for itself.
    gold = [{row_of.get(id_, -1 - number) for number, id_ in enumerate(wanted[query.id])} for query in queries]
    width = max(len(pool.rows) for pool in pools)
    evidence = np.zeros((len(pools), width, len(EVIDENCE)))
    is_gold, there = np.zeros((len(pools), width), bool), np.zeros((len(pools), width), bool)
    for i, (pool, known) in enumerate(zip(pools, gold, strict=True)):
        evidence[i, : len(pool.rows)], there[i, : len(pool.rows)] = pool.evidence, True
        is_gold[i, : len(pool.rows)] = np.isin(pool.rows, list(known))
    return Pools(evidence, is_gold, there, np.array([len(known) for known in gold], np.int32))


def fit(sets: Sequence[Trained], columns: Sequence[int], *, l2: float) -> AnyFloats:
    """The weights of those columns of the evidence."""
    parts = [_part(one, columns) for one in sets]

    def loss(weights: AnyFloats) -> tuple[float, AnyFloats]:
        value, slope = l2 * float(weights @ weights), 2 * l2 * weights
        for part in parts:
            more, steeper = part(weights)
            value, slope = value + more, slope + steeper
        return value, slope

    found: AnyFloats = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B").x
    return found


def _part(one: Trained, columns: Sequence[int]) -> Callable[[AnyFloats], tuple[float, AnyFloats]]:
    """What a set adds to the loss and to its slope. Questions without gold in their pool teach nothing."""
    pools = one.pools.rows(one.pools.gold.any(axis=1))
    evidence = np.ascontiguousarray(pools.evidence[:, :, columns])
    share = pools.gold / pools.gold.sum(axis=1, keepdims=True)
    wanted = np.einsum("bm,bmc->c", share, evidence)
    scale = one.weight / max(len(one.pools.gold), 1)

    def part(weights: AnyFloats) -> tuple[float, AnyFloats]:
        scores = np.where(pools.there, evidence @ weights, -np.inf)
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        sums = shares.sum(axis=1, keepdims=True)
        likely = float((share * np.where(pools.there, scores, 0.0)).sum() - np.log(sums).sum())
        return -scale * likely, -scale * (wanted - np.einsum("bm,bmc->c", shares / sums, evidence))

    return part


def held_out(sets: Sequence[Trained], columns: Sequence[int], *, l2: float) -> Mapping[str, Mapping[str, float]]:
    """Percent by set and measure, each fold of questions ranked by weights learned without it.

    A question keeps its fold in every set that asks it, as the sets of one corpus have the same questions in the same
    order.
    """
    folds = {one.name: np.arange(len(one.pools.gold)) % FOLDS for one in sets}
    found: dict[str, list[AnyFloats]] = {one.name: [] for one in sets}
    for fold in range(FOLDS):
        others = [one._replace(pools=one.pools.rows(folds[one.name] != fold)) for one in sets]
        weights = fit(others, columns, l2=l2)
        for one in sets:
            found[one.name].append(measured(one.pools.rows(folds[one.name] == fold), columns, weights))
    names = [*(f"recall@{k}" for k in CUTOFFS), "all_recall@5"]
    return {
        name: {
            measure: round(100 * float(value), 2)
            for measure, value in zip(names, np.concatenate(parts).mean(axis=0), strict=True)
        }
        for name, parts in found.items()
    }


def measured(pools: Pools, columns: Sequence[int], weights: AnyFloats) -> AnyFloats:
    """recall@{1, 2, 5, 10, 20} and all-recall@5 of each question, (B, 6)."""
    scores = np.where(pools.there, pools.evidence[:, :, columns] @ weights, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(pools.gold, order, axis=1), axis=1)
    recalls = [hits[:, min(k, hits.shape[1]) - 1] / pools.known for k in CUTOFFS]
    return np.stack([*recalls, hits[:, min(5, hits.shape[1]) - 1] == pools.known], axis=1)
