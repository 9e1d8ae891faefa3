"""Searcher.explain on small indexes: shares, paths in words, and what cannot be explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_index import PASSAGES, WIDTH, index_of, open_index, stating
from test_explain_carried import dense_walk

from hippogpu import PROFILES, Explanation, MassPath, Ranking, RunConfig, SearchConfig, Searcher, UserEdge
from hippogpu.config import BackendName, SolverName
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.methods.explaining.naming import step_between
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import AnyFloats, Csr, PathNode, PathStep, StatedFact

QUESTION = "who wrote notes?"
HIPPO2 = SearchConfig(method="hippo2")
SOLVERS: tuple[SolverName, ...] = ("power", "chebyshev", "diffused")
BACKENDS: tuple[BackendName, ...] = ("cpu", "reference")
# Served scores are of float32 products, and short by what the solver leaves.
SERVED = 2e-5


def explained(
    root: Path,
    question: str = QUESTION,
    *,
    config: SearchConfig = SearchConfig(method="hippo2"),  # noqa: B008
    backend: BackendName = "cpu",
) -> tuple[Ranking, dict[str, Explanation]]:
    """The ranking of all passages, and their explanations by id."""
    searcher = Searcher.open(root, run=RunConfig(backend=backend))
    (ranking,) = searcher.rank([question], k=9, config=config)
    (found,) = searcher.explain([ranking], k=9, config=config)
    return ranking, {one.passage.id: one for one in found}


def true_shares(root: Path, ranking: Ranking) -> tuple[AnyFloats, dict[str, AnyFloats]]:
    """From a dense solve: what each passage's own seed and each phrase seed give to the passages, as scores."""
    snapshot = load_snapshot(root, current_manifest(root))
    cosines = HashingEmbedder(WIDTH).encode([ranking.query])[0].astype(float) @ snapshot.passage_vectors.T
    seeds = np.zeros(snapshot.graph.nodes)
    count = len(cosines)
    seeds[:count] = 0.05 * (cosines - cosines.min()) / (cosines.max() - cosines.min())
    place = {seed.phrase: count + list(snapshot.tables.phrases).index(seed.phrase) for seed in ranking.seeds}
    for seed in ranking.seeds:
        seeds[place[seed.phrase]] = seed.weight
    lone = np.diff(snapshot.graph.indptr) == 0
    given = dense_walk(snapshot.graph) * seeds / (seeds.sum() - 0.5 * seeds[lone].sum())
    return np.diag(given)[:count], {phrase: given[:count, node] for phrase, node in place.items()}


def names(path: MassPath) -> list[str]:
    return [node.name for node in path.nodes]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_own_and_seed_masses_are_those_of_a_dense_solve(made: Path, solver: SolverName, backend: BackendName) -> None:
    ranking, found = explained(made, config=SearchConfig(method="hippo2", solver=solver), backend=backend)
    own, seeds = true_shares(made, ranking)
    for row, id_ in enumerate(("p0", "p1", "p2", "p3", "p4")):
        one = found[id_]
        assert one.own == pytest.approx(own[row], abs=one.bound + SERVED)
        for seed in one.seeds:
            assert seed.mass == pytest.approx(seeds[seed.phrase][row], abs=one.bound + SERVED)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_shares_sum_to_the_score_of_the_hit(made: Path, solver: SolverName) -> None:
    ranking, found = explained(made, config=SearchConfig(method="hippo2", solver=solver))
    for hit in ranking.hits:
        one = found[hit.passage.id]
        assert one.own + sum(seed.mass for seed in one.seeds) + one.others == pytest.approx(hit.score)
        assert min(one.own, one.others, *(seed.mass for seed in one.seeds)) >= -SERVED
        assert one.bound <= 0.001 * hit.score


def test_a_certified_push_that_stopped_early_is_explained_and_no_share_is_negative(made: Path) -> None:
    config = replace(HIPPO2, epsilon=0.05, least_epsilon=0.05, passage_weight=0.0)
    _, found = explained(made, config=config)
    for one in found.values():
        parts = (one.own, one.others, *(seed.mass for seed in one.seeds))
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(one.mass, abs=one.bound + SERVED)
    assert max(one.bound / one.mass for one in found.values() if one.mass) > 0.01


