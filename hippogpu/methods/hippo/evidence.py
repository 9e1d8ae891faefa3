"""What speaks for each passage of a question's pool: eight numbers, all about as large as one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hippogpu.backends.threads import run_together
from hippogpu.config import SearchConfig
from hippogpu.methods.hippo.masses import Masses
from hippogpu.methods.hippo.words import (
    Mentions,
    Words,
    passages_of_words,
    telling_mentions,
    title_shares,
    word_weights,
)
from hippogpu.methods.lexical import asked_words, word_counts
from hippogpu.methods.loaded import Loaded, min_max
from hippogpu.types import AnyFloats, AnyInts, Bools, Floats, Ints, Ragged

EVIDENCE = ("dense", "words", "facts", "names", "near", "title", "pair", "rest")
"""The kinds of evidence, in the order of the columns of Pooled.evidence.

dense : min-max cosine over all passages, in [0, 1]
words : weight of the question's words that the passage has, in [0, 1]; a word weighs log(1 + P ÷ passages with it)
facts : mass that the walk from the question's facts brings, on a log scale from −1 (none) to about 0 (the most)
names : the same of the walk from the phrases that the question names
near  : mass from the passage seeds, as a share of the greatest
title : weight of the title's words that the question has, in [0, 1]; 0 without a title
pair  : weight of the question's words that the passage and its best partner have together, in [0, 1]
rest  : weight of the question's words that it has and the leader of the graph's order has not, in [0, 1]
"""

# A thousandth of the greatest mass is as good as none.
_FLOOR = 1e-3
# Questions whose texts are looked at together.
_AT_ONCE = 2


class Texts(NamedTuple):
    """What texts say of every passage: products of vectors and BM25, both (B, P), low and high (B,) of the products.

    weight is the factor of the words.
    """

    products: AnyFloats
    lexical: Floats
    low: AnyFloats
    high: AnyFloats
    weight: float

    def some(self, rows: slice) -> Texts:
        """Those of some of the questions."""
        return Texts(self.products[rows], self.lexical[rows], self.low[rows], self.high[rows], self.weight)

    @property
    def dense(self) -> AnyFloats:
        """Min-max cosines, (B, P) float64."""
        return min_max(self.products, self.low, self.high)

    @property
    def nearest(self) -> AnyFloats:
        """Both together, words as a share of the greatest, (B, P) float64."""
        return self.dense + self.weight * lexical_shares(self.lexical, self.lexical.max(axis=1))


def lexical_shares(scores: Floats, most: Floats) -> AnyFloats:
    """BM25 as a share of the greatest of its row, (B, any) float64; most (B,)."""
    return scores / np.maximum(most[:, None].astype(np.float64), np.finfo(float).tiny)


class Pooled(NamedTuple):
    """A question's pool: rows of passages, ascending (m,); their evidence (m, 8) float64; and the row of the partner
    that pair speaks of, −1 without one (m,).
    """

    rows: Ints
    evidence: AnyFloats
    partners: Ints


class _Tables(NamedTuple):
    words: Words
    weights: AnyFloats
    titles: Ragged
    mentions: Mentions


def gather(
    loaded: Loaded, questions: Sequence[str], texts: Texts, masses: Masses, order: AnyFloats, *, config: SearchConfig
) -> list[Pooled]:
    """The pool of each question, the first passages by the graph and those by the texts, with its evidence.

    order : what the graph says of every passage, Masses.total
    """
    tables = _Tables(
        passages_of_words(loaded),
        word_weights(loaded, config),
        word_counts(loaded).titles,
        telling_mentions(loaded),
    )
    by_graph = first_of(loaded, order, config.pool)
    by_text = np.concatenate(
        [first_of(loaded, texts.some(rows).nearest, config.pool) for rows in _few(len(questions))], axis=0
    )
    asked = asked_words(loaded, questions, config)
    pools = [np.union1d(one, two).astype(np.int32) for one, two in zip(by_graph, by_text, strict=True)]
    columns = [_of_walks(texts, masses, pool, i) for i, pool in enumerate(pools)]
    partners = [
        np.searchsorted(pool, order[: config.partners * config.pairs]).astype(np.int32)
        for pool, order in zip(pools, by_graph, strict=True)
    ]
    pooled: list[Pooled | None] = [None] * len(pools)

    def work(some: Iterator[int]) -> None:
        for i in some:
            pooled[i] = _of_words(pools[i], columns[i], partners[i], asked[i], tables)

    run_together(range(len(pools)), work)
    return [one for one in pooled if one is not None]


def _few(questions: int) -> Iterator[slice]:
    """Some questions at a time, so that what is worked out of all passages for them is small beside the rest."""
    return (slice(start, start + _AT_ONCE) for start in range(0, questions, _AT_ONCE))


def first_of(loaded: Loaded, scores: AnyFloats, count: int) -> Ints:
    """The first passages of each question by their scores (B, P), (B, count) or all, ties by lower row."""
    return loaded.backend.get(loaded.backend.select(loaded.backend.put(scores), count))  # type: ignore[return-value]


def _of_walks(texts: Texts, masses: Masses, pool: Ints, question: int) -> AnyFloats:
    """The columns dense, facts, names and near, with zeros where words will speak. (m, 8) float64."""
    evidence = np.zeros((len(pool), len(EVIDENCE)))
    here = slice(question, question + 1)
    evidence[:, 0] = min_max(texts.products[here, pool], texts.low[here], texts.high[here])[0]
    for column, mass in ((2, masses.facts), (3, masses.names)):
        few = mass[question, pool].astype(np.float64)
        evidence[:, column] = log_share(few, float(mass[question].max(initial=0.0)))
    most = float(masses.passages[question].max(initial=0.0))
    evidence[:, 4] = masses.passages[question, pool] / most if most > 0 else 0.0
    return evidence


def log_share(mass: AnyFloats, most: float) -> AnyFloats:
    """log(mass ÷ most + 0.001) ÷ log(1000): −1 for no mass, 0 for the most."""
    if most <= 0:
        return np.full(len(mass), -1.0)
    shares: AnyFloats = np.log(np.maximum(mass, 0.0) / most + _FLOOR) / -np.log(_FLOOR)
    return shares


def _of_words(pool: Ints, evidence: AnyFloats, partners: Ints, asked: AnyInts, tables: _Tables) -> Pooled:
    """Fills the columns words, title, pair and rest."""
    # Numba is loaded when something is ranked, not when a method is chosen.
    from hippogpu.methods.hippo.pairs import pair_row

    shares = tables.weights[asked]
    shares = shares / shares.sum() if len(shares) else shares
    covered, pair, rest = np.zeros(len(pool)), np.zeros(len(pool)), np.zeros(len(pool))
    partner = np.empty(len(pool), np.int32)
    pair_row(pool, partners, asked, shares, tables.words, tables.mentions, covered, pair, rest, partner)
    evidence[:, 1], evidence[:, 6], evidence[:, 7] = covered, pair, rest
    evidence[:, 5] = title_shares(tables.titles, pool, asked, tables.weights)
    has: Bools = partner >= 0
    return Pooled(pool, evidence, np.where(has, pool[partner], -1).astype(np.int32))
