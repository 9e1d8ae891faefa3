"""The rows of a recipe measured on its questions: values, intervals, comparisons, what fell back, and speed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bench.checks import Check, equal
from bench.measure import spread
from bench.oracle.questions import seeds_agree
from bench.quality.recipe import BASELINES, Recipe, Row
from hippogpu.config import Configs
from hippogpu.corpus import Query, read_qrels, read_queries
from hippogpu.embed import Embedder
from hippogpu.evaluate import (
    Difference,
    EncodedOnce,
    Evaluation,
    Gold,
    Level,
    Named,
    ask_named,
    evaluate,
    mean_intervals,
    one_id_each,
    paired_differences,
    ranked_ids,
    titles_of,
    to_titles,
)
from hippogpu.searcher import Searcher
from hippogpu.types import Ranking

# So many questions are asked alone too: their rankings must be those of the batch.
_ALONE = 8
_DIGITS = 4
COMPARED = ("recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5", "mrr", "ndcg@10")


class Questions(NamedTuple):
    """What is asked and what is known, with the ids that a ranking could name."""

    queries: tuple[Query, ...]
    gold: Gold
    aliases: Mapping[str, Sequence[str]]
    titles: Mapping[str, str]
    passages: int


class Ranked(NamedTuple):
    """A row's rankings and what they measure."""

    row: Row
    rankings: Sequence[Ranking]
    evaluation: Evaluation


class Bench(NamedTuple):
    """One set ready to be ranked: the searcher for rows without models, and what opens one for those with."""

    recipe: Recipe
    searcher: Searcher
    questions: Questions
    configs: Configs | None
    root: Path
    embedder: Embedder


def open_bench(recipe: Recipe, root: Path, folder: Path, embedder: Embedder, configs: Configs | None) -> Bench:
    """The index and the questions of a recipe. Each question is encoded once for all rows."""
    once = EncodedOnce(embedder)
    searcher = Searcher.open(root, embedder=once)
    read = read_queries(folder / recipe.queries)
    assert not read.refusals, read.refusals
    gold: Gold = {query.id: dict.fromkeys(query.supporting, 1) for query in read.queries}
    if recipe.qrels:
        gold = read_qrels(folder / recipe.qrels).scores
    aliases, count = searcher.aliases(), searcher.manifest.counts["passages"]
    titles = titles_of((searcher.passage(row) for row in range(count)), aliases)
    gold, _ = one_id_each(gold, aliases)
    return Bench(recipe, searcher, Questions(read.queries, gold, aliases, titles, count), configs, root, once)


def rank_rows(bench: Bench, rows: Sequence[Row]) -> Iterator[Ranked]:
    """Each row's rankings, and beside them those that rows are compared with; rows that need a model only with one."""
    for row in rows:
        if row.needs_model and bench.configs is None:
            continue
        with _searcher(bench, row) as searcher:
            yield rank_row(bench, row, searcher)


def rank_row(bench: Bench, row: Row, searcher: Searcher) -> Ranked:
    """The questions ranked by a row's settings, so deep that each has k names, and measured at the recipe's level."""
    asked, level = bench.questions, _level(bench.recipe)
    found = named(bench, asked.queries, row, searcher)
    ranked: Mapping[str, Sequence[str]] = {query.id: one.names for query, one in zip(asked.queries, found, strict=True)}
    gold, known = asked.gold, {name for names in asked.aliases.values() for name in names}
    if level == "title":
        gold, known = to_titles({}, gold, asked.titles).gold, known | set(asked.titles.values())
    evaluation = evaluate(ranked, gold, depth=bench.recipe.k, known=known, level=level)
    return Ranked(row, [one.ranking for one in found], evaluation)


def named(bench: Bench, queries: Sequence[Query], row: Row, searcher: Searcher) -> list[Named]:
    """The rankings of questions, in their order, with the ids or titles that are measured."""
    asked, level = bench.questions, _level(bench.recipe)

    def names(query: Query, ranking: Ranking) -> list[str]:
        hits = (hit.passage for hit in ranking.hits)
        ids = ranked_ids(hits, asked.aliases, asked.gold.get(query.id, ()))
        return to_titles({"": ids}, {}, asked.titles).ranked[""] if level == "title" else ids

    found = ask_named(searcher, queries, names, k=bench.recipe.k, config=row.settings, passages=asked.passages)
    return sorted(found, key=lambda one: one.place)


def with_compared(recipe: Recipe, rows: Sequence[Row]) -> list[Row]:
    """The rows and, where they are not among them, those that they are compared with."""
    names = dict.fromkeys([row.name for row in rows])
    for name in [*BASELINES, *(row.than for row in rows)]:
        if name and recipe.row(name):
            names.setdefault(name)
    return [row for row in recipe.rows if row.name in names]


