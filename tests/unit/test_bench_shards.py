"""Shards that walk apart, beside the whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.shards import RESULTS, compared, measured, synthetic_case
from bench.shards_page import PAGE, with_tables
from bench.shards_parts import PARTS, ROOM, cut_of, split
from bench.shards_plan import sharded_plans
from bench.shards_walks import SCHEMES, Scheme, exact, sharded
from hippogpu.types import Ints, Longs, Ragged

ROOT = Path(__file__).resolve().parents[2]
CASE = synthetic_case(130, 7)
PHRASES = CASE.graph.nodes - len(CASE.mentions)
# Sums of float32 in another order.
ROUNDING = 1e-5


def off(scheme: Scheme, shards: int) -> float:
    """The greatest difference of a mass, as a share of the greatest mass."""
    first, second = exact(CASE.world, CASE.seeds)
    where = split("random", CASE.mentions, PHRASES, shards)
    found = sharded(CASE.world, where, shards, scheme, CASE.seeds, first)
    return float(np.abs(found - first - second).max() / (first + second).max())


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme.facts], ids=lambda scheme: scheme.name)
def test_one_shard_is_the_whole(scheme: Scheme) -> None:
    assert off(scheme, 1) < ROUNDING


def test_exchanges_close_in_on_the_whole() -> None:
    errors = [off(Scheme("", phrases=True, rounds=rounds), 3) for rounds in (0, 1, 2, 8)]
    assert errors[0] > 10 * errors[1] > 50 * errors[2]
    assert errors[3] < ROUNDING


def test_with_common_degrees_no_mass_is_made_up() -> None:
    first, second = exact(CASE.world, CASE.seeds)
    where = split("order", CASE.mentions, PHRASES, 4)
    for scheme in (Scheme(""), Scheme("", phrases=True), Scheme("", diffused=True)):
        found = sharded(CASE.world, where, 4, scheme, CASE.seeds, first)
        assert np.all(found <= (first + second) * (1 + ROUNDING) + ROUNDING * (first + second).max())


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("shards", [1, 3, 64])
def test_every_passage_is_in_one_shard_and_shards_are_alike_in_size(kind: str, shards: int) -> None:
    where = split(kind, CASE.mentions, PHRASES, shards)
    sizes = np.bincount(where, minlength=shards)
    assert (len(sizes), sizes.sum()) == (shards, len(CASE.mentions))
    assert sizes.max() <= np.ceil(ROOM * len(where) / shards)


def test_one_shard_cuts_nothing_and_copies_nothing() -> None:
    cut = cut_of(split("random", CASE.mentions, PHRASES, 1), CASE.mentions, CASE.graph, 1)
    assert cut == pytest.approx((1.0, 0.0, 0.0, 1.0))


def test_passages_that_share_phrases_are_put_together() -> None:
    random = np.random.default_rng(0)
    topic = random.permutation(np.arange(80) % 4)
    rows = [np.sort(random.choice(12, 6, replace=False)) + 12 * its for its in topic]
    mentions = Ragged(6 * np.arange(81, dtype=np.int64), np.concatenate(rows).astype(np.int32))
    shares = [purity(split(kind, mentions, 48, 4), topic) for kind in ("order", "near")]
    assert shares[0] < 0.6
    assert shares[1] > 1.5 * shares[0]


def purity(where: Ints, topic: Longs) -> float:
    """The share of the passages of each shard that are of its commonest topic."""
    return float(sum(np.bincount(topic[where == shard]).max() for shard in range(4)) / len(topic))


def test_a_ranking_compared_with_itself_has_everything() -> None:
    whole = np.random.default_rng(0).random((3, 40), np.float32)
    gold = [np.argsort(-row)[:2].astype(np.int32) for row in whole]
    assert compared(whole, whole, gold) == {"mass": 1.0, "top": 1.0, "recall": 1.0}


def test_a_case_has_a_row_for_each_split_number_and_scheme() -> None:
    found = measured(CASE._replace(schemes=SCHEMES[2:4]), [2])
    assert [(row["split"], row["scheme"]) for row in found["rows"]] == [
        (kind, scheme.name) for kind in PARTS for scheme in SCHEMES[2:4]
    ]
    assert [cut["split"] for cut in found["cuts"]] == list(PARTS)


def test_larger_corpora_take_more_cards_and_a_push_sends_as_much() -> None:
    plans = [plan for plan in sharded_plans(between=0.5) if plan.width == 384]
    assert [plan.passages for plan in plans] == [10**7, 10**8, 10**9]
    assert plans[0].cards < plans[1].cards < plans[2].cards
    assert plans[1].push_kb == plans[2].push_kb > 0
    assert plans[1].power_gb > 1000 * plans[1].push_kb / 1e6


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text, json.loads((ROOT / RESULTS).read_text(encoding="utf-8"))) == text
