"""What a walk starts from: the facts, entities or phrases that a question is linked to, and the seeds they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hippogpu.config import SearchConfig
from hippogpu.methods.facts import Recognised, kept_facts, shown_fact
from hippogpu.methods.linking import Linked, link_entities, link_phrases, seed_divisors
from hippogpu.methods.loaded import Clock, Loaded, Ranked
from hippogpu.methods.seam import Asked, Needs
from hippogpu.methods.seeds import linked_seeds, phrase_seeds
from hippogpu.types import Seed

DENSE_ALONE = "ranked by dense similarity alone"
NO_FACT = f"no fact was kept: {DENSE_ALONE}"
NOT_LINKED = f"the question was linked to no phrase: {DENSE_ALONE}"
UNREAD_ENTITIES = "the entities of the question could not be read"
UNREAD = f"{UNREAD_ENTITIES} ({{}}): {DENSE_ALONE}"

_NOTHING_KEPT, _NOTHING_LINKED = Recognised(()), Linked(())


class Started(NamedTuple):
    """What each question of a batch starts from: the facts it kept or the phrases it is linked to, and its seeds."""

    seeds: Sequence[Mapping[int, float]]
    kept: Sequence[Recognised]
    linked: Sequence[Linked]

    def missing(self, question: int, config: SearchConfig) -> str | None:
        """Why a question has nothing to start from but its passages, None when it has."""
        if config.link == "fact":
            return None if self.kept[question].facts else NO_FACT
        return unlinked(self.linked[question])


def start(loaded: Loaded, asked: Asked, config: SearchConfig, clock: Clock) -> Started:
    """Phrase seeds of each question by the link of the settings, at most top_phrases. HippoRAG 2, sections 3.3 to 3.5.

    fact   : those of the facts that pass the filter
    entity : the phrase nearest to each entity of the question, 1 ÷ (passages that mention it)
    phrase : the top_phrases phrases nearest to the question, min-max score ÷ (passages that mention it)
    """
    nothing = [_NOTHING_LINKED] * len(asked.texts)
    divisors, top = seed_divisors(loaded, config), config.top_phrases
    if config.link == "fact":
        vectors, judge = asked.queries.to_facts, asked.fact_filter
        kept = kept_facts(loaded, asked.texts, vectors, config=config, fact_filter=judge, clock=clock)
        with clock("seeds"):
            facts = loaded.snapshot.tables.facts
            return Started([phrase_seeds(row.facts, facts, divisors, top_phrases=top) for row in kept], kept, nothing)
    with clock("seeds"):
        linked = _linked(loaded, asked, config)
        seeds = [dict([*linked_seeds(row.phrases, divisors).items()][:top]) for row in linked]
        return Started(seeds, [_NOTHING_KEPT] * len(seeds), linked)


def _linked(loaded: Loaded, asked: Asked, config: SearchConfig) -> list[Linked]:
    if config.link == "phrase":
        return link_phrases(loaded, asked.queries.to_facts, top=config.top_phrases)
    assert asked.entities is not None
    return link_entities(loaded, asked.entities)


def unlinked(linked: Linked) -> str | None:
    """Why a question is linked to no phrase, None when it is to some."""
    if linked.failure is not None:
        return UNREAD.format(linked.failure)
    return None if linked.phrases else NOT_LINKED


def told(loaded: Loaded, started: Started, ranked: Sequence[Ranked]) -> list[Ranked]:
    """The rankings with the facts, entities and seeds that they come of."""
    return [
        row._replace(
            facts=tuple(shown_fact(loaded, fact) for fact in kept.facts),
            seeds=named_seeds(loaded, seeds),
            filter_failure=kept.failure,
            fact_search=kept.search,
            entities=linked.entities,
        )
        for row, kept, linked, seeds in zip(ranked, started.kept, started.linked, started.seeds, strict=True)
    ]


def named_seeds(loaded: Loaded, seeds: Mapping[int, float]) -> tuple[Seed, ...]:
    """Seeds with the texts of their phrases."""
    phrases = loaded.snapshot.tables.phrases
    return tuple(Seed(phrases[phrase], weight) for phrase, weight in seeds.items())


def starting_needs(config: SearchConfig) -> Needs:
    """What start takes of a question."""
    return Needs(facts=config.link != "entity", filter=config.link == "fact", entities=config.link == "entity")
