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
    ask_named,
    evaluate,
    mean_intervals,
    one_id_each,
    ranked_ids,
    read_run,
    titles_of,
    to_titles,
)
from hippogpu.searcher import Searcher
from hippogpu.types import Passage, Ranking


class Asked(NamedTuple):
    """The questions, their gold passages, and the lines of the input that were refused.

    merged : gold ids left out since the passage is gold under another of its ids; None where no index tells
    """

    queries: tuple[Query, ...]
    gold: Gold
    refused: list[str]
    merged: int | None = None

    def known_by(self, library: Library) -> Asked:
        """The same with one gold id for each passage of the index."""
        gold, merged = one_id_each(self.gold, library.aliases)
        return self._replace(gold=gold, merged=merged)


class Library(NamedTuple):
    """What can be found: every id of each passage by its first, and the passage and the title of each id."""

    aliases: Mapping[str, Sequence[str]]
    passages: Mapping[str, Passage]
    titles: Mapping[str, str]


class Measured(NamedTuple):
    """One column: ids as ranked and names as measured (titles, at that level), the figures, and what fell back why.

    absent : how much gold the index does not hold; None where no index tells
    """

    name: str
    ids: Mapping[str, Sequence[str]]
    ranked: Mapping[str, Sequence[str]]
    gold: Gold
    evaluation: Evaluation
    intervals: Mapping[str, Interval] | None
    fallbacks: Mapping[str, int]
    source: Mapping[str, Any]
    absent: int | None

    def as_json(self) -> dict[str, Any]:
        """The object of `eval --json`."""
        value = self.evaluation.as_json(self.name, self.intervals)
        return {**value, **self.source, "fallbacks": dict(self.fallbacks), "absent": self.absent}

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
    rows = [searcher.passage(row) for row in range(searcher.manifest.counts["passages"])]
    passages = {id_: passage for passage in rows for id_ in aliases.get(passage.id, [passage.id])}
    return Library(aliases, passages, titles_of(rows, aliases))


def measure(searcher: Searcher, library: Library, asked: Asked, column: Column, rules: Rules) -> Measured:
    """The questions ranked by the column's settings, so deep that each has k ids or titles, and measured.

    Of a ranking only ids and reasons are kept: the texts of all questions' hits would not fit.
    """
    count, level = searcher.manifest.counts["passages"], rules.level

    def ids_of(query: Query, ranking: Ranking) -> list[str]:
        return ranked_ids((hit.passage for hit in ranking.hits), library.aliases, asked.gold.get(query.id, ()))

    def names_of(query: Query, ranking: Ranking) -> list[str]:
        ids = ids_of(query, ranking)
        return _titles(ids, library) if level == "title" else ids

    found: dict[int, list[str]] = {}
    reasons: Counter[str] = Counter()
    for place, ranking, _ in ask_named(
        searcher, asked.queries, names_of, k=rules.k, config=column.settings, passages=count
    ):
        found[place] = ids_of(asked.queries[place], ranking)
        reasons.update(reason for reason in (ranking.fallback, ranking.filter_failure) if reason)
    ids = {query.id: found[place] for place, query in enumerate(asked.queries)}
    return _measured(column.name, ids, asked, library, rules, reasons, {"settings": column.changed()})


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
        ids[query.id] = ranked_ids(hits, library.aliases if library else {}, asked.gold.get(query.id, ()))
    source = {
        "run": run.tag,
        "unanswered": sum(query.id not in run.ranked for query in asked.queries),
        "unknown_passages": _unknown(ids, rules.k, library) if library else None,
    }
    refused = [str(refusal) for refusal in run.refusals]
    return _measured(f"{run.tag} ({file.name})", ids, asked, library, rules, {}, source), refused


def tell_gold(measured: Measured, library: Library | None, *, quiet: bool) -> None:
    """Notes on gold that no ranking can find, and on what to do where it is gold of another kind."""
    absent = measured.evaluation.absent
    note_list(f"Gold {measured.evaluation.level}s that the index does not hold", absent, quiet=quiet)
    titles = set(library.titles.values()) if library and measured.evaluation.level == "passage" else set()
    by_title = [name for name in absent if name in titles]
    if by_title:
        note(f"{len(by_title)} of them are titles, not ids: measure with --level title.", quiet=quiet)
    if measured.evaluation.without_gold:
        note(f"{len(measured.evaluation.without_gold)} questions have no gold passage and are left out.", quiet=quiet)
    if measured.source.get("merged"):
        note(
            f"{measured.source['merged']} gold ids name a passage that is gold under another id: it counts once.",
            quiet=quiet,
        )
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
    gold: Gold = asked.gold
    ranked: Mapping[str, Sequence[str]] = {query: row[: rules.k] for query, row in ids.items()}
    if rules.level == "title" and library is not None:
        by_title = to_titles(ids, asked.gold, library.titles)
        ranked, gold = {query: row[: rules.k] for query, row in by_title.ranked.items()}, by_title.gold
        ids = {
            query: [one for one in row if library.titles.get(one, one) in ranked[query]] for query, row in ids.items()
        }
        known = known and known | set(library.titles.values())
    else:
        ids = ranked
    evaluation = evaluate(ranked, gold, depth=rules.k, known=known, level=rules.level)
    intervals = mean_intervals(evaluation) if rules.intervals else None
    absent = None if known is None else len(evaluation.absent)
    source = {**source, "merged": asked.merged}
    return Measured(name, ids, ranked, gold, evaluation, intervals, fallbacks, source, absent)


def _titles(ids: Sequence[str], library: Library) -> list[str]:
    return to_titles({"": ids}, {}, library.titles).ranked[""]


def _unknown(ids: Mapping[str, Sequence[str]], k: int, library: Library) -> int:
    """Ids among the first k of a run that the index does not hold."""
    return len({id_ for row in ids.values() for id_ in row[:k]} - library.passages.keys())


def _gold(queries: tuple[Query, ...], qrels: Path | None) -> tuple[Gold, list[str]]:
    if qrels is None:
        return {query.id: dict.fromkeys(query.supporting, 1) for query in queries}, []
    read = read_qrels(qrels)
    gold: Mapping[str, Mapping[str, int]] = read.scores
    return gold, [f"{item.where}: {item.reason}" for item in read.refusals]
