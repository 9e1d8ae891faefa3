"""The kernels with their barriers and shuffles, on the host: they give what their functions give, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from host import DeviceKernels, HostKernels, diffused, host_graph
from test_host_push import question, ranked

from hippogpu.backends._kernels import ENTRIES, Kernels
from hippogpu.backends.cuda_topk import LEAST_CHUNK, best_of_rows
from hippogpu.testing.graphs import hub_graph, random_seeds, small_graph
from hippogpu.types import AnyFloats, Csr

GRAPHS = {"33 nodes": small_graph(33, seed=2), "a hub with half the edges": hub_graph(1100)}


@pytest.fixture(params=[False, True], ids=["in order", "backwards"])
def kernels(request: pytest.FixtureRequest) -> DeviceKernels:
    return DeviceKernels(backwards=request.param)


@pytest.mark.parametrize("batch", [1, 4, 7, 33, 36])
@pytest.mark.parametrize("name", GRAPHS)
def test_steps_are_those_of_the_functions(name: str, batch: int, kernels: DeviceKernels) -> None:
    columns = random_seeds(batch, GRAPHS[name].nodes).T.astype(np.float32)
    options = {"damping": 0.5, "steps": 3, "solver": "chebyshev"}
    found = diffused(GRAPHS[name], columns, **options, kernels=kernels)  # type: ignore[arg-type]
    assert np.array_equal(found, diffused(GRAPHS[name], columns, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [1, 23, 300])
def test_the_best_are_those_of_a_stable_sort(k: int, kernels: DeviceKernels) -> None:
    scores = np.random.default_rng(k).integers(40, size=(2, 3000)).astype(np.float32)
    best = best_of_rows(np, kernels, scores, k)
    assert np.array_equal(best.ids, np.argsort(-scores, axis=1, kind="stable")[:, :k])
    assert np.array_equal((best.low, best.high), (scores.min(axis=1), scores.max(axis=1)))


def test_chunks_of_a_long_row_are_merged(kernels: DeviceKernels) -> None:
    scores = np.random.default_rng(0).integers(99, size=(1, 2 * LEAST_CHUNK + 5)).astype(np.float32)
    best = best_of_rows(np, kernels, scores, 10)
    assert np.array_equal(best.ids, np.argsort(-scores, axis=1, kind="stable")[:, :10])


@pytest.mark.parametrize("name", GRAPHS)
def test_a_ranking_is_that_of_the_functions(name: str, kernels: DeviceKernels) -> None:
    part, seeds = question(GRAPHS[name], queries=3, seed=1)
    found = ranked(GRAPHS[name], part, seeds, 5, 1e-2, 1e-5, kernels=kernels)
    wanted = ranked(GRAPHS[name], part, seeds, 5, 1e-2, 1e-5)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def left_over(graph: Csr, columns: AnyFloats, kernels: Kernels, column_lanes: int) -> AnyFloats:
    put, (nodes, batch) = host_graph(graph), columns.shape
    left, inverse = np.empty(columns.shape), 1 / np.maximum(put.degrees, 1.0)
    grid = (-(-nodes // 8), -(-batch // column_lanes))
    kernels.launch(
        "residual_rows", grid, 256, *put.edges, columns, columns, inverse, np.float64(0.5), left, batch, 0, nodes,
        column_lanes, 32 // column_lanes,
    )  # fmt: skip
    return left


@pytest.mark.parametrize(("batch", "column_lanes"), [(1, 1), (7, 8), (33, 32)])
def test_the_residual_is_that_of_the_functions(batch: int, column_lanes: int, kernels: DeviceKernels) -> None:
    columns = np.ascontiguousarray(random_seeds(batch, 1100).T, np.float32)
    found, wanted = (left_over(hub_graph(1100), columns, each, column_lanes) for each in (kernels, HostKernels()))
    assert np.abs(found - wanted).max() <= 1e-15


@pytest.mark.parametrize("entry", [entry for entries in ENTRIES.values() for entry in entries])
def test_every_listed_kernel_can_be_run_here(entry: str) -> None:
    DeviceKernels().launch(entry, (0, 0), 0)
