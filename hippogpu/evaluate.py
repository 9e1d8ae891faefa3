"""Rankings against known supporting passages: recall, all-recall, reciprocal rank and nDCG."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hippogpu.errors import MissingExtraError, UsageError
from hippogpu.types import Passage

CUTOFFS = (1, 2, 5, 10, 20)
ALL_RECALL_CUTOFFS = (2, 5)

Gold = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over the questions that have gold passages, all fractions in [0, 1].

    values      recall@k, all_recall@k (1 when every gold passage is among the first k), mrr, ndcg@10
    by_query    the same for each question
    without_gold  questions left out because no gold passage is known
    absent      gold passages that the index does not hold: no ranking can find them
    """

    queries: int
    values: Mapping[str, float]
    by_query: Mapping[str, Mapping[str, float]]
    without_gold: tuple[str, ...]
    absent: tuple[str, ...]

    def as_json(self, method: str) -> dict[str, Any]:
        """The object of `eval --json`."""
        return {"method": method, "queries": self.queries, **self.values}


def evaluate(
    ranked: Mapping[str, Sequence[str]], gold: Gold, *, depth: int = 20, known: Iterable[str] | None = None
) -> Evaluation:
    """Measures rankings, one a question: passage ids, best first, without repeats.

    gold  : relevance by question and passage; 0 is not relevant
    depth : how many passages each ranking was asked for; measures that look further are left out
    known : every id that could have been found, to tell which gold passages are absent
    recall, mrr and ndcg@10 are those of ir_measures (extra eval). UsageError when no question has gold.
    """
    relevant = {query: {id_: level for id_, level in row.items() if level > 0} for query, row in gold.items()}
    judged = [query for query in ranked if relevant.get(query)]
    if not judged:
        raise UsageError("No question has a gold passage. Check that the questions and --qrels use the same ids.")
    by_query = _measured(ranked, relevant, judged)
    for query in judged:
        for k in ALL_RECALL_CUTOFFS:
            by_query[query][f"all_recall@{k}"] = float(set(relevant[query]) <= set(ranked[query][:k]))
    names = _names(depth)
    values = {name: sum(by_query[query][name] for query in judged) / len(judged) for name in names}
    wanted = {id_ for query in judged for id_ in relevant[query]}
    absent = sorted(wanted - set(known)) if known is not None else []
    return Evaluation(
        len(judged), values, by_query, tuple(query for query in ranked if query not in judged), tuple(absent)
    )


def _names(depth: int) -> list[str]:
    """The measures that a ranking of that depth can tell."""
    names = [f"recall@{k}" for k in CUTOFFS if k <= depth]
    names += [f"all_recall@{k}" for k in ALL_RECALL_CUTOFFS if k <= depth]
    return [*names, "mrr", *(["ndcg@10"] if depth >= 10 else [])]


def ranked_ids(passages: Iterable[Passage], aliases: Mapping[str, Sequence[str]], wanted: Iterable[str]) -> list[str]:
    """Ids of ranked passages, best first, without repeats; a chunk counts for its parent.

    aliases : every id of a passage, by its first; where one of them is wanted (is gold), that one is given
    """
    wanted = set(wanted)
    ids: dict[str, None] = {}
    for passage in passages:
        names = [str(passage.meta["chunk_of"])] if "chunk_of" in passage.meta else aliases.get(passage.id, [passage.id])
        ids.setdefault(next((name for name in names if name in wanted), names[0]))
    return list(ids)


def _measured(
    ranked: Mapping[str, Sequence[str]], relevant: Gold, judged: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The measures that ir_measures knows, by question."""
    measures = _ir_measures()
    names = {measures.R @ k: f"recall@{k}" for k in CUTOFFS} | {measures.RR: "mrr", measures.nDCG @ 10: "ndcg@10"}
    # Scores only say the order: our ranking has its own tie rule, which equal scores would lose.
    run = {query: {id_: float(-place) for place, id_ in enumerate(ranked[query])} for query in judged}
    qrels = {query: dict(relevant[query]) for query in judged}
    by_query: dict[str, dict[str, float]] = {query: dict.fromkeys(names.values(), 0.0) for query in judged}
    for found in measures.iter_calc(list(names), qrels, run):
        by_query[found.query_id][names[found.measure]] = float(found.value)
    return by_query


def _ir_measures() -> Any:
    try:
        return importlib.import_module("ir_measures")
    except ImportError as error:
        raise MissingExtraError("ir-measures", "eval", "Measuring rankings") from error
