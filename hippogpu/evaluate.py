"""Rankings against known supporting passages: recall, all-recall, reciprocal rank and nDCG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippogpu.errors import UsageError, require_extra
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
    recall, mrr and ndcg@10 are those of ir_measures (extra eval). UsageError when no question has gold, or a ranking
    repeats a passage.
    """
    _require_distinct(ranked)
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
    without_gold = tuple(query for query in ranked if query not in by_query)
    return Evaluation(len(judged), values, by_query, without_gold, tuple(absent))


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
        parent = [str(passage.meta["chunk_of"])] if "chunk_of" in passage.meta else []
        names = [*parent, *aliases.get(passage.id, [passage.id])]
        ids.setdefault(next((name for name in names if name in wanted), names[0]))
    return list(ids)


def write_trec(path: Path, ranked: Mapping[str, Sequence[str]], *, tag: str) -> None:
    """Rankings as a TREC run file: query, Q0, passage, rank, score, tag.

    The scores only count down, so that a tool that sorts by them keeps this order. UsageError for an id or tag that
    is empty or holds white space, which the format cannot tell.
    """
    rows = [(query, id_, place, len(ids)) for query, ids in ranked.items() for place, id_ in enumerate(ids)]
    for name in {tag, *ranked, *(row[1] for row in rows)}:
        if len(name.split()) != 1 or name != name.strip():
            raise UsageError(f"A TREC run cannot hold the name {name!r}. Use ids and a tag without white space.")
    lines = (f"{query} Q0 {id_} {place + 1} {count - place} {tag}\n" for query, id_, place, count in rows)
    path.write_text("".join(lines), encoding="utf-8")


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
