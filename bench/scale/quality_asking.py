"""What the methods find in one index: recall with intervals, differences from dense, milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.checks import Check, equal
from bench.measure import spread
from bench.scale.quality_corpus import ASKED, Questions
from hippogpu.config import MethodName, SearchConfig
from hippogpu.evaluate import CUTOFFS, Evaluation, evaluate, mean_intervals, paired_differences
from hippogpu.searcher import Searcher
from hippogpu.types import Passage

METHODS: tuple[MethodName, ...] = ("dense", "bm25", "hippo2", "hippo")
GROUPS = ("both", *ASKED)
K, REPEATS = max(CUTOFFS), 3
MEASURES = (*(f"recall@{k}" for k in CUTOFFS), "all_recall@5")
MAIN = "recall@5"
_DIGITS = 4

Say = Callable[[str], None]


def asked(
    questions: Questions, searcher: Searcher, passages: Sequence[Passage], say: Say
) -> tuple[dict[str, Any], dict[str, Evaluation]]:
    """What is stored of each method, and the evaluations of all questions together."""
    known = [passage.id for passage in passages]
    evaluations: dict[str, dict[str, Evaluation]] = {
        method: _evaluated(questions, searcher, method, known) for method in METHODS
    }
    stored: dict[str, Any] = {}
    for method in METHODS:
        groups = {group: _group(group, method, evaluations) for group in GROUPS}
        by_question = evaluations[method]["both"].by_query
        recalls = [round(by_question[query.id][MAIN], _DIGITS) for query in questions.queries]
        stored[method] = {"groups": groups, "by_question": recalls}
        say(f"  {method}: {MAIN} {100 * groups['both']['values'][MAIN]:.1f}")
    return stored, {method: found["both"] for method, found in evaluations.items()}


def _evaluated(
    questions: Questions, searcher: Searcher, method: MethodName, known: Sequence[str]
) -> dict[str, Evaluation]:
    """The evaluation of all questions, and of those of each set."""
    queries = questions.queries
    rankings = searcher.rank([query.text for query in queries], k=K, config=SearchConfig(method=method))
    ranked = {q.id: [hit.passage.id for hit in one.hits] for q, one in zip(queries, rankings, strict=True)}
    found = {}
    for group in GROUPS:
        some = {query.id: ranked[query.id] for query in questions.of(group)}
        found[group] = evaluate(some, questions.gold, depth=K, known=known)
    return found


def _group(group: str, method: str, evaluations: Mapping[str, Mapping[str, Evaluation]]) -> dict[str, Any]:
    """Means, their 95 % intervals, and paired differences from dense [mean, low, high, verdict]."""
    own, dense = evaluations[method][group], evaluations["dense"][group]
    bounds, differences = mean_intervals(own), paired_differences(own, dense)
    return {
        "questions": own.queries,
        "values": {name: round(own.values[name], _DIGITS) for name in MEASURES},
        "intervals": {name: [round(bounds[name].low, _DIGITS), round(bounds[name].high, _DIGITS)] for name in MEASURES},
        "against_dense": {
            name: [*(round(value, _DIGITS) for value in differences[name][:3]), differences[name].verdict]
            for name in MEASURES
        },
    }


def gold_checks(dense: Evaluation) -> list[Check]:
    """That no gold passage is missing and that each question has some."""
    return [
        equal("gold that the index does not hold", list(dense.absent), []),
        equal("questions without gold", len(dense.without_gold), 0),
    ]


def milliseconds(questions: Questions, searcher: Searcher, method: MethodName) -> dict[str, Any]:
    """Milliseconds a question, all of them in one call, without encoding them; cpu: of processor, median."""
    texts = [query.text for query in questions.queries]
    spent: list[float] = []
    used: list[float] = []
    for _ in range(REPEATS):
        started = time.perf_counter(), time.process_time()
        searcher.rank(texts, k=K, config=SearchConfig(method=method))
        for times, now, then in zip((spent, used), (time.perf_counter(), time.process_time()), started, strict=True):
            times.append(1000 * (now - then) / len(texts))
    return {**spread(spent), "cpu": spread(used)["median"]}
