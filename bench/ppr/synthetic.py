"""Seeded graphs in the shape of a real one: MuSiQue's 11,656 passages as HippoRAG 2 indexes them.

What is imitated, and from where:

- Counts a passage (7.3 phrases, 12.1 fact edges, 11.4 mentions, 97 synonym edges) are those of the papers' graph of
  MuSiQue.
- Each phrase first occurs in one passage; further mentions fall on phrases by popularity, rank r with density r^(-2/3).
  In the 1,890 passages of MuSiQue-train the most popular phrases are mentioned 169, 32, 31, 30 … times; the law gives
  about 140, 36, 25, 20.
- Passages state unequally much (gamma distributed), one in a thousand nothing: such a node is isolated.
- A fact joins two phrases of one passage, mostly its title and another; 3.5 % are stated more than once.
- Synonyms are circles of near-duplicates of heavy-tailed size: each phrase finds up to the 50 next on either side (the
  cap of 100); 5 % of the edges leave the circle for one nearby. Cosines fall off above 0.8 as in MuSiQue-train (median
  0.844, 90 % below 0.92).
- Phrases are numbered by their text in a real graph, which says little of where they occur: numbers are shuffled.

Not imitated: that passages of one topic share phrases, and that spelling puts some near-duplicates side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from hippogpu.types import AnyFloats, Csr, Floats, Longs

Random = np.random.Generator

BARREN = 0.001
GAMMA_SHAPE = 12.0
POPULARITY_POWER = 3.0
TITLE_SHARE = 0.6
REPEATED_FACTS = 0.035
SYNONYM_REACH = 50
CIRCLE_POWER, GREATEST_CIRCLE = 1.33, 400
LEAVING_SHARE, LEAVING_DISTANCE = 0.05, 1000
COSINE_FALL = 0.06


class Shape(NamedTuple):
    """Phrases, and undirected edges of each family, a passage."""

    phrases: float
    facts: float
    mentions: float
    synonyms: float


MUSIQUE = Shape(phrases=7.3, facts=12.1, mentions=11.4, synonyms=97.0)


class Synthetic(NamedTuple):
    """A graph over passages 0…P−1 and then phrases, and how many edges of each family went into it.

    A pair that is both a fact and a synonym is one edge, of the greater weight (the edge rule max).
    """

    graph: Csr
    passages: int
    phrases: int
    facts: int
    mentions: int
    synonyms: int


def synthetic_graph(passages: int, *, seed: int = 0, shape: Shape = MUSIQUE) -> Synthetic:
    """The graph of that many passages; the same for the same seed. Counts are exact to rounding.

    About 241 non-zeros a passage, and 35 bytes of memory a non-zero while it is made.
    """
    phrases, facts, mentions, synonyms = (round(passages * each) for each in shape)
    stated, joined, near = (np.random.default_rng([seed, part]) for part in range(3))
    mention_keys = _mentions(passages, phrases, mentions, stated)
    fact_keys = _facts(mention_keys, passages, phrases, facts, joined)
    pairs, weights = _strongest(fact_keys, _counts(facts, joined), *_synonyms(phrases, synonyms, near))
    graph = _csr(mention_keys, pairs, weights, passages, phrases)
    return Synthetic(graph, passages, phrases, facts, mentions, synonyms)


def _mentions(passages: int, phrases: int, count: int, random: Random) -> Longs:
    """Keys passage · E + phrase, ascending and distinct: one for each phrase, the others by popularity."""
    share = random.gamma(GAMMA_SHAPE, size=passages) * (random.random(passages) >= BARREN)
    reach = np.cumsum(share)
    number = random.permutation(phrases)

    def some_passages(size: int) -> Longs:
        chosen: Longs = np.searchsorted(reach, random.random(size) * reach[-1], side="right")
        return np.minimum(chosen, passages - 1)

    def draw(size: int) -> Longs:
        rank = (phrases * random.random(size) ** POPULARITY_POWER).astype(np.int64)
        return some_passages(size) * phrases + number[rank]

    first = np.sort(some_passages(phrases) * phrases + np.arange(phrases))
    return distinct(first, count, draw, random)


def _facts(mentions: Longs, passages: int, phrases: int, count: int, random: Random) -> Longs:
    """Keys low · E + high of phrase pairs that one passage mentions; every mention takes part if there is room."""
    passage, phrase = mentions // phrases, mentions % phrases
    ends = np.searchsorted(passage, np.arange(passages), side="right")
    starts = np.concatenate([[0], ends[:-1]])
    title = starts + (random.random(passages) * (ends - starts)).astype(np.int64)

    def draw(size: int) -> Longs:
        slot = random.integers(len(mentions), size=size) if size != len(mentions) else np.arange(size)
        here = passage[slot]
        any_slot = starts[here] + (random.random(size) * (ends - starts)[here]).astype(np.int64)
        other = np.where(random.random(size) < TITLE_SHARE, title[here], any_slot)
        return _pair_keys(phrase[slot], phrase[other], phrases)

    every = np.unique(draw(len(mentions)))
    return distinct(every[every >= 0][:count], count, draw, random)


def _counts(facts: int, random: Random) -> Floats:
    """How often each fact is stated: once, or seldom twice and more."""
    repeats = np.where(random.random(facts) < REPEATED_FACTS, random.geometric(0.7, size=facts), 0)
    return (1 + repeats).astype(np.float32)


def _synonyms(phrases: int, count: int, random: Random) -> tuple[Longs, Floats]:
    """Keys of synonym pairs, ascending and distinct, and their cosines."""
    number = random.permutation(phrases)
    keys = _circle_pairs(circle_sizes(phrases), number)
    wanted = (1 - LEAVING_SHARE) * count
    keys = np.sort(keys[random.random(len(keys), np.float32) < wanted / max(len(keys), 1)])

    def draw(size: int) -> Longs:
        place = random.integers(phrases, size=size)
        step = random.integers(1, min(LEAVING_DISTANCE, phrases - 1) + 1, size=size)
        return _pair_keys(number[place], number[(place + step) % phrases], phrases)

    keys = distinct(keys[:count], count, draw, random)
    span = np.float32(1 - np.exp(-0.2 / COSINE_FALL))
    fall = -np.float32(COSINE_FALL) * np.log1p(-span * random.random(count, np.float32))
    return keys, np.minimum(np.float32(0.8) + fall, np.float32(0.9999))


def circle_sizes(phrases: int) -> Longs:
    """Sizes of the circles of near-duplicates: k or more with probability k^(-1.33), at most 400; they sum to E."""
    least = GREATEST_CIRCLE**-CIRCLE_POWER
    mean = sum(k**-CIRCLE_POWER for k in range(1, GREATEST_CIRCLE + 1))
    # Sizes at even quantiles, so that small graphs have the tail of large ones.
    quantiles = (np.arange(int(phrases / mean) + 2) + 0.5) / (int(phrases / mean) + 2)
    sizes = np.maximum(quantiles, least) ** (-1 / CIRCLE_POWER)
    sizes = np.floor(sizes).astype(np.int64)
    ends = np.cumsum(sizes)
    whole = sizes[ends <= phrases]
    return np.concatenate([whole, np.ones(phrases - int(whole.sum()), np.int64)])


def _circle_pairs(sizes: Longs, number: Longs) -> Longs:
    """Keys of each phrase with the next ones of its circle, up to half way round or the reach."""
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size, place = np.repeat(sizes, sizes), np.arange(len(number))
    found = []
    for offset in range(1, SYNONYM_REACH + 1):
        wide = size >= 2 * offset
        starts, size, place = starts[wide], size[wide], place[wide]
        # Half way round an even circle both ends would find the pair.
        once = (size > 2 * offset) | (place - starts < offset)
        here, start = place[once], starts[once]
        other = start + (here - start + offset) % size[once]
        found.append(_pair_keys(number[here], number[other], len(number)))
    return np.concatenate(found)


def distinct(held: Longs, count: int, draw: Callable[[int], Longs], random: Random) -> Longs:
    """The held keys and as many drawn ones as make `count`, ascending, without repeats; draws of −1 are refused."""
    while len(held) < count:
        fresh = np.unique(draw(int(1.1 * (count - len(held))) + 16))
        fresh = fresh[fresh >= 0]
        fresh = fresh[~_holds(held, fresh)]
        if len(fresh) > count - len(held):
            fresh = random.permutation(fresh)[: count - len(held)]
        held = np.concatenate([held, fresh])
        held.sort()
    return held


def _holds(held: Longs, keys: Longs) -> NDArray[np.bool_]:
    if len(held) == 0:
        return np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(held, keys), len(held) - 1)
    return np.equal(held[place], keys)


def _pair_keys(left: Longs, right: Longs, phrases: int) -> Longs:
    """low · E + high; −1 for a phrase with itself."""
    return np.where(left == right, -1, np.minimum(left, right) * phrases + np.maximum(left, right))


def _strongest(facts: Longs, counts: Floats, synonyms: Longs, cosines: Floats) -> tuple[Longs, Floats]:
    """Each pair once, with the greater of its count and its cosine."""
    both = _holds(synonyms, facts)
    place = np.searchsorted(synonyms, facts[both])
    cosines[place] = np.maximum(cosines[place], counts[both])
    return np.concatenate([synonyms, facts[~both]]), np.concatenate([cosines, counts[~both]])


def _csr(mentions: Longs, pairs: Longs, weights: AnyFloats, passages: int, phrases: int) -> Csr:
    low = np.concatenate([mentions // phrases, passages + pairs // phrases]).astype(np.int32)
    high = (passages + np.concatenate([mentions % phrases, pairs % phrases])).astype(np.int32)
    weights = np.concatenate([np.ones(len(mentions), np.float32), weights])
    rows, columns, nodes = np.concatenate([low, high]), np.concatenate([high, low]), passages + phrases
    matrix: Any = coo_array((np.concatenate([weights, weights]), (rows, columns)), shape=(nodes, nodes)).tocsr()
    matrix.sort_indices()
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data)
