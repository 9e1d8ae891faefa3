"""Edges that a question weighs: the walk is that of the graph which is weighed for it, worked out by a dense solve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hippo_cases import ASKED, HIPPO, every_edge, matrix, rows_of, spread, walked, worked
from method_cases import asked, loaded, rank
from small_index import index_of, stating

from hippogpu.config import SearchConfig
from hippogpu.methods import Loaded
from hippogpu.methods.diffused import sparse_seeds
from hippogpu.methods.hippo.focus import fact_factors, facts_behind, focused_masses
from hippogpu.methods.hippo.hubs import walked_edges
from hippogpu.types import AnyFloats

FOCUSED = replace(HIPPO, focus=2.0, push_epsilon=1e-12)
# A push to 1e-12 of the degrees, and cosines in float32 against ones in float64.
CLOSE = 1e-7


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return loaded(every_edge(tmp_path_factory.mktemp("focus") / "small.hippo"), "cpu")


def facts_by_pair(here: Loaded) -> dict[tuple[int, int], set[int]]:
    """The facts between each two nodes, in both orders, as the text of focused_masses says."""
    tables, passages = here.snapshot.tables, len(here.snapshot.passages)
    found: dict[tuple[int, int], set[int]] = {}
    for fact in range(len(tables.facts)):
        ends = [passages + int(tables.facts.subject[fact]), passages + int(tables.facts.object[fact])]
        stating = [row for row in range(passages) if fact in tables.statements.row(row)]
        for one, other in [(ends[0], ends[1]), *((row, end) for row in stating for end in ends)]:
            if one != other:
                found.setdefault((one, other), set()).add(fact)
                found.setdefault((other, one), set()).add(fact)
    return found


def weighed(here: Loaded, question: int, config: SearchConfig) -> AnyFloats:
    """The dense weights that the question gives all edges."""
    cosines = asked(ASKED).queries.to_facts[question].astype(float) @ here.snapshot.fact_vectors.astype(float).T
    dense = matrix(walked_edges(here, config))
    for (one, other), facts in facts_by_pair(here).items():
        dense[one, other] *= np.exp(config.focus * (max(cosines[fact] for fact in facts) - cosines.mean()))
    return dense


@pytest.mark.parametrize(
    "settings",
    [{}, {"focus": 8.0}, {"damping": 0.85}, {"damping": 0.0}, {"synonyms": False}, {"hubs": 0.3}, {"focus": 40.0}],
    ids=str,
)
def test_the_mass_is_that_of_the_graph_that_is_weighed_for_the_question(
    here: Loaded, settings: dict[str, float]
) -> None:
    config = replace(FOCUSED, **settings)  # type: ignore[arg-type]
    found, first = worked(here, config), len(here.snapshot.passages)
    for question in range(len(ASKED)):
        seeds = spread(found.starts.facts[question], here.graph.nodes, first=first)
        wanted = walked(weighed(here, question, config), seeds, config.damping)[:first]
        assert found.masses.facts[question] == pytest.approx(wanted, abs=CLOSE)


def test_every_edge_knows_its_facts_and_those_of_synonyms_and_of_ones_own_have_none(here: Loaded) -> None:
    graph, behind, wanted = here.snapshot.graph, facts_behind(here, HIPPO), facts_by_pair(here)
    ends = zip(rows_of(graph).tolist(), graph.indices.tolist(), strict=True)
    for entry, pair in enumerate(ends):
        assert set(behind.facts[behind.indptr[entry] : behind.indptr[entry + 1]].tolist()) == wanted.get(pair, set())
    assert behind.indptr[-1] == len(behind.facts)
    assert {0, 1, 3} <= set(np.diff(behind.indptr).tolist())


def test_a_question_weighs_the_walk_of_its_facts_alone(here: Loaded) -> None:
    plain, focused = worked(here, replace(FOCUSED, focus=0.0)).masses, worked(here, FOCUSED).masses
    assert not np.allclose(plain.facts, focused.facts, rtol=1e-3)
    assert (focused.names == plain.names).all()
    assert (focused.passages == plain.passages).all()


def test_a_focus_of_almost_nothing_walks_as_none(here: Loaded) -> None:
    plain, focused = (worked(here, replace(FOCUSED, focus=focus)).masses.facts for focus in (0.0, 1e-12))
    assert focused == pytest.approx(plain, abs=CLOSE)


@pytest.mark.parametrize("focus", [100.0, 1e6, 1e300])
def test_the_greatest_focus_keeps_all_mass_and_no_more(here: Loaded, focus: float) -> None:
    config = replace(FOCUSED, focus=focus, damping=0.0)
    moved = worked(here, replace(config, damping=0.5)).masses.facts
    assert np.isfinite(moved).all()
    given = [sum(seeds.values()) for seeds in worked(here, config).starts.facts]
    assert (moved.sum(axis=1) <= np.array(given) + CLOSE).all()
    assert (moved >= 0).all()


def test_factors_are_cut_off_at_e_to_the_64() -> None:
    assert fact_factors(np.array([-1.0, 1.0]), 1000.0) == pytest.approx(np.exp([-64.0, 64.0]))
    assert fact_factors(np.array([-1.0, 1.0]), 2.0) == pytest.approx(np.exp([-2.0, 2.0]))
    assert fact_factors(np.empty(0), 2.0).shape == (0,)


def test_a_batch_walks_as_its_questions_alone_and_leaves_nothing_to_the_next(here: Loaded) -> None:
    config, questions = replace(FOCUSED, push_epsilon=1e-2), ASKED[:2] * 4
    together = worked(here, config, questions).masses.facts
    alone = np.concatenate([worked(here, config, [question]).masses.facts for question in questions])
    assert together == pytest.approx(alone, abs=CLOSE)


def test_a_coarse_push_is_off_by_its_bound_at_most(here: Loaded) -> None:
    config, first = replace(FOCUSED, push_epsilon=1e-2), len(here.snapshot.passages)
    coarse, fine = worked(here, config).masses.facts, worked(here, FOCUSED).masses.facts
    sums = np.array([sum(seeds.values()) for seeds in worked(here, config).starts.facts])
    assert (np.abs(coarse - fine).sum(axis=1) <= 1e-2 * here.graph.degrees.sum() * sums).all()
    assert np.abs(coarse - fine).max() > 1e-5
    assert coarse.shape == (len(ASKED), first)


def test_no_seeds_bring_no_mass(here: Loaded) -> None:
    vectors = asked(ASKED[:2]).queries.to_facts
    assert not focused_masses(here, vectors, sparse_seeds([{}, {}], first=0), FOCUSED).any()


def test_a_focus_in_an_index_without_facts_changes_nothing(root: Path) -> None:
    index_of(root, [stating("a", "one"), stating("b", "two")])
    plain, focused = (rank(loaded(root), ["one"], replace(HIPPO, focus=focus)) for focus in (0.0, 3.0))
    assert plain[0].rows.tolist() == focused[0].rows.tolist()