def result_of(found: Ranked, others: Mapping[str, Ranked]) -> dict[str, Any]:
    """What is stored of a row: fractions, [low, high] of each, and differences [mean, low, high, p, verdict] by row."""
    row = found.row
    compared = [name for name in dict.fromkeys([*BASELINES, row.than]) if name in others and name != row.name]
    reasons = Counter(ranking.fallback for ranking in found.rankings if ranking.fallback)
    failures = Counter(ranking.filter_failure for ranking in found.rankings if ranking.filter_failure)
    return {
        "group": row.group,
        "settings": row.changed(),
        "than": row.than,
        "note": row.note,
        "values": {name: round(value, _DIGITS) for name, value in found.evaluation.values.items()},
        "intervals": {
            name: [round(one.low, _DIGITS), round(one.high, _DIGITS)]
            for name, one in mean_intervals(found.evaluation).items()
        },
        "against": {name: _differences(found, others[name]) for name in compared if name is not None},
        "fallbacks": dict(reasons),
        "filter_failures": dict(failures),
        "facts_kept": round(sum(len(ranking.facts) for ranking in found.rankings) / len(found.rankings), 3),
    }


def expected_checks(recipe: Recipe, found: Mapping[str, Ranked]) -> list[Check]:
    """Every expected figure of the rows that were ranked, in percent, within the recipe's tolerance."""
    checks = []
    for name, figures in recipe.expected.items():
        for measure, wanted in figures.items() if name in found else ():
            value = round(100 * found[name].evaluation.values[measure], 2)
            near = abs(value - wanted) <= recipe.tolerance + 1e-9
            checks.append(Check(f"{recipe.name}: {measure}, {name}", value, f"{wanted} ± {recipe.tolerance}", near))
    return checks


def gold_checks(recipe: Recipe, found: Ranked) -> list[Check]:
    """That no question lacks gold and no gold lacks its passage."""
    evaluation = found.evaluation
    return [
        equal(f"{recipe.name}: gold that the index does not hold", list(evaluation.absent), []),
        equal(f"{recipe.name}: questions without gold", len(evaluation.without_gold), 0),
    ]


def batch_check(bench: Bench, found: Ranked) -> Check:
    """That some questions asked alone are ranked as in the batch of all.

    Where the cut after the heaviest phrases falls among phrases of one weight, rounding decides who is a seed, and
    either ranking is right.
    """
    asked = bench.questions.queries[:_ALONE]
    same = 0
    for query, ranking in zip(asked, found.rankings, strict=False):
        alone = named(bench, [query], found.row, bench.searcher)[0].ranking
        seeds = {"phrase_seeds": [seed._asdict() for seed in ranking.seeds]}
        tied = bool(ranking.seeds) and seeds_agree(alone, seeds) == "tie"
        same += tied or [hit.passage.id for hit in alone.hits] == [hit.passage.id for hit in ranking.hits]
    return equal(f"{bench.recipe.name}: questions ranked alone as in the batch, {found.row.name}", same, len(asked))


def queries_per_s(bench: Bench, row: Row, *, repeats: int) -> dict[str, Any]:
    """Questions a second in one batch of all, without encoding them: median, least and greatest of the repeats."""
    texts = [query.text for query in bench.questions.queries]
    rates = []
    for _ in range(repeats):
        started = time.perf_counter()
        ranking = bench.searcher.rank(texts, k=bench.recipe.k, config=row.settings)[0]
        seconds = time.perf_counter() - started - len(texts) * ranking.ms.get("encode", 0.0) / 1000
        rates.append(len(texts) / seconds)
    return {**spread(rates), "batch": len(texts)}


@contextmanager
def _searcher(bench: Bench, row: Row) -> Iterator[Searcher]:
    """The bench's own searcher, or one with the models that the row's settings name."""
    if not row.needs_model or bench.configs is None:
        yield bench.searcher
        return
    from hippogpu.cli.opening import Source, open_searcher

    own, source = replace(bench.configs, search=row.settings), Source(row.settings.entities)
    with open_searcher(bench.root, own, source, embedder=bench.embedder, asked=(None, None), quiet=False) as opened:
        yield opened.searcher


def _differences(found: Ranked, other: Ranked) -> dict[str, list[Any]]:
    told = paired_differences(found.evaluation, other.evaluation).items()
    return {name: _told(one) for name, one in told if name in COMPARED}


def _told(one: Difference) -> list[Any]:
    return [*(round(value, _DIGITS) for value in one[:4]), one.verdict]


def _level(recipe: Recipe) -> Level:
    return "title" if recipe.level == "title" else "passage"
