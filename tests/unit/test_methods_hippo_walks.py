"""The walks of hippo: three kinds of mass, by pushes or all together; damped hubs; hippo2 as a special case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hippo_cases import ASKED, HIPPO, every_edge, matrix, rows_of, spread, walked, worked
from method_cases import BACKENDS, asked, loaded, method_rows, rank

from hippogpu.backends.reference import row_sums
from hippogpu.config import BackendName, SearchConfig
from hippogpu.errors import UsageError
from hippogpu.graph import assemble
from hippogpu.methods import Loaded
from hippogpu.methods.hippo.hubs import damp_hubs
from hippogpu.methods.hippo.masses import solver_of
from hippogpu.methods.loaded import min_max
from hippogpu.testing.graphs import hub_graph, small_graph
from hippogpu.types import NO_EDGES, AnyFloats

# Sums in float32, iterated to 1e-9.
ROUNDING = 2e-6
GRAPH_ALONE = replace(HIPPO, rerank="none", names=False, lexical_passages=0, lead_facts=5)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_edge(tmp_path_factory.mktemp("walks") / "small.hippo")


@pytest.fixture(scope="module", params=BACKENDS)
def here(root: Path, request: pytest.FixtureRequest) -> Loaded:
    return loaded(root, request.param)


def seeds_of(here: Loaded, question: int, config: SearchConfig) -> dict[str, AnyFloats]:
    """The seeds of each kind, (n,) each, as docs/hippo.md gives them."""
    found, nodes, first = worked(here, config), here.graph.nodes, len(here.snapshot.passages)
    products = np.asarray(asked(ASKED).queries.to_passages, float) @ here.snapshot.passage_vectors.astype(float).T
    dense = min_max(products, products.min(axis=1), products.max(axis=1))[question]
    weight = config.passage_weight / (1 + config.lexical_weight * bool(config.lexical_passages))
    lexical = spread(found.starts.lexical[question], nodes)
    lexical[:first] += weight * dense
    facts, names = (spread(row[question], nodes, first=first) for row in (found.starts.facts, found.starts.names))
    return {"facts": facts, "names": names, "passages": lexical}


@pytest.mark.parametrize("solver", ["diffused", "power", "chebyshev"])
@pytest.mark.parametrize("epsilon", [1e-3, 1e-7])
def test_each_mass_is_that_of_its_seeds_within_the_stated_bound(here: Loaded, solver: Any, epsilon: float) -> None:
    config = replace(HIPPO, solver=solver, push_epsilon=epsilon, tolerance=1e-9)
    found, first = worked(here, config).masses, len(here.snapshot.passages)
    degrees = np.maximum(row_sums(here.snapshot.graph, here.snapshot.graph.weights)[:first], 1.0)
    for question in range(len(ASKED)):
        for kind, seeds in seeds_of(here, question, config).items():
            wanted = walked(matrix(here.snapshot.graph), seeds, config.damping)[:first]
            off = np.abs(getattr(found, kind)[question] - wanted)
            assert (off <= epsilon * degrees * seeds.sum() + ROUNDING).all()


@pytest.mark.parametrize("solver", ["power", "chebyshev"])
def test_solvers_order_the_passages_as_pushes_do(here: Loaded, solver: Any) -> None:
    fast, slow = (rank(here, ASKED, replace(HIPPO, solver=one)) for one in ("diffused", solver))
    assert [row.rows.tolist() for row in fast] == [row.rows.tolist() for row in slow]


def weights_of(here: Loaded, config: SearchConfig) -> AnyFloats:
    """The dense weights of the edges that the settings leave, with damped hubs."""
    tables, rule = here.snapshot.tables, here.snapshot.manifest.config.edge_rule
    weights = matrix(here.snapshot.graph if config.synonyms else assemble(tables, NO_EDGES, rule))
    degrees = np.maximum(weights.sum(axis=0), 1e-9)
    damped: AnyFloats = weights / np.outer(degrees, degrees) ** config.hubs
    return damped


@pytest.mark.parametrize("settings", [{"synonyms": False}, {"hubs": 0.4}, {"hubs": 0.4, "synonyms": False}], ids=str)
def test_other_edges_are_walked_where_the_settings_say_so(here: Loaded, settings: dict[str, Any]) -> None:
    config, first = replace(HIPPO, tolerance=1e-9, **settings), len(here.snapshot.passages)
    found, weights = worked(here, config).masses, weights_of(here, config)
    assert not np.array_equal(weights, matrix(here.snapshot.graph))
    for kind, seeds in seeds_of(here, 0, config).items():
        wanted = walked(weights, seeds, config.damping)[:first]
        assert getattr(found, kind)[0] == pytest.approx(wanted, abs=ROUNDING)


def test_the_order_of_the_graph_adds_names_by_their_weight(here: Loaded) -> None:
    config = replace(HIPPO, name_weight=0.5, rerank="none")
    masses = worked(here, config).masses
    scores = method_rows(here, ASKED, config)
    facts, names, passages = (mass.astype(np.float64) for mass in masses)
    assert scores == pytest.approx(facts + 0.5 * names + passages, abs=1e-12)
    assert masses.names.any()


@pytest.mark.parametrize("solver", ["diffused", "power"])
def test_the_graph_alone_ranks_as_hippo2(here: Loaded, solver: Any) -> None:
    ours = rank(here, ASKED, replace(GRAPH_ALONE, solver=solver))
    theirs = rank(here, ASKED, SearchConfig(method="hippo2", solver=solver, epsilon=1e-8))
    assert [row.rows.tolist() for row in ours] == [row.rows.tolist() for row in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.scores / one.scores.sum() == pytest.approx(other.scores / other.scores.sum(), abs=1e-5)


def test_passage_seeds_share_their_weight_with_those_by_words(here: Loaded) -> None:
    config = replace(HIPPO, lexical_weight=0.5)
    lexical = worked(here, config).starts.lexical[0]
    assert max(lexical.values()) == pytest.approx(config.passage_weight * 0.5 / 1.5)
    assert worked(here, replace(config, lexical_weight=0.0)).starts.lexical == [{}] * len(ASKED)
    few = worked(here, replace(config, lexical_passages=1)).starts.lexical
    assert [len(row) for row in few] == [1, 1, 0, 1]


@pytest.mark.parametrize("make", [small_graph, hub_graph])
@pytest.mark.parametrize("exponent", [0.1, 0.5, 1.0])
def test_an_edge_is_divided_by_the_degrees_of_both_ends_to_that_power(make: Any, exponent: float) -> None:
    graph = make(33, seed=3)
    damped = damp_hubs(graph, exponent).check()
    degrees, rows = matrix(graph).sum(axis=1), rows_of(graph)
    assert damped.weights == pytest.approx(graph.weights / (degrees[rows] * degrees[graph.indices]) ** exponent)
    assert (damped.indptr, damped.indices) == (graph.indptr, graph.indices)


def test_a_graph_without_edges_has_no_hubs() -> None:
    assert damp_hubs(small_graph(1), 0.5).nonzeros == 0


@pytest.mark.parametrize("exponent", [40.0, 1e6])
def test_hubs_that_are_damped_to_nothing_are_refused(exponent: float) -> None:
    with pytest.raises(UsageError, match=r"some edges weigh nothing\. Got hubs = "):
        damp_hubs(hub_graph(33), exponent)


def test_diffused_vectors_do_not_serve_damped_hubs(root: Path) -> None:
    here, config = loaded(root), replace(HIPPO, hubs=0.2)
    assert (solver_of(here, config), solver_of(here, HIPPO)) == ("power", "diffused")
    assert solver_of(here, replace(config, solver="chebyshev")) == "chebyshev"
    with pytest.raises(UsageError, match="with hubs, leave the solver to 'auto'"):
        rank(here, ASKED, replace(config, solver="diffused"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_ranking_tells_which_solver_served(root: Path, backend: BackendName) -> None:
    for solver in ("diffused", "power", "chebyshev"):
        assert rank(loaded(root, backend), ASKED[:1], replace(HIPPO, solver=solver))[0].solver == solver
