"""From a question to phrases without a fact between them: by the entities it names, or by its own vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hippogpu.config import SearchConfig
from hippogpu.methods.entities import QuestionEntities
from hippogpu.methods.loaded import Loaded, min_max
from hippogpu.methods.seam import EntityVectors
from hippogpu.text import TextRule, normalise
from hippogpu.types import Floats, Ints, LinkedEntity


class Linked(NamedTuple):
    """The phrases that a question is linked to: phrase number and weight of each link, and what they come of.

    entities : for links by entities, one a link · failure : why its entities could not be read
    """

    phrases: tuple[tuple[int, float], ...]
    entities: tuple[LinkedEntity, ...] = ()
    failure: str | None = None


def named_once(read: Sequence[QuestionEntities], rule: TextRule) -> list[QuestionEntities]:
    """The entities without those that normalise to nothing, or to what an earlier one of the question does."""
    return [row._replace(names=_named_once(row.names, rule)) for row in read]


def _named_once(names: Sequence[str], rule: TextRule) -> tuple[str, ...]:
    distinct: dict[str, str] = {}
    for name in names:
        distinct.setdefault(normalise(name, rule), name)
    return tuple(name for text, name in distinct.items() if text)


def phrase_vectors(loaded: Loaded) -> Any:
    """The vectors of all phrases (E, w) on the backend, put there at first use."""
    return loaded.derived.once("phrases", lambda: loaded.backend.put(loaded.snapshot.phrase_vectors))


def link_entities(loaded: Loaded, entities: EntityVectors) -> list[Linked]:
    """For each question, the phrase nearest to each of its entities by cosine, ties by lower number; weights of 1.

    HippoRAG 1, section 2.3. Nothing is linked in an index without phrases.
    """
    phrases = loaded.snapshot.tables.phrases
    if not len(phrases) or not len(entities.vectors):
        return [Linked((), failure=row.failure) for row in entities.read]
    best = loaded.backend.topk(entities.vectors, phrase_vectors(loaded), 1)
    cosines = np.clip(best.scores[:, 0], -1.0, 1.0)
    nearest = iter(zip(best.ids[:, 0].tolist(), cosines.tolist(), strict=True))
    linked = []
    for row in entities.read:
        links = [(name, *next(nearest)) for name in row.names]
        named = tuple(LinkedEntity(name, phrases[phrase], cosine) for name, phrase, cosine in links)
        linked.append(Linked(tuple((phrase, 1.0) for _, phrase, _ in links), named, row.failure))
    return linked


def link_phrases(loaded: Loaded, vectors: Floats, *, top: int) -> list[Linked]:
    """For each question, the phrases nearest to its own vector; weights are cosines, min-max over all phrases.

    The ablation query-to-node of HippoRAG 2.
    """
    if not len(loaded.snapshot.tables.phrases):
        return [Linked(()) for _ in vectors]
    best = loaded.backend.topk(vectors, phrase_vectors(loaded), top)
    weights = min_max(best.scores, best.low, best.high)
    return [
        Linked(tuple(zip(row.tolist(), values.tolist(), strict=True)))
        for row, values in zip(best.ids, weights, strict=True)
    ]


def seed_divisors(loaded: Loaded, config: SearchConfig) -> Ints:
    """What the seed of each phrase is divided by, (E,): the passages that mention it, or 1 without specificity.

    1 for a phrase that only edges of one's own hold, which no passage mentions.
    """
    counts = loaded.mention_counts
    return np.maximum(counts, 1) if config.specificity else np.ones_like(counts)