def test_a_passage_without_facts_has_its_own_mass_alone_and_no_path(made: Path) -> None:
    lone = explained(made, "Nothing is stated")[1]["p3"]
    assert lone.score is not None
    assert lone.own == pytest.approx(lone.score, abs=SERVED)
    assert lone.paths == ()


def test_a_seed_that_the_passage_mentions_comes_straight_from_it(made: Path) -> None:
    _, found = explained(made)
    first = found["p1"].paths[0]
    assert first.nodes == (PathNode("phrase", "notes"), PathNode("passage", "p1"))
    assert [step.kind for step in first.steps] == ["mention"]


def test_a_fact_on_a_path_comes_with_its_triples_and_who_states_them(root: Path) -> None:
    index_of(
        root, [stating("a", "Ida|wed|Otto;Otto|husband of|Ida"), stating("b", "Ida|wed|Otto"), stating("c", "x|y|z")]
    )
    searcher = Searcher.open(root)
    (ranking,) = searcher.rank(["Ida"], k=3)
    steps = [step for one in searcher.explain([ranking])[0] for path in one.paths for step in path.steps]
    facts = next(step.facts for step in steps if step.kind == "fact")
    assert facts == (
        StatedFact("ida", "wed", "otto", ("a", "b")),
        StatedFact("otto", "husband of", "ida", ("a",)),
    )


def test_seeds_name_the_kept_facts_they_came_from(made: Path) -> None:
    ranking, found = explained(made)
    for seed in found["p1"].seeds:
        assert seed.facts
        assert all(seed.phrase in (fact.subject, fact.object) and fact in ranking.facts for fact in seed.facts)


def test_the_mass_of_a_path_is_what_the_formula_says(made: Path) -> None:
    """That of phrase → passage is seed · (1 − d) · d · 1 ÷ degree, where all walks carry seed · G[passage, phrase]."""
    ranking, found = explained(made)
    graph, phrases = stored_graph(made)
    node = 5 + phrases.index("notes")
    degree = graph.weights[graph.indptr[node] : graph.indptr[node + 1]].sum()
    whole = true_shares(made, ranking)[1]["notes"][1]
    share = 0.25 / degree / dense_walk(graph)[1, node]
    assert found["p1"].paths[0].mass == pytest.approx(whole * share, rel=1e-5)


def stored_graph(root: Path) -> tuple[Csr, list[str]]:
    snapshot = load_snapshot(root, current_manifest(root))
    return snapshot.graph, list(snapshot.tables.phrases)


def test_synonyms_on_a_path_tell_their_cosine(root: Path) -> None:
    index_of(root, [stating("a", "Charles Babbage|built|it"), stating("b", "Babbage, Charles|knew|Ada")])
    snapshot = load_snapshot(root, current_manifest(root))
    _, found = explained(root, "Charles Babbage built it")
    steps = [step for path in found["b"].paths for step in path.steps if step.kind == "synonym"]
    assert steps[0].cosine == pytest.approx(float(snapshot.synonyms.weight[0]))


def test_edges_of_ones_own_are_told_apart_from_mentions(root: Path) -> None:
    with open_index(root) as index:
        index.add(PASSAGES)
        index.add_edges([UserEdge(("p1",), ("a tag",), "tag", 2.0), UserEdge(("p3",), ("a tag",), "tag", 2.0)])
        index.commit()
    _, found = explained(root)
    steps = found["p3"].paths[0].steps
    assert [(step.kind, step.weight) for step in steps][-1] == ("own", 2.0)


