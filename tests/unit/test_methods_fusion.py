"""Reciprocal-rank fusion: worked out by hand, and what it tells of the methods it fuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from method_cases import QUESTIONS, loaded, method_rows, rank

from hippogpu.config import SearchConfig
from hippogpu.errors import ConfigError
from hippogpu.methods import Asked, Clock, Loaded, Method, Needs, Queries, Ranked, Scored
from hippogpu.methods.bm25 import NO_WORD
from hippogpu.methods.fusion import fusion_of
from hippogpu.types import KeptFact


def saying(name: str, rows: Sequence[int], **why: object) -> Method:
    """A method that ranks every question the same, of which only as many as are asked come."""

    def rank_(loaded: Loaded, asked: Asked, *, k: int, config: SearchConfig, clock: Clock) -> list[Ranked]:
        best = np.array(rows[:k], np.int32)
        return [Ranked(best, np.ones(len(best)), **why) for _ in asked.texts]  # type: ignore[arg-type]

    def score(loaded: Loaded, asked: Asked, *, config: SearchConfig, clock: Clock) -> Scored:
        raise AssertionError("fusion reads rankings")

    return Method(name, rank_, score, lambda loaded, config: Needs())  # type: ignore[arg-type]


def fused(here: Loaded, *methods: Method, k: int = 5, **settings: object) -> Ranked:
    config = SearchConfig(method="fusion", fuse="+".join(m.name for m in methods), **settings)  # type: ignore[arg-type]
    empty = np.empty((1, 0), np.float32)
    method = fusion_of({method.name: method for method in methods})
    return method.rank(here, Asked(["?"], Queries(empty, empty)), k=k, config=config, clock=Clock())[0]


def test_scores_are_sums_of_inverse_ranks(made: Path) -> None:
    found = fused(loaded(made), saying("dense", [2, 0, 1]), saying("bm25", [0, 3]))
    by_hand = {0: 1 / 62 + 1 / 61, 2: 1 / 61, 3: 1 / 62, 1: 1 / 63, 4: 0}
    assert found.rows.tolist() == [0, 2, 3, 1, 4]
    assert found.scores.tolist() == pytest.approx([by_hand[row] for row in (0, 2, 3, 1, 4)])


def test_equal_sums_go_to_the_lower_row(made: Path) -> None:
    assert fused(loaded(made), saying("dense", [4, 3]), saying("bm25", [3, 4]), k=2).rows.tolist() == [3, 4]


def test_the_constant_and_the_depth_are_settings(made: Path) -> None:
    found = fused(loaded(made), saying("dense", [2, 0]), saying("bm25", [1, 0]), k=1, fuse_depth=1, fuse_constant=0)
    assert (found.rows.tolist(), found.scores.tolist()) == ([1], [1.0])


def test_more_passages_than_the_depth_are_asked_for_when_more_are_wanted(made: Path) -> None:
    found = fused(loaded(made), saying("dense", [4, 3, 2, 1, 0]), saying("bm25", []), k=5, fuse_depth=1)
    assert found.rows.tolist() == [4, 3, 2, 1, 0]


def test_what_the_methods_say_is_told(made: Path) -> None:
    facts = (KeptFact("a", "b", "c", 1.0),)
    found = fused(
        loaded(made),
        saying("dense", [0]),
        saying("hippo2", [1], facts=facts, solver="power", filter_failure="no reply"),
        saying("bm25", [], fallback=NO_WORD),
    )
    assert (found.facts, found.solver, found.filter_failure) == (facts, "power", "no reply")
    assert found.fallback == f"bm25: {NO_WORD}"


def test_fusing_one_method_keeps_its_order(made: Path) -> None:
    here = loaded(made)
    for method in ("dense", "hippo2"):
        one = rank(here, QUESTIONS, SearchConfig(method=method))  # type: ignore[arg-type]
        fused_one = rank(here, QUESTIONS, SearchConfig(method="fusion", fuse=method))
        assert [row.rows.tolist() for row in fused_one] == [row.rows.tolist() for row in one]


def test_a_batch_scores_as_its_questions_alone(made: Path) -> None:
    here, config = loaded(made), SearchConfig(method="fusion")
    together = method_rows(here, [*QUESTIONS, "zebra"], config)
    alone = [method_rows(here, [question], config)[0] for question in [*QUESTIONS, "zebra"]]
    assert together.tolist() == [row.tolist() for row in alone]


def test_needs_are_those_of_all_methods_fused(made: Path) -> None:
    method = fusion_of(
        {"dense": saying("dense", [])._replace(needs=lambda *_: Needs(passages=True)), "bm25": saying("bm25", [])}
    )
    assert method.needs(loaded(made), SearchConfig(method="hippo2", fuse="bm25+dense")) == Needs(passages=True)


@pytest.mark.parametrize("fuse", ["", "fusion", "dense+dense", "dense+other", "dense,bm25", "dense+"])
def test_what_cannot_be_fused_is_refused(fuse: str) -> None:
    with pytest.raises(ConfigError, match="'fuse' of SearchConfig must be different methods"):
        SearchConfig(method="hippo2", fuse=fuse)
