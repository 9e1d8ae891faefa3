"""Rankings against known supporting passages: recall, all-recall, reciprocal rank and nDCG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hippogpu.errors import UsageError, require_extra

if TYPE_CHECKING:
    from hippogpu.evaluate.intervals import Interval

CUTOFFS = (1, 2, 5, 10, 20)
# Not at 1: a question of two supporting passages could never have both there.
ALL_RECALL_CUTOFFS = (2, 5, 10, 20)

Gold = Mapping[str, Mapping[str, int]]
Level = Literal["passage", "title"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over the questions that have gold passages, all fractions in [0, 1].

    values      recall@k, all_recall@k (1 when every gold passage is among the first k), mrr, ndcg@10
    by_query    the same for each question
    without_gold  questions left out because no gold passage is known
    absent      gold passages that the index does not hold: no ranking can find them
    level       what was ranked and counted: passages, or titles (levels.to_titles)
    """

    queries: int
    values: Mapping[str, float]
    by_query: Mapping[str, Mapping[str, float]]
    without_gold: tuple[str, ...]
    absent: tuple[str, ...]
    level: Level = "passage"

    def as_json(self, method: str, intervals: Mapping[str, Interval] | None = None) -> dict[str, Any]:
        """The object of `eval --json`; an interval of recall@5 stands under recall@5_ci as [low, high]."""
        bounds = {f"{name}_ci": [found.low, found.high] for name, found in (intervals or {}).items()}
        return {"method": method, "queries": self.queries, **self.values, "level": self.level, **bounds}


def evaluate(
    ranked: Mapping[str, Sequence[str]],
    gold: Gold,
    *,
    depth: int = 20,
    known: Iterable[str] | None = None,
    level: Level = "passage",
) -> Evaluation:
    """Measures rankings, one a question: passage ids, best first, without repeats.

    gold  : relevance by question and passage; 0 is not relevant
    depth : how many passages each ranking was asked for; measures that look further are left out
    known : every id that could have been found, to tell which gold passages are absent
    level : what the names in ranked and gold are; it is only passed on (levels.to_titles makes titles of ids)
    recall, mrr and ndcg@10 are those of ir_measures (extra eval). UsageError when no question has gold, or a ranking
    repeats a passage.
    """
    _require_distinct(ranked)
    relevant = {query: {id_: grade for id_, grade in row.items() if grade > 0} for query, row in gold.items()}
    judged = [query for query in ranked if relevant.get(query)]
    if not judged:
        raise UsageError("No question has a gold passage. Check that the questions and --qrels use the same ids.")
    by_query = _measured(ranked, relevant, judged)
    for query in judged:
        for k in ALL_RECALL_CUTOFFS:
            by_query[query][f"all_recall@{k}"] = float(set(relevant[query]) <= set(ranked[query][:k]))
    names = measure_names(depth)
    values = {name: sum(by_query[query][name] for query in judged) / len(judged) for name in names}
    wanted = {id_ for query in judged for id_ in relevant[query]}
    absent = sorted(wanted - set(known)) if known is not None else []
    without_gold = tuple(query for query in ranked if query not in by_query)
    return Evaluation(len(judged), values, by_query, without_gold, tuple(absent), level)


def measure_names(depth: int) -> list[str]:
    """The measures that a ranking of that depth can tell, in the order of `eval --json`."""
    names = [f"recall@{k}" for k in CUTOFFS if k <= depth]
    names += [f"all_recall@{k}" for k in ALL_RECALL_CUTOFFS if k <= depth]
    return [*names, "mrr", *(["ndcg@10"] if depth >= 10 else [])]


def _require_distinct(ranked: Mapping[str, Sequence[str]]) -> None:
    for query, ids in ranked.items():
        if len(set(ids)) < len(ids):
            raise UsageError(f"The ranking of question '{query}' repeats a passage. Keep the first place of each.")


def _measured(
    ranked: Mapping[str, Sequence[str]], relevant: Gold, judged: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The measures that ir_measures knows, by question."""
    measures: Any = require_extra("ir_measures", package="ir-measures", extra="eval", purpose="Measuring rankings")
    names = {measures.R @ k: f"recall@{k}" for k in CUTOFFS} | {measures.RR: "mrr", measures.nDCG @ 10: "ndcg@10"}
    # Scores only say the order: our ranking has its own tie rule, which equal scores would lose.
    run = {query: {id_: float(-place) for place, id_ in enumerate(ranked[query])} for query in judged}
    qrels = {query: dict(relevant[query]) for query in judged}
    by_query: dict[str, dict[str, float]] = {query: dict.fromkeys(names.values(), 0.0) for query in judged}
    for found in measures.iter_calc(list(names), qrels, run):
        by_query[found.query_id][names[found.measure]] = float(found.value)
    return by_query
