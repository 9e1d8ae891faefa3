"""Explanations of the method hippo: its walks, and the evidence that its scores weigh."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_index import WIDTH, index_of, stating

from hippogpu import Explanation, Ranking, SearchConfig, Searcher
from hippogpu.cli.why import explanation_lines
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.methods.explaining.hippo import KeptBefore
from hippogpu.methods.given_entities import GivenEntities
from hippogpu.types import Evidence, KeptFact, Passage

QUESTION = "what did Charles Babbage build for Ada Lovelace?"
HIPPO = SearchConfig(method="hippo")
SERVED = 2e-5
SETTINGS = [
    *({}, {"focus": 2.0}, {"hubs": 0.2}, {"solver": "power"}, {"name_weight": 3.0}, {"names": False}),
    *({"lexical_passages": 0}, {"rerank": "none"}, {"rerank": "lead"}, {"synonyms": False, "solver": "power"}),
]


def explained(root: Path, config: SearchConfig = HIPPO) -> tuple[Ranking, dict[str, Explanation]]:
    searcher = Searcher.open(root)
    (ranking,) = searcher.rank([QUESTION], k=9, config=config)
    (found,) = searcher.explain([ranking], k=9, config=config)
    return ranking, {one.passage.id: one for one in found}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_shares_of_all_its_walks_sum_to_the_mass_that_the_method_has(made: Path, settings: dict[str, str]) -> None:
    ranking, found = explained(made, replace(HIPPO, **settings))  # type: ignore[arg-type]
    assert ranking.fallback is None
    for one in found.values():
        whole = one.own + sum(seed.mass for seed in one.seeds) + one.others
        assert whole == pytest.approx(one.mass, abs=one.bound + SERVED * one.mass)
        assert min(one.own, one.others, *(seed.mass for seed in one.seeds)) >= 0


@pytest.mark.parametrize("link", ["entity", "phrase"])
def test_links_without_facts_are_explained_as_they_were_ranked(made: Path, link: str) -> None:
    reader = GivenEntities({QUESTION: ["Charles Babbage", "Ada Lovelace"]})
    config = replace(HIPPO, link=link, entities="given", names=False)  # type: ignore[arg-type]
    searcher = Searcher.open(made, entity_reader=reader)
    (ranking,) = searcher.rank([QUESTION], k=9, config=config)
    (found,) = searcher.explain([ranking], k=9, config=config)
    assert [seed.phrase for seed in found[0].seeds] == [seed.phrase for seed in ranking.seeds] != []
    assert sum(seed.mass for one in found for seed in one.seeds) > 0


@pytest.mark.parametrize("settings", [{}, {"focus": 3.0}, {"solver": "power", "focus": 3.0}], ids=str)
def test_a_coarse_push_is_explained_and_no_share_is_negative(made: Path, settings: dict[str, str]) -> None:
    coarse = replace(HIPPO, push_epsilon=0.05, passage_weight=0.0, **settings)  # type: ignore[arg-type]
    _, found = explained(made, coarse)
    _, fine = explained(made, replace(coarse, push_epsilon=1e-8))
    for id_, one in found.items():
        parts = (one.own, one.others, *(seed.mass for seed in one.seeds))
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(one.mass, abs=one.bound + SERVED * one.mass)
        assert sum(parts) == pytest.approx(fine[id_].mass, rel=0.002, abs=SERVED)
    assert max(one.bound / one.mass for one in found.values() if one.mass) > 0.01


def test_without_reranking_the_order_is_that_of_the_masses(made: Path) -> None:
    ranking, found = explained(made, replace(HIPPO, rerank="none"))
    masses = [found[hit.passage.id].mass for hit in ranking.hits]
    assert masses == sorted(masses, reverse=True)
    assert {one.evidence for one in found.values()} == {()}


def test_the_weighed_evidence_is_the_score(made: Path) -> None:
    ranking, found = explained(made)
    for hit in ranking.hits:
        evidence = found[hit.passage.id].evidence
        assert sum(kind.value * kind.weight for kind in evidence) == pytest.approx(hit.score, abs=1e-5)
        assert [kind.kind for kind in evidence if kind.partner] in ([], ["pair"])


def test_a_phrase_that_a_fact_and_a_name_make_a_seed_is_told_of_once(made: Path) -> None:
    ranking, found = explained(made)
    seeds = [seed.phrase for seed in ranking.seeds]
    twice = [phrase for phrase in set(seeds) if seeds.count(phrase) > 1]
    assert twice
    for one in found.values():
        assert [seed.phrase for seed in one.seeds] == list(dict.fromkeys(seeds))


def test_edges_that_match_the_question_are_shown_with_the_weights_that_were_walked(root: Path) -> None:
    index_of(root, [stating("a", "Ida|wed|Otto"), stating("b", "Otto|met|Charles Babbage"), stating("c", "x|y|z")])
    weights = []
    for focus in (0.0, 4.0):
        _, found = explained(root, replace(HIPPO, focus=focus))
        weights.append({step.weight for one in found.values() for path in one.paths for step in path.steps})
    assert weights[0] == {1.0}
    assert weights[1] != {1.0}


def test_an_encoder_with_instructions_is_asked_for_both_vectors(root: Path) -> None:
    index_of(root, embedder=Instructed(WIDTH))
    searcher = Searcher.open(root, embedder=Instructed(WIDTH))
    rankings = searcher.rank([QUESTION], config=HIPPO)
    brought = [one.seeds for one in searcher.explain(rankings, config=HIPPO)[0]]
    assert all(sum(seed.mass for seed in seeds) > 0 for seeds in zip(*brought, strict=True))


class Instructed(HashingEmbedder):
    """An encoder that puts questions otherwise to facts and to passages."""

    query_to_fact = "Which fact says: "
    query_to_passage = "Which passage says: "


def test_a_ranking_with_other_seeds_is_refused(made: Path) -> None:
    searcher = Searcher.open(made)
    rankings = searcher.rank([QUESTION], config=HIPPO)
    with pytest.raises(UsageError, match="other seeds"):
        searcher.explain(rankings, config=replace(HIPPO, names=False, lead_facts=1))


@pytest.mark.parametrize("other", [{"pairs": False}, {"damping": 0.8}], ids=str)
def test_a_ranking_whose_evidence_was_weighed_otherwise_is_refused(made: Path, other: dict[str, float]) -> None:
    searcher = Searcher.open(made)
    rankings = searcher.rank([QUESTION], k=5, config=HIPPO)
    with pytest.raises(UsageError, match="the SearchConfig it was ranked with"):
        searcher.explain(rankings, config=replace(HIPPO, **other))  # type: ignore[arg-type]


def test_the_filter_that_recalls_keeps_what_was_kept_and_nothing_else() -> None:
    kept, other = KeptFact("a", "b", "c", 0.9), KeptFact("a", "b", "d", 0.8)
    (verdict,) = KeptBefore([kept])(["?"], [[other, kept._replace(score=1.0)]])
    assert (verdict.kept, verdict.failure) == ((1,), None)


def test_people_see_the_evidence_by_its_part_of_the_score() -> None:
    evidence = (Evidence("dense", 0.5, 2.0), Evidence("pair", 0.25, 8.0, "p7"), Evidence("names", -1.0, 0.5))
    one = Explanation(Passage("p1", "", "…"), 2.5, 0.01, own=0.01, evidence=evidence)
    assert explanation_lines(one) == [
        "   score 2.50 = pair +2.00 (with p7), dense +1.00, names -0.50",
        "   walked to it: its own text 100 %",
    ]
