"""Filters that need no language model: what they keep, and which filter the settings open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from method_cases import QUESTIONS, asked, loaded, rank
from small_index import WIDTH

from hippogpu.config import FilterName, SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.methods import Clock, KeepAll, Needs, Tools, Verdict, ask
from hippogpu.methods.free_filters import AgreementFilter, GapFilter
from hippogpu.methods.starts import NO_FACT
from hippogpu.types import KeptFact

ALL_NEEDS = Needs(facts=True, filter=True)


def facts(*rows: tuple[str, str, float]) -> list[KeptFact]:
    return [KeptFact(subject, "does", object_, score) for subject, object_, score in rows]


SCORED = facts(("a", "b", 1.0), ("b", "c", 0.9), ("c", "d", 0.85), ("d", "e", 0.8499))


@pytest.mark.parametrize(("share", "kept"), [(0.0, (0, 1, 2, 3)), (0.85, (0, 1, 2)), (0.95, (0,)), (1.0, (0,))])
def test_gap_keeps_what_scores_a_share_of_the_best(share: float, kept: tuple[int, ...]) -> None:
    assert GapFilter(share)(["?"], [SCORED]) == [Verdict(kept)]


def test_gap_takes_the_best_of_the_candidates_not_one_as_its_measure() -> None:
    low = facts(("a", "b", 0.5), ("b", "c", 0.45), ("c", "d", 0.3))
    assert GapFilter(0.85)(["?"], [low]) == [Verdict((0, 1))]


def test_gap_keeps_facts_that_all_score_nothing() -> None:
    assert GapFilter(0.85)(["?"], [facts(("a", "b", 0.0), ("b", "c", 0.0))]) == [Verdict((0, 1))]


def test_agreement_keeps_facts_that_the_question_names_or_that_adjoin_one() -> None:
    rows = facts(
        ("hello love", "hank snow", 1.0),
        ("hank snow", "nashville", 0.9),
        ("nashville", "tennessee", 0.8),
        ("x", "y", 0.7),
    )
    assert AgreementFilter()(["Who sang Hello Love?"], [rows]) == [Verdict((0, 1))]


def test_agreement_does_not_count_function_words() -> None:
    assert AgreementFilter()(["Who is the king of it?"], [facts(("the who", "of it", 1.0), ("king", "x", 0.9))]) == [
        Verdict((1,))
    ]


def test_agreement_reads_words_as_phrases_are_normalised() -> None:
    assert AgreementFilter()(["ÉCOLE?"], [facts(("école de paris", "x", 1.0))]) == [Verdict((0,))]


def test_agreement_may_keep_nothing_and_the_ranking_then_says_so(made: Path) -> None:
    here = loaded(made)
    (found,) = rank(here, asked(["zzz"], fact_filter=AgreementFilter()), SearchConfig(method="hippo2"))
    assert (found.fallback, found.filter_failure) == (NO_FACT, None)


@pytest.mark.parametrize("judge", [GapFilter(0.85), AgreementFilter(), KeepAll()])
def test_a_batch_is_judged_as_its_questions_alone(made: Path, judge: Any) -> None:
    here = loaded(made)
    together = rank(here, asked(QUESTIONS, fact_filter=judge), SearchConfig(method="hippo2"))
    alone = [rank(here, asked([one], fact_filter=judge), SearchConfig(method="hippo2"))[0] for one in QUESTIONS]
    assert [row.facts for row in together] == [row.facts for row in alone]


@pytest.mark.parametrize(("name", "kind"), [("none", KeepAll), ("gap", GapFilter), ("agreement", AgreementFilter)])
def test_filters_without_a_model_are_opened_by_their_name(name: FilterName, kind: type) -> None:
    tools = Tools(HashingEmbedder(WIDTH), fact_filter=KeepNone())
    made = ask(
        tools, ["?"], ALL_NEEDS, config=SearchConfig(method="hippo2", filter=name), rule="unicode", clock=Clock()
    )
    assert isinstance(made.fact_filter, kind)


@pytest.mark.parametrize("name", ["llm", "cross-encoder"])
def test_a_filter_with_a_model_is_the_one_given(name: FilterName) -> None:
    judge, config = KeepNone(), SearchConfig(method="hippo2", filter=name)
    made = ask(
        Tools(HashingEmbedder(WIDTH), fact_filter=judge), ["?"], ALL_NEEDS, config=config, rule="unicode", clock=Clock()
    )
    assert made.fact_filter is judge
    with pytest.raises(UsageError, match=rf"filter '{name}' needs a model.*fact_filter="):
        ask(Tools(HashingEmbedder(WIDTH)), ["?"], ALL_NEEDS, config=config, rule="unicode", clock=Clock())


class KeepNone:
    """A filter that keeps no fact."""

    name = "nothing"

    def __call__(self, questions: object, candidates: Any) -> list[Verdict]:
        return [Verdict(())] * len(candidates)
