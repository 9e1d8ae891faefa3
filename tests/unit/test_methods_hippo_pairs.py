"""What a question's words say of passages and their partners, against a version that is written for reading."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from hippogpu.methods.hippo.pairs import pair_row
from hippogpu.methods.hippo.words import Mentions, Words
from hippogpu.types import AnyFloats, Ints, Longs

# Sums of a few shares, added up in another order.
ROUNDING = 1e-12


class Corpus(NamedTuple):
    """The words and the phrases of each passage, and the phrases that tell passages apart."""

    words: Sequence[Collection[int]]
    phrases: Sequence[Collection[int]]
    telling: Collection[int]


class Said(NamedTuple):
    """What pair_row writes."""

    covered: list[float]
    pair: list[float]
    rest: list[float]
    partner: list[int]


def said(corpus: Corpus, pool: Sequence[int], partners: Sequence[int], shares: AnyFloats) -> Said:
    """Of a question that asks for the words 0, 1, … with those shares; partners are places in the pool."""
    asked = np.arange(len(shares), dtype=np.int32)
    having = [[p for p, words in enumerate(corpus.words) if word in words] for word in range(len(shares))]
    telling = np.isin(np.arange(20), list(corpus.telling))
    words, mentions = Words(*_ragged(having)), Mentions(*_ragged([sorted(row) for row in corpus.phrases]), telling)
    m = len(pool)
    covered, pair, rest, partner = np.full(m, 9.0), np.full(m, 9.0), np.full(m, 9.0), np.full(m, 9, np.int32)
    rows, others = np.array(pool, np.int32), np.array(partners, np.int32)
    pair_row(rows, others, asked, shares, words, mentions, covered, pair, rest, partner)
    return Said(covered.tolist(), pair.tolist(), rest.tolist(), partner.tolist())


def _ragged(rows: Sequence[Sequence[int]]) -> tuple[Longs, Ints]:
    lengths = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return lengths, np.array([one for row in rows for one in row], np.int32)


def plainly(corpus: Corpus, pool: Sequence[int], partners: Sequence[int], shares: AnyFloats) -> Said:
    """The same, word for word as its docstring has it."""

    def weight(words: Collection[int]) -> float:
        return float(sum(share for word, share in enumerate(shares) if word in words))

    covered = [weight(corpus.words[one]) for one in pool]
    leader = set(corpus.words[pool[partners[0]]]) if len(partners) else None
    rest = [0.0 if leader is None else weight(set(corpus.words[one]) - leader) for one in pool]
    pair, chosen = [], []
    for place, one in enumerate(pool):
        linked = [
            (weight({*corpus.words[one], *corpus.words[pool[other]]}), other)
            for other in partners
            if other != place and set(corpus.phrases[one]) & set(corpus.phrases[pool[other]]) & set(corpus.telling)
        ]
        best, who = max(linked, key=lambda both: both[0], default=(covered[place], -1))
        pair.append(best)
        chosen.append(who)
    return Said(covered, pair, rest, chosen)


def random_corpus(random: np.random.Generator, passages: int, words: int) -> Corpus:
    def some(most: int, share: float) -> list[list[int]]:
        return [np.flatnonzero(random.random(most) < share).tolist() for _ in range(passages)]

    return Corpus(some(words, 0.3), some(20, 0.15), np.flatnonzero(random.random(20) < 0.5).tolist())


@pytest.mark.parametrize("seed", range(30))
def test_every_figure_is_that_of_the_plain_version(seed: int) -> None:
    random = np.random.default_rng(seed)
    passages, words = int(random.integers(1, 40)), int(random.integers(0, 9))
    corpus = random_corpus(random, passages, words)
    pool = np.sort(random.choice(passages, int(random.integers(1, passages + 1)), replace=False)).tolist()
    partners = random.permutation(len(pool))[: int(random.integers(0, 6))].tolist()
    shares = 2.0 ** -np.arange(1.0, words + 1)  # no two sets of words weigh the same
    found, wanted = said(corpus, pool, partners, shares), plainly(corpus, pool, partners, shares)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours == pytest.approx(theirs, abs=ROUNDING)


TWO = Corpus(words=[{0}, {1}, {0, 1}, set()], phrases=[{3, 4}, {3}, {4}, {5}], telling={3})
HALVES = np.array([0.5, 0.5])


def test_a_pair_covers_what_the_two_have_together() -> None:
    found = said(TWO, [0, 1], [0], HALVES)
    assert (found.covered, found.pair, found.partner) == ([0.5, 0.5], [0.5, 1.0], [-1, 0])


def test_a_phrase_that_tells_nothing_joins_nobody() -> None:
    assert said(TWO, [0, 2], [0, 1], HALVES).partner == [-1, -1]


def test_a_passage_is_no_partner_of_itself() -> None:
    found = said(TWO, [2], [0], HALVES)
    assert (found.pair, found.partner) == ([1.0], [-1])


def test_without_partners_a_passage_covers_alone_and_nobody_leads() -> None:
    found = said(TWO, [0, 1, 2], [], HALVES)
    assert found == Said([0.5, 0.5, 1.0], [0.5, 0.5, 1.0], [0.0] * 3, [-1] * 3)


def test_the_first_partner_leads_and_leaves_itself_nothing() -> None:
    assert said(TWO, [0, 1, 2], [1, 0], HALVES).rest == [0.5, 0.0, 0.5]
    assert said(TWO, [0, 1, 2], [0, 1], HALVES).rest == [0.0, 0.5, 0.5]


def test_a_partner_that_adds_nothing_is_named_all_the_same() -> None:
    alike = Corpus(words=[{0}, {0}], phrases=[{3}, {3}], telling={3})
    found = said(alike, [0, 1], [0], HALVES)
    assert (found.pair[1], found.partner[1]) == (0.5, 0)


def test_of_partners_that_give_as_much_the_first_is_named() -> None:
    alike = Corpus(words=[{0}, {1}, {1}], phrases=[{3}, {3}, {3}], telling={3})
    assert said(alike, [0, 1, 2], [2, 1], HALVES).partner[0] == 2


def test_words_that_nobody_has_and_questions_without_words_give_nothing() -> None:
    empty = Corpus(words=[set(), set()], phrases=[{3}, {3}], telling={3})
    for shares in (HALVES, np.empty(0)):
        found = said(empty, [0, 1], [0], shares)
        assert (found.covered, found.pair, found.rest) == ([0.0] * 2, [0.0] * 2, [0.0] * 2)
