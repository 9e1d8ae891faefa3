"""Every backend keeps to the reference."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from hippogpu.backends import Backend, Certified, Graph, PassagePart, SparseSeeds
from hippogpu.backends.cpu import CpuBackend
from hippogpu.backends.cuda import CudaBackend
from hippogpu.backends.cugraph import CugraphBackend
from hippogpu.backends.devices import find_device
from hippogpu.backends.reference import ReferenceBackend
from hippogpu.config import LinearSolver
from hippogpu.testing import backends as contract
from hippogpu.testing import diffusion
from hippogpu.testing.graphs import hub_graph, pair_graph, random_seeds, small_graph
from hippogpu.types import AnyFloats, Csr, Ints

MAKERS: dict[str, contract.MakeBackend] = {
    "reference": ReferenceBackend,
    "cpu": CpuBackend,
    "cuda": CudaBackend,
    "cugraph": CugraphBackend,
}
NO_GPU = find_device().reason if find_device().device is None else None
NO_CUGRAPH = None if find_spec("pylibcugraph") else "pylibcugraph is not installed (extra cugraph13, or cugraph12)"
MISSING = {"cuda": NO_GPU, "cugraph": NO_GPU or NO_CUGRAPH}
BUDGET_BYTES = 2**20


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.skipif(MISSING.get(name) is not None, reason=str(MISSING.get(name))))
        for name in MAKERS
    ]
)
def make(request: pytest.FixtureRequest) -> contract.MakeBackend:
    return MAKERS[request.param]


@pytest.fixture
def backend(make: contract.MakeBackend) -> Backend:
    return make(BUDGET_BYTES)


def test_public_methods_have_the_signatures_of_the_seam(backend: Backend) -> None:
    contract.check_signatures(backend)


@pytest.mark.parametrize("batch", contract.BATCHES)
@pytest.mark.parametrize("nodes", contract.SIZES)
def test_solve_gives_the_mass_of_the_reference(backend: Backend, nodes: int, batch: int) -> None:
    contract.check_solve(backend, small_graph(nodes, seed=nodes), batch=batch)


@pytest.mark.parametrize("nodes", [31, 1000])
def test_solve_agrees_where_one_row_has_half_the_edges(backend: Backend, nodes: int) -> None:
    contract.check_solve(backend, hub_graph(nodes), batch=7)


def test_solve_agrees_where_a_pair_stands_apart(backend: Backend) -> None:
    contract.check_solve(backend, pair_graph(33), batch=7)


def test_mass_does_not_reach_another_component(backend: Backend) -> None:
    seeds = np.zeros((1, 33))
    seeds[0, 30] = 1.0
    mass = contract.solved(backend, pair_graph(33), seeds)
    assert np.flatnonzero(mass[0]).tolist() == [30, 31]


@pytest.mark.parametrize("nodes", contract.SIZES)
def test_without_edges_the_mass_stays_at_the_seeds(backend: Backend, nodes: int) -> None:
    seeds = random_seeds(7, nodes)
    mass = contract.solved(backend, small_graph(nodes, isolated=1.0), seeds)
    assert np.abs(mass - seeds).max() <= contract.MASS_TOLERANCE


def test_one_step_is_that_of_the_reference(backend: Backend) -> None:
    contract.check_one_step(backend)


def test_a_batch_gives_what_its_rows_give_alone(backend: Backend) -> None:
    contract.check_batch_is_its_rows(backend)


def test_solving_changes_neither_graph_nor_seeds(backend: Backend) -> None:
    graph, seeds = backend.put_graph(small_graph(33)), backend.put(random_seeds(2, 33))
    before = [np.array(backend.get(array)) for array in (*graph, seeds)]
    backend.solve(graph, seeds, damping=0.5, steps=3)
    assert all(np.array_equal(a, backend.get(b)) for a, b in zip(before, (*graph, seeds), strict=True))


@pytest.mark.parametrize("graph", contract.graphs_to_solve())
def test_both_solvers_come_to_the_masses_of_the_reference(backend: Backend, graph: Csr) -> None:
    diffusion.check_solvers(backend, graph, batch=7)


@pytest.mark.parametrize("columns", [1, 7, 33, 100])
@pytest.mark.parametrize("graph", contract.graphs_to_solve())
def test_signed_columns_are_diffused_as_by_the_reference(backend: Backend, graph: Csr, columns: int) -> None:
    diffusion.check_diffuse(backend, graph, columns=columns)


def test_the_residual_of_a_wrong_answer_is_the_references(backend: Backend) -> None:
    diffusion.check_residual(backend, small_graph(301))


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("graph", contract.graphs_to_solve())
def test_certified_rankings_keep_their_bounds(backend: Backend, graph: Csr, batch: int) -> None:
    diffusion.check_rank_diffused(backend, graph, passages=graph.nodes // 2, batch=batch)


def test_a_certificate_counts_the_error_of_what_is_stored(backend: Backend) -> None:
    diffusion.check_stored_error(backend, small_graph(1000), passages=300)


def test_without_phrase_seeds_the_passage_part_ranks_alone(backend: Backend) -> None:
    diffusion.check_no_seeds(backend, small_graph(1000), passages=300)


@pytest.mark.parametrize("batch", contract.BATCHES)
@pytest.mark.parametrize("keys", contract.SIZES)
def test_topk_gives_the_best_keys_and_the_extremes(backend: Backend, keys: int, batch: int) -> None:
    contract.check_topk(backend, keys=keys, batch=batch)


def test_equal_scores_are_selected_in_ascending_order(backend: Backend) -> None:
    contract.check_select_ties(backend)


def test_equal_keys_of_different_blocks_come_in_ascending_order(make: contract.MakeBackend) -> None:
    contract.check_topk_ties_across_blocks(make)


def test_keys_that_are_all_alike_have_a_zero_range(backend: Backend) -> None:
    contract.check_equal_scores(backend)


@pytest.mark.parametrize("name", contract.refused_calls())
def test_a_call_that_means_nothing_is_refused_in_the_words_of_the_reference(backend: Backend, name: str) -> None:
    call = contract.refused_calls()[name]
    wanted = contract.refusal(ReferenceBackend(), call)
    assert wanted is not None
    assert contract.refusal(backend, call) == wanted


def test_the_whole_contract_passes_in_one_call(make: contract.MakeBackend) -> None:
    contract.check_backend(make)


class WrongTies(ReferenceBackend):
    def select(self, scores: AnyFloats, k: int) -> Ints:
        return super().select(scores[:, ::-1], k)


class NoRestart(ReferenceBackend):
    def solve(
        self, graph: object, seeds: AnyFloats, *, damping: float, steps: int, solver: LinearSolver = "power"
    ) -> AnyFloats:
        return seeds


class Overconfident(ReferenceBackend):
    def rank_diffused(
        self,
        graph: Graph,
        part: PassagePart,
        seeds: SparseSeeds,
        k: int,
        *,
        damping: float,
        epsilon: float,
        least_epsilon: float,
    ) -> Certified:
        rough = super().rank_diffused(graph, part, seeds, k, damping=damping, epsilon=1.0, least_epsilon=1.0)
        return rough._replace(certified=np.ones(len(rough.ids), bool), bounds=0 * rough.bounds)


@pytest.mark.parametrize("broken", [WrongTies, NoRestart, Overconfident])
def test_the_contract_notices_a_backend_that_breaks_it(broken: type[ReferenceBackend]) -> None:
    with pytest.raises(AssertionError):
        contract.check_backend(broken)
