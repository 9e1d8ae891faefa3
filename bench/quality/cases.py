"""Question by question: where each wanted passage stands under each row, and the path by which it was reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.quality.measuring import Bench, Ranked
from hippogpu.corpus import Query
from hippogpu.evaluate import gold_places, ranked_ids
from hippogpu.types import Explanation, MassPath, PathStep

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
    """Rank and explanation of each wanted passage under a row's settings."""
    settings = found.row.settings
    ranking = bench.searcher.rank([query.text], k=bench.questions.passages, config=settings)[0]
    hits = [hit for hit in ranking.hits if query.group in (None, hit.passage.meta.get("group"))]
    ids = ranked_ids((hit.passage for hit in hits), bench.questions.aliases, gold)
    explained = bench.searcher.explain([ranking], passages=list(gold), config=settings)[0]
    return gold_places(ids, gold), {one.passage.id: told(one) for one in explained}


def told(one: Explanation) -> dict[str, Any]:
    """An explanation in words: shares of the score in percent, and the strongest paths."""
    if one.note is not None or not one.score:
        return {}
    seeds = {share.phrase: round(100 * share.mass / one.score, 1) for share in one.seeds if share.mass > 0}
    paths = [{"percent": round(100 * path.mass / one.score, 1), "path": path_text(path)} for path in one.paths[:_PATHS]]
    return {"own_percent": round(100 * one.own / one.score, 1), "seed_percent": seeds, "paths": paths}


def path_text(path: MassPath) -> str:
    """A path on one line: phrase —predicate→ phrase ⇢ passage 'title'."""
    parts = [path.nodes[0].name]
    for step, node in zip(path.steps, path.nodes[1:], strict=True):
        name = f"'{node.title or node.name}'" if node.kind == "passage" else node.name
        parts.append(f"{_arrow(step)} {name}")
    return " ".join(parts)


def _arrow(step: PathStep) -> str:
    if step.kind == "fact" and step.facts:
        # Facts of spaCy have no predicate: the title and the phrase stand in one sentence.
        return f"—{step.facts[0].predicate}→" if step.facts[0].predicate else "—stated→"
    if step.kind == "synonym":
        return f"≈{step.cosine:.2f}≈" if step.cosine is not None else "≈"
    return "⇢" if step.kind == "mention" else f"—{step.kind}→"