def test_a_phrase_that_a_user_joins_to_another_is_told_from_one_that_is_its_other_name(root: Path) -> None:
    with open_index(root) as index:
        index.add(PASSAGES)
        index.add_edges([UserEdge(phrases=("steam", "notes"), kind="link", weight=3.0)])
        index.commit()
    snapshot = load_snapshot(root, current_manifest(root))
    phrases = list(snapshot.tables.phrases)
    steam, notes, ada = (5 + phrases.index(phrase) for phrase in ("steam", "notes", "ada lovelace"))
    assert step_between(snapshot, steam, notes, weight=3.0) == PathStep("own", 3.0)
    assert step_between(snapshot, steam, ada, weight=0.9) == PathStep("name", 0.9)


def test_other_scripts_are_explained_like_english(root: Path) -> None:
    index_of(root, [stating("α", "Ελένη|γράφει|ποιήματα"), stating("東", "東京|位于|日本"), stating("c", "x|y|z")])
    _, found = explained(root, "东京在哪里 東京 位于 日本")
    assert {node.name for node in found["東"].paths[0].nodes} & {"東京", "日本"}


def test_the_parallel_rule_is_explained_by_its_own_weights(root: Path) -> None:
    index_of(root, config=PROFILES["oracle"])
    ranking, found = explained(root)
    own, _ = true_shares(root, ranking)
    assert [found[f"p{row}"].own for row in range(5)] == pytest.approx(own.tolist(), abs=SERVED)


def test_passages_that_are_no_hits_are_explained_by_name(made: Path) -> None:
    searcher = Searcher.open(made)
    (ranking,) = searcher.rank([QUESTION], k=1, config=HIPPO2)
    (found,) = searcher.explain([ranking], passages=["p4", "p0"], config=HIPPO2)
    (whole,) = searcher.rank([QUESTION], k=5, config=HIPPO2)
    scores = {hit.passage.id: hit.score for hit in whole.hits}
    assert [one.passage.id for one in found] == ["p4", "p0"]
    for one in found:
        assert one.score == pytest.approx(scores[one.passage.id], abs=one.bound + SERVED)


def test_a_batch_is_explained_as_its_rankings_alone(made: Path) -> None:
    searcher = Searcher.open(made)
    rankings = searcher.rank([QUESTION, "steam", "what did Charles Babbage build?"], k=3, config=HIPPO2)
    alone = [searcher.explain([ranking], config=HIPPO2)[0] for ranking in rankings]
    for together, apart in zip(searcher.explain(rankings, config=HIPPO2), alone, strict=True):
        assert [one.own for one in together] == pytest.approx([one.own for one in apart], abs=SERVED)
        assert [list(map(names, one.paths)) for one in together] == [list(map(names, one.paths)) for one in apart]


def test_dense_and_fallback_rankings_say_that_similarity_alone_ranked_them(made: Path) -> None:
    config = SearchConfig(method="dense")
    ranking, found = explained(made, config=config)
    assert {one.note for one in found.values()} == {"ranked by dense similarity alone"}
    assert [found[hit.passage.id].score for hit in ranking.hits] == [hit.score for hit in ranking.hits]
    searcher = Searcher.open(made)
    fallen = replace(ranking, method="hippo2", fallback="no fact was kept: ranked by dense similarity alone")
    assert {one.note for one in searcher.explain([fallen])[0]} == {fallen.fallback}


def test_an_empty_index_has_nothing_to_explain(root: Path) -> None:
    with open_index(root) as index:
        index.add(PASSAGES)
        index.commit()
        index.delete([passage.id for passage in PASSAGES])
        index.commit()
    assert explained(root)[1] == {}


def test_what_cannot_be_explained_is_refused(made: Path) -> None:
    searcher = Searcher.open(made)
    rankings = searcher.rank([QUESTION], config=HIPPO2)
    with pytest.raises(UsageError, match="no passage 'p9'"):
        searcher.explain(rankings, passages=["p9"])
    with pytest.raises(UsageError, match="of generation 7"):
        searcher.explain([replace(rankings[0], generation=7)])
    with pytest.raises(UsageError, match="SearchConfig it was ranked with"):
        searcher.explain(rankings, config=SearchConfig(method="hippo2", damping=0.8))
    with pytest.raises(UsageError, match="at least 1"):
        searcher.explain(rankings, k=0)
