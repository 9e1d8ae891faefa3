"""Question by question: where each wanted passage stands under each row, and the path by which it was reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.quality.measuring import Bench, Ranked
from hippogpu.cli.why import explanation_lines
from hippogpu.corpus import Query
from hippogpu.evaluate import gold_places, ranked_ids
from hippogpu.types import Explanation

_PATHS = 2


def cases_of(bench: Bench, found: Mapping[str, Ranked]) -> dict[str, Any]:
    """By question: its text, answers and group, and for each wanted passage its ranks by row and its paths.

    Ranks are among the passages of the question's group. Every passage of the index is ranked, so that each has one.
    """
    asked = bench.questions
    made: dict[str, Any] = {}
    for query in asked.queries:
        gold = [id_ for id_, grade in asked.gold.get(query.id, {}).items() if grade > 0]
        places: dict[str, Any] = {}
        paths: dict[str, Any] = {}
        for name, ranked in found.items():
            places[name], paths[name] = _under(bench, query, ranked, gold)
        made[query.id] = {
            "question": query.text,
            "answers": list(query.answers),
            "group": query.group,
            "passages": {
                id_: {
                    "title": asked.titles.get(id_, ""),
                    "ranks": {name: ranks[id_] for name, ranks in places.items()},
                    "paths": {name: told[id_] for name, told in paths.items() if told.get(id_)},
                }
                for id_ in gold
            },
        }
    return made


def _under(
    bench: Bench, query: Query, found: Ranked, gold: Sequence[str]
) -> tuple[Mapping[str, int | None], Mapping[str, Any]]:
    """The rank and the explanation of each wanted passage under a row's settings."""
    settings = found.row.settings
    ranking = bench.searcher.rank([query.text], k=bench.questions.passages, config=settings)[0]
    hits = [hit for hit in ranking.hits if query.group in (None, hit.passage.meta.get("group"))]
    ids = ranked_ids((hit.passage for hit in hits), bench.questions.aliases, gold)
    explained = bench.searcher.explain([ranking], passages=list(gold), config=settings)[0]
    return gold_places(ids, gold), {one.passage.id: told(one) for one in explained}


def told(one: Explanation) -> list[str]:
    """An explanation in words: what its mass came from, then the strongest paths; empty where nothing walked to it."""
    if one.note is not None or not one.mass:
        return []
    lines = [line.strip() for line in explanation_lines(one)]
    paths = [line for line in lines if "→" in line]
    return [*(line for line in lines if line not in paths), *paths[:_PATHS]]
