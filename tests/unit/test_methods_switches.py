"""The switches for the ablations of HippoRAG 2: each changes what it says, and what cannot go together is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from method_cases import BACKENDS, QUESTIONS, asked, loaded, method_rows, rank
from small_index import index_of, stating

from hippogpu.backends import power_steps
from hippogpu.config import BackendName, IndexConfig, SearchConfig
from hippogpu.errors import ConfigError
from hippogpu.graph import assemble
from hippogpu.methods import QuestionEntities
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.seeds import phrase_seeds, reset_vectors
from hippogpu.methods.starts import NO_FACT, NOT_LINKED, UNREAD
from hippogpu.methods.walks import fact_phrases
from hippogpu.types import NO_EDGES

NAMES = [["Ada Lovelace"], [], ["steam", "the engine"]]
SWITCHES: list[dict[str, Any]] = [
    {"synonyms": False},
    {"specificity": False},
    {"passage_nodes": False},
    {"passage_nodes": False, "synonyms": False},
    {"link": "phrase"},
    {"link": "entity"},
    {"link": "entity", "passage_nodes": False},
    {"damping": 0.2},
    {"passage_weight": 0.5},
    {"top_facts": 1},
]


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a synonym edge, and phrases that several passages mention."""
    root = tmp_path_factory.mktemp("alike") / "small.hippo"
    texts = ["engines|ran on|steam;London|is a|city", "engine|made by|Babbage", "Babbage|lived in|London", "no fact"]
    passages = [stating(f"p{number}", text) for number, text in enumerate(texts)]
    index_of(root, passages, config=IndexConfig(synonym_threshold=0.4))
    return root


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_changes_the_scores(alike: Path, switch: dict[str, Any]) -> None:
    here, question = loaded(alike), ["what did Babbage build in London?"]
    plain = method_rows(here, question, SearchConfig(method="hippo2"), [["London"]])
    assert not np.allclose(
        method_rows(here, question, SearchConfig(**{"method": "hippo2", **switch}), [["London"]]), plain
    )


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_scores_as_its_questions_alone(alike: Path, backend: BackendName, switch: dict[str, Any]) -> None:
    here, config = loaded(alike, backend), SearchConfig(**{"method": "hippo2", **switch})
    together = method_rows(here, QUESTIONS, config, NAMES)
    alone = [method_rows(here, [one], config, [names])[0] for one, names in zip(QUESTIONS, NAMES, strict=True)]
    assert together == pytest.approx(np.array(alone), abs=1e-6)


def test_without_synonyms_the_walk_is_that_of_the_graph_without_their_edges(alike: Path) -> None:
    here = loaded(alike)
    (found,) = rank(here, QUESTIONS[:1], SearchConfig(method="hippo2", synonyms=False, tolerance=1e-12))
    graph = here.backend.put_graph(assemble(here.snapshot.tables, NO_EDGES, "max"))
    facts, dense = here.snapshot.tables.facts, passage_scores(here, asked(QUESTIONS[:1]).queries)
    texts = list(facts.text)
    kept = [(texts.index(" ".join(fact[:3])), fact.score) for fact in found.facts]
    seeds = phrase_seeds(kept, facts, here.mention_counts, top_phrases=5)
    reset = reset_vectors([seeds], dense, passage_weight=0.05, nodes=graph.nodes)
    mass = here.backend.solve(graph, reset, damping=0.5, steps=power_steps(0.5, 1e-12))[0, :4]
    assert found.scores == pytest.approx(mass[found.rows], abs=1e-9)


def test_without_passage_nodes_and_walk_a_passage_scores_the_seeds_in_its_facts(alike: Path) -> None:
    here = loaded(alike)
    config = SearchConfig(method="hippo2", passage_nodes=False, damping=0.0)
    (found,) = rank(here, QUESTIONS[:1], config)
    weights = np.zeros(len(here.snapshot.tables.phrases))
    for seed in found.seeds:
        weights[list(here.snapshot.tables.phrases).index(seed.phrase)] = seed.weight
    expected = fact_phrases(here.snapshot.tables) @ (weights / weights.sum())
    assert method_rows(here, QUESTIONS[:1], config)[0] == pytest.approx(expected)


