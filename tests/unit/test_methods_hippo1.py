"""HippoRAG 1, its ablations and its ensemble, held to a plain float64 reading of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from method_cases import BACKENDS, QUESTIONS, asked, entities_of, loaded, method_rows, rank
from numpy.typing import NDArray
from small_index import WIDTH, index_of, open_index, stating

from hippogpu.config import BackendName, IndexConfig, MethodName, SearchConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.methods import Loaded, QuestionEntities
from hippogpu.methods.dense import passage_scores
from hippogpu.methods.hippo1 import NO_STATEMENT
from hippogpu.methods.starts import NOT_LINKED, UNREAD
from hippogpu.text import normalise
from hippogpu.types import UserEdge

# The walk of the methods stops at an L1 error of 1e-10 here, and the reference solves a dense system.
EXACT = SearchConfig(method="hippo1", tolerance=1e-10)
NAMES = ["Ada Lovelace", "engine"]
# The hashing encoder finds "engine" and "engines" less alike than a model does.
ALIKE = IndexConfig(synonym_threshold=0.4)


def naive_seeds(here: Loaded, names: Sequence[str]) -> NDArray[np.float64]:
    """1 ÷ (passages that mention it) for the phrase nearest to each name, sum 1."""
    tables, seeds = here.snapshot.tables, np.zeros(len(here.snapshot.tables.phrases))
    vectors = here.snapshot.phrase_vectors.astype(np.float64)
    for name in names:
        phrase = int(np.argmax(vectors @ HashingEmbedder(WIDTH).encode([normalise(name)])[0].astype(np.float64)))
        seeds[phrase] = 1 / sum(phrase in tables.mentions.row(p) for p in range(len(tables.mentions)))
    return seeds / seeds.sum()


def naive_adjacency(here: Loaded) -> NDArray[np.float64]:
    """max(number of statements, cosine) between two phrases."""
    tables, synonyms = here.snapshot.tables, here.snapshot.synonyms
    edges = np.zeros((len(tables.phrases),) * 2)
    for fact in tables.statements.values:
        subject, object_ = tables.facts.subject[fact], tables.facts.object[fact]
        edges[subject, object_] += subject != object_
        edges[object_, subject] += subject != object_
    for source, target, cosine in zip(*synonyms, strict=True):
        edges[source, target] = edges[target, source] = max(edges[source, target], cosine)
    return edges


def naive_walk(here: Loaded, seeds: NDArray[np.float64], damping: float = 0.5) -> NDArray[np.float64]:
    """x = d·A·D⁻¹·x + (d·λ + 1 − d)·r, λ the mass without edges."""
    edges = naive_adjacency(here)
    degrees = edges.sum(axis=0)
    step = np.divide(edges, degrees, out=np.zeros_like(edges), where=degrees > 0)
    step += np.outer(seeds, degrees == 0)
    mass: NDArray[np.float64] = np.linalg.solve(np.eye(len(seeds)) - damping * step, (1 - damping) * seeds)
    return mass


def naive_scores(here: Loaded, mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each phrase of a passage once for each distinct fact that holds it."""
    tables = here.snapshot.tables
    scores = np.zeros(len(tables.statements))
    for passage in range(len(scores)):
        for fact in set(tables.statements.row(passage).tolist()):
            scores[passage] += sum(mass[phrase] for phrase in {tables.facts.subject[fact], tables.facts.object[fact]})
    return scores


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with synonyms, a phrase in several passages, a fact again, a fact of a phrase with itself."""
    root = tmp_path_factory.mktemp("many") / "small.hippo"
    random = np.random.default_rng(3)
    words = ["Ada Lovelace", "ada lovelaces", "engine", "engines", "steam", "London", "notes", "Babbage", "loom"]
    texts = [
        ";".join("|".join([words[a], verb, words[b]]) for a, b in random.integers(len(words), size=(4, 2)))
        for verb in ("made", "saw", "read", "sold", "knew", "left", "lit")
    ]
    passages = [stating(f"p{number}", text) for number, text in enumerate([*texts, "steam|is|steam;steam|is|steam"])]
    index_of(root, passages, config=ALIKE)
    return root


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_are_those_of_a_plain_reading_of_the_paper(many: Path, backend: BackendName) -> None:
    here = loaded(many, backend)
    assert len(here.snapshot.synonyms.source)
    scores = method_rows(here, ["?"], EXACT, [NAMES])[0]
    exact = naive_scores(here, naive_walk(here, naive_seeds(here, NAMES)))
    assert scores == pytest.approx(exact, rel=1e-5, abs=1e-7)


def test_seeds_alone_are_scored_without_a_walk(many: Path) -> None:
    here = loaded(many)
    scores = method_rows(here, ["?"], SearchConfig(method="seeds-only"), [NAMES])[0]
    assert scores == pytest.approx(naive_scores(here, naive_seeds(here, NAMES)))


def test_neighbours_get_half_of_the_lightest_seed_from_each_seed_they_adjoin(many: Path) -> None:
    here = loaded(many)
    seeds = naive_seeds(here, NAMES)
    given = 0.5 * seeds[seeds > 0].min() * (naive_adjacency(here) > 0)[seeds > 0].sum(axis=0)
    scores = method_rows(here, ["?"], SearchConfig(method="neighbours"), [NAMES])[0]
    expected = naive_scores(here, seeds + given)
    assert scores / scores.sum() == pytest.approx(expected / expected.sum())


@pytest.mark.parametrize("method", ["hippo1", "seeds-only", "neighbours", "ensemble"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_scores_as_its_questions_alone(many: Path, method: MethodName, backend: BackendName) -> None:
    here, config = loaded(many, backend), SearchConfig(method=method)
    named = [NAMES, [], ["steam"], ["London", "loom", "London"], ["nothing like it"]]
    questions = [f"question {number}" for number in range(len(named))]
    together = method_rows(here, questions, config, named)
    alone = [method_rows(here, [text], config, [names])[0] for text, names in zip(questions, named, strict=True)]
    assert together == pytest.approx(np.array(alone), abs=1e-6)


def test_entities_at_one_phrase_do_not_add_up(many: Path) -> None:
    here = loaded(many)
    one, twice = (method_rows(here, ["?"], EXACT, [names])[0] for names in (["steam"], ["steam", "STEAM!"]))
    assert twice == pytest.approx(one)


def test_without_specificity_every_linked_phrase_weighs_the_same(many: Path) -> None:
    config = SearchConfig(method="hippo1", specificity=False)
    (found,) = rank(loaded(many), ["?"], config, [NAMES])
    assert {seed.weight for seed in found.seeds} == {1.0}
    (found,) = rank(loaded(many), ["?"], EXACT, [NAMES])
    assert {seed.weight for seed in found.seeds} != {1.0}


def test_without_synonyms_the_walk_does_not_pass_from_one_to_the_other(root: Path) -> None:
    index_of(root, [stating("a", "engines|ran on|steam"), stating("b", "engine|made by|Babbage")], config=ALIKE)
    here = loaded(root)
    assert len(here.snapshot.synonyms.source)
    with_them, without = (
        method_rows(here, ["?"], SearchConfig(method="hippo1", synonyms=synonyms), [["steam"]])[0]
        for synonyms in (True, False)
    )
    assert (with_them[1] > 0, without[1], without[0] > 0) == (True, 0, True)


def test_each_entity_is_told_with_its_phrase_and_their_cosine(made: Path) -> None:
    (found,) = rank(loaded(made), ["?"], EXACT, [["Ada LOVELACE!", "steam"]])
    assert [(entity.name, entity.phrase) for entity in found.entities] == [
        ("Ada LOVELACE!", "ada lovelace"),
        ("steam", "steam"),
    ]
    assert [entity.similarity for entity in found.entities] == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("read", "reason"),
    [(QuestionEntities(()), NOT_LINKED), (QuestionEntities((), "no reply"), UNREAD.format("no reply"))],
)
@pytest.mark.parametrize("method", ["hippo1", "seeds-only", "neighbours", "ensemble"])
def test_without_entities_a_question_is_ranked_by_dense_scores_and_says_why(
    made: Path, method: MethodName, read: QuestionEntities, reason: str
) -> None:
    here, question = loaded(made), asked(QUESTIONS[:1], entities=[read])
    (found,) = rank(here, question, SearchConfig(method=method))
    dense = passage_scores(here, question.queries)[0]
    assert found.rows.tolist() == np.argsort(-dense, kind="stable").tolist()
    assert (found.fallback, found.solver, found.entities) == (reason, None, ())


def test_names_that_are_nothing_link_to_nothing(made: Path) -> None:
    (found,) = rank(loaded(made), ["?"], EXACT, [["!!!", " "]])
    assert found.fallback == NOT_LINKED


def test_a_phrase_that_no_fact_holds_leaves_the_dense_ranking(root: Path) -> None:
    with open_index(root) as index:
        index.add([stating("a", "one"), stating("b", "two")])
        index.add_edges([UserEdge(("a",), ("Tag",), "tag")])
        index.commit()
    (found,) = rank(loaded(root), ["?"], EXACT, [["tag"]])
    assert found.fallback == NO_STATEMENT


@pytest.mark.parametrize("method", ["hippo1", "seeds-only", "neighbours"])
def test_a_phrase_that_no_passage_mentions_may_be_linked(root: Path, method: MethodName) -> None:
    with open_index(root) as index:
        index.add([stating("a", "steam|drives|engines"), stating("b", "two")])
        index.add_edges([UserEdge((), ("Steam", "Power of coal"), "heading", 0.5)])
        index.commit()
    (found,) = rank(loaded(root), ["?"], SearchConfig(method=method), [["power of coal"]])
    assert [seed.weight for seed in found.seeds] == [1.0]
    assert found.fallback == (NO_STATEMENT if method == "seeds-only" else None)


def test_an_index_without_phrases_ranks_by_dense_scores(root: Path) -> None:
    index_of(root, [stating("a", "one"), stating("b", "two")])
    (found,) = rank(loaded(root), ["?"], EXACT, [["one"]])
    assert found.fallback == NOT_LINKED


def test_the_diffused_solver_is_refused_with_the_way_out(made: Path) -> None:
    with pytest.raises(UsageError, match=r"walks over phrases.*--solver auto"):
        rank(loaded(made), ["?"], SearchConfig(method="hippo1", solver="diffused"), [NAMES])


def test_the_ensemble_is_the_walk_where_every_link_is_certain(made: Path) -> None:
    here = loaded(made)
    scores = {
        name: method_rows(here, ["steam?"], SearchConfig(method=name), [["steam"]])[0]
        for name in ("hippo1", "ensemble")
    }
    low, high = scores["hippo1"].min(), scores["hippo1"].max()
    assert scores["ensemble"] == pytest.approx((scores["hippo1"] - low) / (high - low))


def test_the_ensemble_is_the_mean_with_dense_where_one_link_is_not(made: Path) -> None:
    here, names = loaded(made), [["steam", "an entity that is no phrase"]]
    (found,) = rank(here, ["steam?"], SearchConfig(method="ensemble"), names)
    assert min(entity.similarity for entity in found.entities) <= 0.9
    walk = method_rows(here, ["steam?"], SearchConfig(method="hippo1"), names)[0]
    dense = passage_scores(here, asked(["steam?"]).queries)[0]
    expected = ((walk - walk.min()) / (walk.max() - walk.min()) + dense) / 2
    assert method_rows(here, ["steam?"], SearchConfig(method="ensemble"), names)[0] == pytest.approx(expected)


def test_the_threshold_of_the_ensemble_is_a_setting(made: Path) -> None:
    here, names = loaded(made), [["steam", "an entity that is no phrase"]]
    unsure, sure = (
        method_rows(here, ["steam?"], SearchConfig(method="ensemble", certain=certain), names)[0]
        for certain in (0.9, -1.0)
    )
    assert unsure.tolist() != sure.tolist()


def test_a_link_just_at_the_threshold_of_the_ensemble_is_uncertain(made: Path) -> None:
    here, names = loaded(made), [["steam", "an entity that is no phrase"]]
    (told,) = rank(here, ["steam?"], SearchConfig(method="ensemble"), names)
    least = min(entity.similarity for entity in told.entities)
    at, above, below = (
        method_rows(here, ["steam?"], SearchConfig(method="ensemble", certain=certain), names)[0].tolist()
        for certain in (least, np.nextafter(least, 1.0), np.nextafter(least, -1.0))
    )
    assert (at == above, at == below) == (True, False)


def test_entities_are_encoded_without_an_instruction_and_as_phrases_are(made: Path) -> None:
    vectors = entities_of([["Ada LOVELACE!"]]).vectors
    assert vectors[0] == pytest.approx(HashingEmbedder(WIDTH).encode(["ada lovelace"])[0])
