"""Proportions of a corpus, from a sample of it that is read as an index would read it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from hippogpu.capacity.counts import PUBLISHED, Proportions
from hippogpu.config import IndexConfig
from hippogpu.errors import UsageError
from hippogpu.openie import Extractor
from hippogpu.tables import fact_pairs, tabulate
from hippogpu.text import identity, normalise
from hippogpu.types import Passage, Record, Tables

LEAST_SAMPLE = 16
# The part of the sample that says how phrases and facts grow with passages.
_PART = 4


class Sampled(NamedTuple):
    """A uniform sample of passages, and how many there are in all."""

    passages: list[Passage]
    whole: int


def sample_of(passages: Iterable[Passage], size: int, *, seed: int = 0) -> Sampled:
    """A uniform sample in one pass; UsageError where the corpus has fewer than 16 passages."""
    kept: list[Passage] = []
    whole, chance = 0, random.Random(seed)
    for passage in passages:
        whole += 1
        place = whole - 1 if whole <= size else chance.randrange(whole)
        if place < len(kept):
            kept[place] = passage
        elif whole <= size:
            kept.append(passage)
    if whole < LEAST_SAMPLE:
        raise UsageError(f"A sample needs a corpus of at least {LEAST_SAMPLE} passages. This one has {whole}.")
    # A reservoir keeps the first ones in order; the part that shows growth must be as random as the rest.
    chance.shuffle(kept)
    return Sampled(kept, whole)


def sampled_proportions(
    sampled: Sampled, extractor: Extractor | None, config: IndexConfig, *, passages: int
) -> Proportions:
    """Proportions of an index of so many passages like those of the sample.

    Texts are measured. With an extractor the sample is read too: statements and mentions are as many for each passage
    of a larger corpus, while distinct phrases and facts grow as a power of the passages, which a quarter of the sample
    and the whole of it show. Synonyms are in the published proportion to phrases.
    """
    texts, count = sampled.passages, len(sampled.passages)
    found = replace(
        PUBLISHED,
        passages_bytes=_mean(identity(passage.title, passage.text) for passage in texts),
        ids_bytes=2.0 + _mean(passage.id for passage in texts) + _mean(passage.title for passage in texts),
        words=sum(len(set(normalise(identity(passage.title, passage.text)).split())) for passage in texts) / count,
    )
    if extractor is None:
        return found
    records = list(extractor.extract(texts))
    part, all_ = (tabulate(some, config).tables for some in (records[: count // _PART], records))
    return _with_tables(found, records, part, all_, passages=passages)


def _with_tables(
    found: Proportions, records: Sequence[Record], part: Tables, all_: Tables, *, passages: int
) -> Proportions:
    count = len(records)

    def grown(some: int, whole: int) -> float:
        """So many a passage in the larger corpus: c · n^p, with 0.5 ≤ p ≤ 1."""
        power = math.log(whole / some) / math.log(_PART) if some and whole else 1.0
        power = min(1.0, max(0.5, power))
        a_passage: float = whole / count * (passages / count) ** (power - 1)
        return a_passage

    phrases = grown(len(part.phrases), len(all_.phrases))
    facts = grown(len(part.facts), len(all_.facts))
    pairs = grown(len(fact_pairs(part)[0]), len(fact_pairs(all_)[0]))
    mentions = len(all_.mentions.values) / count
    synonyms = PUBLISHED.synonyms * phrases / PUBLISHED.phrases
    return replace(
        found,
        phrases=phrases,
        facts=facts,
        fact_pairs=pairs,
        statements=len(all_.statements.values) / count,
        mentions=mentions,
        synonyms=synonyms,
        found=2 * synonyms,
        edges=pairs + mentions + synonyms,
        phrases_bytes=phrases * _mean(all_.phrases),
        facts_bytes=facts * (_mean(all_.facts.predicate) + _mean(all_.facts.text)),
    )


def _mean(texts: Iterable[str]) -> float:
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    return sum(sizes) / max(len(sizes), 1)
