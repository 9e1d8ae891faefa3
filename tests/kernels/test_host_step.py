"""The fused step, compiled for the host, against the float64 reference."""

from __future__ import annotations

import numpy as np
import pytest
from host import Address, HostKernels, diffused, host_graph

from hippogpu.backends.cuda_layout import LONGEST_ROW
from hippogpu.backends.cuda_solve import Teams, teams_for
from hippogpu.backends.reference import ReferenceBackend
from hippogpu.config import LinearSolver
from hippogpu.testing.graphs import hub_graph, pair_graph, random_seeds, small_graph
from hippogpu.types import AnyFloats, Csr

# A node's mass after some dozen float32 steps is off by a few units in the last place of the column's largest.
MASS_TOLERANCE = 1e-6
GRAPHS = {
    "one node": small_graph(1),
    "33 nodes": small_graph(33, seed=2),
    "1000 nodes": small_graph(1000, seed=3),
    "long rows": small_graph(2000, seed=4, edges_a_node=40.0),
    "a hub with half the edges": hub_graph(3000),
    "a pair apart": pair_graph(33),
    "no edges": small_graph(31, isolated=1.0),
}


def reference(graph: Csr, columns: AnyFloats, *, damping: float, steps: int, solver: LinearSolver) -> AnyFloats:
    backend = ReferenceBackend()
    return backend.diffuse(backend.put_graph(graph), columns, damping=damping, steps=steps, solver=solver)


@pytest.mark.parametrize("solver", ["power", "chebyshev"])
@pytest.mark.parametrize("batch", [1, 4, 7, 32, 33])
@pytest.mark.parametrize("name", GRAPHS)
def test_steps_are_those_of_the_reference(name: str, batch: int, solver: LinearSolver) -> None:
    graph = GRAPHS[name]
    columns = random_seeds(batch, graph.nodes, seed=batch).T.astype(np.float32)
    wanted = reference(graph, columns, damping=0.5, steps=12, solver=solver)
    found = diffused(graph, columns, damping=0.5, steps=12, solver=solver)
    assert np.abs(found - wanted).max() <= MASS_TOLERANCE


def test_one_step_is_that_of_the_reference() -> None:
    graph, columns = small_graph(33, seed=5), random_seeds(7, 33).T.astype(np.float32)
    wanted = reference(graph, columns, damping=0.85, steps=1, solver="power")
    assert np.abs(diffused(graph, columns, damping=0.85, steps=1, solver="power") - wanted).max() <= MASS_TOLERANCE


def test_signed_columns_are_diffused() -> None:
    graph, columns = small_graph(1000, seed=6), np.random.default_rng(6).standard_normal((1000, 33)).astype(np.float32)
    wanted = reference(graph, columns, damping=0.5, steps=14, solver="chebyshev")
    found = diffused(graph, columns, damping=0.5, steps=14, solver="chebyshev")
    assert np.abs(found - wanted).max() <= MASS_TOLERANCE * np.abs(wanted).max()


@pytest.mark.parametrize("batch", [4, 7])
def test_a_hub_goes_through_parts(batch: int) -> None:
    graph = host_graph(hub_graph(3000))
    assert (len(graph.long_rows), len(graph.part_row)) == (1, -(-2997 // LONGEST_ROW))
    launched: list[str] = []
    kernels = HostKernels()
    kernels.launch = lambda entry, *rest: launched.append(entry)  # type: ignore[method-assign]
    step_once(kernels, graph, batch)
    width = 4 if batch % 4 == 0 else 1
    assert launched == [f"step_rows_{width}", f"step_parts_{width}", f"step_long_{width}"]


def step_once(kernels: HostKernels, graph: object, batch: int) -> None:
    from hippogpu.backends.cuda_solve import Walk

    walk = Walk(np, kernels)
    loop = walk.loop(graph, batch, 0.5)  # type: ignore[arg-type]
    walk.step(graph, loop, loop.y, loop.spare, 1.0, scaled=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 4, 7])
def test_offsets_beyond_two_to_the_31_are_64_bit(batch: int) -> None:
    """Every array is shifted by more than 2³¹ entries under a pointer that lies as far before it."""
    graph, columns = small_graph(33, seed=7), np.ascontiguousarray(random_seeds(batch, 33).T, np.float32)
    put, kernels = host_graph(graph), HostKernels()
    edges, exacts, nodes = 2**31 + 7, 2**32 + 3, 2**31 - 64
    out, ones = np.empty_like(columns), np.ones(33, np.float32)
    shifted = (
        put.indptr + edges, put.exact_before + exacts, Address(address(np.int32(nodes) + put.columns) - 4 * edges),
        Address(put.codes.ctypes.data - (edges - exacts)), Address(put.exact.ctypes.data - 4 * exacts), put.book,
    )  # fmt: skip
    far = Address(columns.ctypes.data - 4 * nodes * batch)
    teams = teams_for(batch, 3.0)
    kernels.launch(
        f"step_rows_{teams.width}", teams.grid(33, batch), 256, *shifted,
        far, columns, ones, out, np.float32(1), 1, batch, 33, LONGEST_ROW, *teams[1:],
    )  # fmt: skip
    dense = np.zeros((33, 33))
    dense[np.repeat(np.arange(33), np.diff(graph.indptr)), graph.indices] = graph.weights
    assert np.abs(out - (dense @ columns + columns)).max() <= 1e-5


KEPT: list[np.ndarray] = []


def address(array: np.ndarray) -> int:
    """Where an array lies that must live until the test is over."""
    KEPT.append(array.astype(np.int32))
    return KEPT[-1].ctypes.data


def test_teams_fill_a_warp_and_no_more() -> None:
    for batch in range(1, 200):
        for mean_row in (0.0, 3.0, 15.0, 1000.0):
            teams = teams_for(batch, mean_row)
            assert teams.column_lanes * teams.edge_lanes <= 32
            assert (teams.column_lanes & (teams.column_lanes - 1), batch % teams.width) == (0, 0)


def test_the_grid_covers_every_row_and_column() -> None:
    for teams in (Teams(1, 32, 1), Teams(4, 8, 4), Teams(1, 1, 32)):
        groups, columns = teams.grid(1001, 77)
        assert groups * (256 // (teams.column_lanes * teams.edge_lanes)) >= 1001
        assert columns * teams.column_lanes * teams.width >= 77


@pytest.mark.parametrize("batch", [1, 7])
def test_the_residual_is_that_of_the_reference(batch: int) -> None:
    graph, columns = hub_graph(1000), np.ascontiguousarray(random_seeds(batch, 1000).T, np.float32)
    x = diffused(graph, columns, damping=0.5, steps=3, solver="power").astype(np.float32)
    put, left = host_graph(graph), np.empty((1000, batch))
    inverse = np.where(put.degrees > 0, 1 / np.maximum(put.degrees, 1e-300), 0.0)
    HostKernels().launch(
        "residual_rows", (1, 1), 256, *put.edges, columns, x, inverse, np.float64(0.5), left, batch, 0, 1000, 8, 4
    )
    backend = ReferenceBackend()
    wanted = backend.residual(backend.put_graph(graph), columns, x, damping=0.5).l1
    assert np.abs(left.sum(axis=0) - wanted).max() <= 1e-12
