"""What eval does for each column: rank, map ids, measure, and say what is wrong with the gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.cli.output import note, note_list
from hippogpu.cli.variants import Column
from hippogpu.corpus import Query, read_qrels, read_queries
from hippogpu.errors import CorpusError, UsageError
from hippogpu.evaluate import (
    Evaluation,
    Gold,
    Interval,
    Level,
    Ranked,
    ask,
    evaluate,
    mean_intervals,
    ranked_ids,
    read_run,
    to_titles,
)
from hippogpu.searcher import Searcher
from hippogpu.types import Passage


class Asked(NamedTuple):
    """The questions, their gold passages, and the lines of the input that were refused."""

    queries: tuple[Query, ...]
    gold: Gold
    refused: list[str]


class Library(NamedTuple):
    """What can be found: every id of each passage by its first, and each passage by any of its ids."""

    aliases: Mapping[str, Sequence[str]]
    passages: Mapping[str, Passage]

    def titles(self) -> dict[str, str]:
        """The title of each id that has one."""
        return {id_: passage.title for id_, passage in self.passages.items() if passage.title}


class Measured(NamedTuple):
    """One column: ids as ranked and names as measured (titles, at that level), the figures, and what fell back why."""

    name: str
    ids: Mapping[str, Sequence[str]]
    ranked: Mapping[str, Sequence[str]]
    gold: Gold
    evaluation: Evaluation
    intervals: Mapping[str, Interval] | None
    fallbacks: Mapping[str, int]
    source: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The object of `eval --json`."""
        value = self.evaluation.as_json(self.name, self.intervals)
        return {**value, **self.source, "fallbacks": dict(self.fallbacks), "absent": len(self.evaluation.absent)}

    def side(self) -> Ranked:
        """The column as one side of a comparison."""
        return Ranked(self.ranked, self.evaluation)


class Rules(NamedTuple):
    """How everything is measured: depth, level, and whether with intervals."""

    k: int
    level: Level
    intervals: bool


def read_asked(queries: Path, qrels: Path | None) -> Asked:
    """The questions of a file and their gold, from the qrels where they are given; CorpusError without any question."""
    read = read_queries(queries)
    gold, refused = _gold(read.queries, qrels)
    refused = [f"{item.where}: {item.reason}" for item in read.refusals] + refused
    if not read.queries:
        first = f" ({len(refused)} lines refused, the first: {refused[0]})" if refused else ""
        raise CorpusError(f"'{queries}' holds no question{first}. Give JSON lines with '_id' and 'question'.")
    return Asked(read.queries, gold, refused)


def library_of(searcher: Searcher) -> Library:
    """Ids, aliases and passages of the generation there is now."""
    aliases = searcher.aliases()
    rows = (searcher.passage(row) for row in range(searcher.manifest.counts["passages"]))
    return Library(aliases, {id_: passage for passage in rows for id_ in aliases.get(passage.id, [passage.id])})


def measure(searcher: Searcher, library: Library, asked: Asked, column: Column, rules: Rules) -> Measured:
    """The questions ranked by the column's settings, and measured."""
    count = searcher.manifest.counts["passages"]
    rankings = ask(searcher, asked.queries, k=rules.k, config=column.settings, passages=count)
    ids = {
        query.id: ranked_ids((hit.passage for hit in ranking.hits), library.aliases, asked.gold.get(query.id, ()))
        for query, ranking in zip(asked.queries, rankings, strict=True)
    }
    reasons = [ranking.fallback for ranking in rankings if ranking.fallback]
    reasons += [ranking.filter_failure for ranking in rankings if ranking.filter_failure]
    source = {"settings": column.changed()}
    return _measured(column.name, ids, asked, library, rules, Counter(reasons), source)


def measure_run(file: Path, library: Library | None, asked: Asked, rules: Rules) -> tuple[Measured, list[str]]:
    """A TREC run of someone's, cut at k, measured as our own rankings are; and the lines that were refused.

    Chunks count for their parents and twins under the id that is gold, where there is an index that knows them. A
    question that the run leaves out has found nothing. UsageError when it answers none of the questions.
    """
    run = read_run(file)
    if not any(query.id in run.ranked for query in asked.queries):
        raise UsageError(f"The run '{file}' answers none of the questions. Check that both use the same ids.")
    passages = library.passages if library else {}
    ids = {}
    for query in asked.queries:
        hits = (passages.get(id_, Passage(id_, "", "")) for id_ in run.ranked.get(query.id, ()))
        ids[query.id] = ranked_ids(hits, library.aliases if library else {}, asked.gold.get(query.id, ()))[: rules.k]
    ranked = {id_ for row in ids.values() for id_ in row}
    source = {
        "run": run.tag,
        "unanswered": sum(query.id not in run.ranked for query in asked.queries),
        "unknown_passages": len(ranked - passages.keys()) if library else None,
    }
    refused = [str(refusal) for refusal in run.refusals]
    return _measured(f"{run.tag} ({file.name})", ids, asked, library, rules, {}, source), refused


def tell_gold(measured: Measured, library: Library | None, *, quiet: bool) -> None:
    """Notes on gold that no ranking can find, and on what to do where it is gold of another kind."""
    absent = measured.evaluation.absent
    note_list(f"Gold {measured.evaluation.level}s that the index does not hold", absent, quiet=quiet)
    titles = set(library.titles().values()) if library and measured.evaluation.level == "passage" else set()
    by_title = [name for name in absent if name in titles]
    if by_title:
        note(f"{len(by_title)} of them are titles, not ids: measure with --level title.", quiet=quiet)
    if measured.evaluation.without_gold:
        note(f"{len(measured.evaluation.without_gold)} questions have no gold passage and are left out.", quiet=quiet)
    if library is None:
        note("No index was named, so gold that is absent from the corpus cannot be told.", quiet=quiet)


def _measured(
    name: str,
    ids: Mapping[str, Sequence[str]],
    asked: Asked,
    library: Library | None,
    rules: Rules,
    fallbacks: Mapping[str, int],
    source: Mapping[str, Any],
) -> Measured:
    known = set(library.passages) if library else None
    ranked, gold = ids, asked.gold
    if rules.level == "title":
        by_title = to_titles(ids, asked.gold, library.titles() if library else {})
        ranked, gold = by_title.ranked, by_title.gold
        known = known and known | set(library.titles().values() if library else ())
    evaluation = evaluate(ranked, gold, depth=rules.k, known=known, level=rules.level)
    intervals = mean_intervals(evaluation) if rules.intervals else None
    return Measured(name, ids, ranked, gold, evaluation, intervals, fallbacks, source)


def _gold(queries: tuple[Query, ...], qrels: Path | None) -> tuple[Gold, list[str]]:
    if qrels is None:
        return {query.id: dict.fromkeys(query.supporting, 1) for query in queries}, []
    read = read_qrels(qrels)
    gold: Mapping[str, Mapping[str, int]] = read.scores
    return gold, [f"{item.where}: {item.reason}" for item in read.refusals]
