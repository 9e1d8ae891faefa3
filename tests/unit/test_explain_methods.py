"""Explanations of the other methods and of the ablations: what walks, on which graph, and what does not walk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_index import PASSAGES, index_of, stating

from hippogpu import Explanation, Ranking, SearchConfig, Searcher
from hippogpu.config import MethodName
from hippogpu.methods.given_entities import GivenEntities

QUESTION = "what did Charles Babbage build for Ada?"
ENTITIES = GivenEntities({QUESTION: ["Charles Babbage", "Ada Lovelace"]})
SERVED = 1e-5


def explained(root: Path, config: SearchConfig) -> tuple[Ranking, dict[str, Explanation]]:
    searcher = Searcher.open(root, entity_reader=ENTITIES)
    (ranking,) = searcher.rank([QUESTION], k=9, config=config)
    (found,) = searcher.explain([ranking], k=9, config=config)
    return ranking, {one.passage.id: one for one in found}


def of(method: MethodName) -> SearchConfig:
    return SearchConfig(method=method, entities="given")


@pytest.mark.parametrize(
    "config",
    [
        *(
            of("hippo1"),
            of("seeds-only"),
            SearchConfig(method="hippo2", synonyms=False),
            SearchConfig(method="hippo2", passage_nodes=False),
        ),
        *(
            SearchConfig(method="hippo2", specificity=False),
            SearchConfig(method="hippo2", link="entity", entities="given"),
            SearchConfig(method="hippo2", link="phrase"),
        ),
        *(
            SearchConfig(method="hippo2", damping=0.8, solver="power"),
            SearchConfig(method="hippo2", passage_weight=1.0),
        ),
    ],
    ids=str,
)
def test_the_shares_of_every_walk_are_worked_out_to_the_score(made: Path, config: SearchConfig) -> None:
    searcher = Searcher.open(made, entity_reader=ENTITIES)
    (ranking,) = searcher.rank([QUESTION], k=9, config=config)
    # Asked for by name after a shorter ranking, the score is summed and not taken from the hit.
    (short,) = searcher.rank([QUESTION], k=1, config=config)
    scores = {hit.passage.id: hit.score for hit in ranking.hits}
    (found,) = searcher.explain([short], passages=sorted(scores), config=config)
    assert ranking.fallback is None
    for one in found:
        assert one.score == pytest.approx(scores[one.passage.id], abs=one.bound + SERVED)


def test_hippo1_knows_no_share_but_that_of_its_phrases(made: Path) -> None:
    _, found = explained(made, of("hippo1"))
    for one in found.values():
        assert one.own == 0
        assert one.others == pytest.approx(0, abs=one.bound + SERVED)
        assert one.bound <= max(0.001 * one.score, 1e-8)


def test_a_path_of_hippo1_ends_with_the_step_into_the_passage(made: Path) -> None:
    _, found = explained(made, of("hippo1"))
    for one in found.values():
        for path in one.paths:
            assert path.nodes[-1].name == one.passage.id
            assert {node.kind for node in path.nodes[:-1]} == {"phrase"}
            assert path.steps[-1].kind == "mention"
    # Two facts of p1 hold its subject.
    assert found["p1"].paths[0].steps[-1].weight == 2


def test_seeds_name_the_entities_that_were_linked_to_them(made: Path) -> None:
    _, found = explained(made, of("hippo1"))
    assert {seed.phrase: seed.entities for seed in found["p1"].seeds} == {
        "charles babbage": ("Charles Babbage",),
        "ada lovelace": ("Ada Lovelace",),
    }


def test_seeds_that_stay_where_they_are_have_paths_of_one_step(made: Path) -> None:
    _, found = explained(made, of("seeds-only"))
    assert {len(path.steps) for one in found.values() for path in one.paths} == {1}
    assert found["p3"].paths == ()


def test_without_synonyms_no_path_takes_one(root: Path) -> None:
    index_of(root, [stating("a", "Charles Babbage|built|it"), stating("b", "Babbage, Charles|knew|Ada")])
    kinds = []
    for synonyms in (True, False):
        _, found = explained(root, SearchConfig(method="hippo2", synonyms=synonyms))
        kinds.append({step.kind for path in found["b"].paths for step in path.steps})
    assert "synonym" in kinds[0]
    assert "synonym" not in kinds[1]


def test_bm25_names_the_words_that_are_shared_and_their_scores_sum_to_the_score(made: Path) -> None:
    ranking, found = explained(made, of("bm25"))
    for hit in ranking.hits:
        one = found[hit.passage.id]
        assert sum(word.score for word in one.words) == pytest.approx(hit.score, rel=1e-5)
    assert {word.word for word in found["p2"].words} == {"charles", "babbage"}
    assert np.all(np.diff([word.score for word in found["p1"].words]) <= 0)


@pytest.mark.parametrize("method", ["ensemble", "neighbours"])
def test_what_does_not_walk_says_that_there_is_no_more_than_the_score(made: Path, method: MethodName) -> None:
    ranking, found = explained(made, of(method))
    assert {one.note for one in found.values()} == {f"'{method}' does not tell what its scores came from"}
    assert [one.score for one in found.values()] == [hit.score for hit in ranking.hits]


def test_a_passage_without_facts_holds_no_phrase_and_so_no_mass(made: Path) -> None:
    _, found = explained(made, of("hippo1"))
    assert (found["p3"].score, found["p3"].paths) == (0, ())
    assert {seed.mass for seed in found["p3"].seeds} == {0}


def test_rankings_of_several_methods_are_explained_together(made: Path) -> None:
    searcher = Searcher.open(made, entity_reader=ENTITIES)
    rankings = [searcher.rank([QUESTION], config=of(method))[0] for method in ("dense", "hippo2", "hippo1")]
    notes = [{one.note for one in row} for row in searcher.explain(rankings, config=of("hippo2"))]
    assert notes == [{"ranked by dense similarity alone"}, {None}, {None}]
    assert len(PASSAGES) == len(searcher.explain(rankings)[0])
