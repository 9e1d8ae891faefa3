"""What eval does for one method: rank, map ids, measure, and say what is wrong with the gold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hippogpu.cli.output import note, note_list
from hippogpu.config import SearchConfig
from hippogpu.corpus import Query, read_qrels, read_queries
from hippogpu.errors import CorpusError
from hippogpu.evaluate import Gold, evaluate, ranked_ids
from hippogpu.searcher import Searcher


def measure(
    searcher: Searcher, queries: Path, qrels: Path | None, settings: SearchConfig, *, k: int, quiet: bool
) -> tuple[dict[str, Any], list[str]]:
    """The object of `eval --json` for the method of the settings, and what was refused of the input."""
    read = read_queries(queries)
    gold, refused = _gold(read.queries, qrels)
    refused = [f"{item.where}: {item.reason}" for item in read.refusals] + refused
    if not read.queries:
        first = f" ({len(refused)} lines refused, the first: {refused[0]})" if refused else ""
        raise CorpusError(f"'{queries}' holds no question{first}. Give JSON lines with '_id' and 'question'.")
    rankings = searcher.rank([query.text for query in read.queries], k=k, config=settings)
    aliases = searcher.aliases()
    ranked = {
        query.id: ranked_ids((hit.passage for hit in ranking.hits), aliases, gold.get(query.id, ()))
        for query, ranking in zip(read.queries, rankings, strict=True)
    }
    known = [id_ for names in aliases.values() for id_ in names]
    evaluation = evaluate(ranked, gold, depth=k, known=known)
    note_list("Gold passages that the index does not hold", evaluation.absent, quiet=quiet)
    if evaluation.without_gold:
        note(f"{len(evaluation.without_gold)} questions have no gold passage and are left out.", quiet=quiet)
    return evaluation.as_json(settings.method), refused


def _gold(queries: tuple[Query, ...], qrels: Path | None) -> tuple[Gold, list[str]]:
    if qrels is None:
        return {query.id: dict.fromkeys(query.supporting, 1) for query in queries}, []
    read = read_qrels(qrels)
    gold: Mapping[str, Mapping[str, int]] = read.scores
    return gold, [f"{item.where}: {item.reason}" for item in read.refusals]