def test_the_phrases_of_a_passage_count_once_for_each_distinct_fact(root: Path) -> None:
    index_of(root, [stating("a", "steam|is|steam;steam|drives|engines;steam|drives|engines"), stating("b", "none")])
    tables = loaded(root).snapshot.tables
    counts = fact_phrases(tables).toarray()
    assert {phrase: counts[0, i] for i, phrase in enumerate(tables.phrases)} == {"engines": 1, "steam": 2}
    assert not counts[1].any()


def test_a_question_is_linked_to_the_phrases_nearest_to_it(made: Path) -> None:
    (found,) = rank(loaded(made), ["steam"], SearchConfig(method="hippo2", link="phrase", top_phrases=2))
    assert (found.seeds[0].phrase, found.seeds[0].weight, len(found.seeds), found.facts) == ("steam", 1.0, 2, ())


def test_a_question_is_linked_by_its_entities_and_says_so(made: Path) -> None:
    (found,) = rank(loaded(made), ["?"], SearchConfig(method="hippo2", link="entity"), [["Ada Lovelace", "steam"]])
    assert [seed.phrase for seed in found.seeds] == ["ada lovelace", "steam"]
    assert [entity.name for entity in found.entities] == ["Ada Lovelace", "steam"]
    assert (found.facts, found.fallback) == ((), None)


def test_only_the_heaviest_of_the_linked_phrases_are_seeds(made: Path) -> None:
    (found,) = rank(
        loaded(made), ["?"], SearchConfig(method="hippo2", link="entity", top_phrases=1), [["Ada Lovelace", "steam"]]
    )
    assert len(found.seeds) == 1


@pytest.mark.parametrize(
    ("read", "reason"),
    [(QuestionEntities(()), NOT_LINKED), (QuestionEntities((), "no reply"), UNREAD.format("no reply"))],
)
@pytest.mark.parametrize("solver", ["auto", "power"])
def test_a_question_without_entities_falls_back_alone(
    made: Path, solver: Any, read: QuestionEntities, reason: str
) -> None:
    config = SearchConfig(method="hippo2", link="entity", solver=solver)
    found = rank(loaded(made), asked(["?", "steam"], entities=[read, QuestionEntities(("steam",))]), config)
    assert [row.fallback for row in found] == [reason, None]


def test_without_passage_nodes_a_question_without_facts_ranks_by_dense_scores(root: Path) -> None:
    index_of(root, [stating("a", "one"), stating("b", "two")])
    (found,) = rank(loaded(root), ["one"], SearchConfig(method="hippo2", passage_nodes=False))
    assert (found.fallback, found.rows.tolist()) == (NO_FACT, [0, 1])


@pytest.mark.parametrize("switch", [{"synonyms": False}, {"passage_nodes": False}])
def test_diffused_vectors_do_not_serve_another_walk(made: Path, switch: dict[str, Any]) -> None:
    assert rank(loaded(made), QUESTIONS[:1], SearchConfig(method="hippo2"))[0].solver == "diffused"
    assert rank(loaded(made), QUESTIONS[:1], SearchConfig(**{"method": "hippo2", **switch}))[0].solver == "power"
    with pytest.raises(ConfigError, match="diffused vectors are of the whole graph"):
        SearchConfig(**{"method": "hippo2", **switch}, solver="diffused")


@pytest.mark.parametrize("switch", [{"specificity": False}, {"link": "phrase"}, {"link": "entity"}])
def test_diffused_vectors_serve_other_seeds_as_the_walk_does(made: Path, switch: dict[str, Any]) -> None:
    here = loaded(made)
    fast, slow = (
        rank(here, QUESTIONS, SearchConfig(**{"method": "hippo2", **switch}, solver=solver), [["steam"]] * 3)  # type: ignore[arg-type]
        for solver in ("diffused", "power")
    )
    assert [row.rows.tolist() for row in fast] == [row.rows.tolist() for row in slow]


@pytest.mark.parametrize("link", ["entity", "phrase"])
def test_a_filter_has_nothing_to_judge_where_no_fact_links(link: Any) -> None:
    with pytest.raises(ConfigError, match=f"judges facts, and link '{link}' takes none"):
        SearchConfig(method="hippo2", filter="gap", link=link)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gap_share", 1.5),
        ("bm25_k1", -1.0),
        ("bm25_b", 1.1),
        ("bm25_common", 0.0),
        ("certain", 2.0),
        ("fuse_depth", 0),
        ("fuse_constant", -1),
        ("link", "node"),
        ("filter_fails", "ask"),
        ("entities", "file"),
        ("synonyms", 1),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' of SearchConfig must be"):
        SearchConfig(**{name: value})
