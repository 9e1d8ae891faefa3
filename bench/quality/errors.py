"""Questions that a row fails, by the classes of HippoRAG 2's error analysis, each defined by what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bench.quality.measuring import Bench, Ranked
from hippogpu.errors import UsageError
from hippogpu.evaluate import ask, gold_places, ranked_ids
from hippogpu.store import Snapshot, current_manifest, load_snapshot
from hippogpu.types import KeptFact, Ranking

DEPTH = 5
_EXAMPLES = 5

# In the order in which a failure is looked for: the first that fits names it.
CLASSES: Mapping[str, str] = {
    "gold absent": "a gold passage is not in the index",
    "no usable fact": "no candidate fact is stated by a gold passage",
    "filter emptied": "a candidate is usable, and the filter kept none at all",
    "filter removed the usable": "a candidate is usable, and the filter kept others only",
    "seeds missing": "a usable fact was kept, but fewer than half of the gold passages mention a phrase seed",
    "walk failed": "at least half of the gold passages mention a phrase seed, and yet one is not among the first five",
}


class _Known(NamedTuple):
    """What each passage states and mentions, by any of its ids."""

    facts: Mapping[str, set[tuple[str, str, str]]]
    phrases: Mapping[str, set[str]]


def failures_of(bench: Bench, found: Ranked) -> dict[str, Any]:
    """Counts by class, examples of each, and looser counts beside them.

    A question fails when a gold passage is not among the first five. A fact is usable when a gold passage of the
    question states it. UsageError for a row that uses no facts.
    """
    candidates = _candidates(bench, found)
    known = _known(bench)
    examples: dict[str, list[dict[str, Any]]] = {name: [] for name in CLASSES}
    touching = 0
    for query, ranking, before in zip(bench.questions.queries, found.rankings, candidates, strict=True):
        gold = [id_ for id_, grade in bench.questions.gold.get(query.id, {}).items() if grade > 0]
        ids = ranked_ids((hit.passage for hit in ranking.hits), bench.questions.aliases, gold)
        places = gold_places(ids, gold)
        if not gold or all(place is not None and place <= DEPTH for place in places.values()):
            continue
        examples[_class(gold, ranking, before.facts, known)].append(
            {
                "query_id": query.id,
                "question": query.text,
                "gold": places,
                "candidates": [_shown(fact) for fact in before.facts],
                "kept": [_shown(fact) for fact in ranking.facts],
                "seeds": [seed.phrase for seed in ranking.seeds],
            }
        )
        touching += _touches(gold, before.facts, known)
    failed = sum(map(len, examples.values()))
    return {
        "depth": DEPTH,
        "questions": len(bench.questions.queries),
        "failed": failed,
        "classes": {name: len(rows) for name, rows in examples.items()},
        "a_candidate_names_a_phrase_of_gold": touching,
        "examples": {name: rows[:_EXAMPLES] for name, rows in examples.items() if rows},
    }


def _candidates(bench: Bench, found: Ranked) -> Sequence[Ranking]:
    """The same rankings with every candidate kept, for their facts."""
    settings = replace(found.row.settings, filter="none")
    rankings = found.rankings
    if found.row.settings != settings:
        asked = bench.questions
        rankings = ask(bench.searcher, asked.queries, k=bench.recipe.k, config=settings, passages=asked.passages)
    if not any(ranking.facts for ranking in rankings):
        raise UsageError(f"The row '{found.row.name}' keeps no facts, so its errors have no classes. Choose another.")
    return rankings


def _class(gold: Sequence[str], ranking: Ranking, candidates: Sequence[KeptFact], known: _Known) -> str:
    """The first class that fits."""
    if any(id_ not in known.facts for id_ in gold):
        return "gold absent"
    stated = set().union(*(known.facts[id_] for id_ in gold))
    if not any(_key(fact) in stated for fact in candidates):
        return "no usable fact"
    if not ranking.facts:
        return "filter emptied"
    if not any(_key(fact) in stated for fact in ranking.facts):
        return "filter removed the usable"
    seeds = {seed.phrase for seed in ranking.seeds}
    held = sum(bool(seeds & known.phrases[id_]) for id_ in gold)
    return "walk failed" if 2 * held >= len(gold) else "seeds missing"


def _touches(gold: Sequence[str], candidates: Sequence[KeptFact], known: _Known) -> bool:
    """Whether a candidate names a phrase that a gold passage mentions."""
    phrases = set().union(*(known.phrases.get(id_, set()) for id_ in gold))
    return any(fact.subject in phrases or fact.object in phrases for fact in candidates)


def _known(bench: Bench) -> _Known:
    snapshot: Snapshot = load_snapshot(bench.root, current_manifest(bench.root))
    tables, names = snapshot.tables, bench.questions.aliases
    texts = list(tables.phrases)
    facts: dict[str, set[tuple[str, str, str]]] = {}
    phrases: dict[str, set[str]] = {}
    wanted = {id_ for row in bench.questions.gold.values() for id_ in row}
    for row in range(len(snapshot.passages)):
        own = [id_ for id_ in names[bench.searcher.passage(row).id] if id_ in wanted]
        if not own:
            continue
        numbers = tables.statements.row(row)
        stated = {
            (texts[tables.facts.subject[i]], tables.facts.predicate[int(i)], texts[tables.facts.object[i]])
            for i in numbers
        }
        for id_ in own:
            # A document's chunks state and mention what it does.
            facts[id_] = facts.get(id_, set()) | stated
            phrases[id_] = phrases.get(id_, set()) | {texts[i] for i in tables.mentions.row(row)}
    return _Known(facts, phrases)


def _key(fact: KeptFact) -> tuple[str, str, str]:
    return fact.subject, fact.predicate, fact.object


def _shown(fact: KeptFact) -> str:
    return f"{fact.subject} – {fact.predicate} – {fact.object}"
