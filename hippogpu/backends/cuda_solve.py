"""The walk on the device: a fixed number of fused steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hippogpu.backends._kernels import Kernels
from hippogpu.backends.cuda_layout import LONGEST_ROW
from hippogpu.backends.steps import step_weights
from hippogpu.config import LinearSolver

THREADS = 256
WARP = 32
# Below every float32 weight: a divisor that is never 0.
LEAST_DEGREE = 1e-300
# Edge × column products of a step below which launching a step is expected to take longer than the step: the loop is
# then recorded as a CUDA graph when it comes a second time. Reckoned from launch costs of about 10 µs, not measured.
RECORDED_BELOW = 2**24
# Recorded loops kept a graph; each holds four (n, B) arrays.
RECORDINGS = 2


class CudaGraph(NamedTuple):
    """A graph on the device: compressed rows, long rows in parts, and weighted degrees (n,) float64."""

    indptr: Any
    exact_before: Any
    columns: Any
    codes: Any
    exact: Any
    book: Any
    long_rows: Any
    part_ptr: Any
    part_row: Any
    part_first: Any
    part_last: Any
    degrees: Any

    @property
    def nodes(self) -> int:
        return len(self.degrees)

    @property
    def edges(self) -> tuple[Any, ...]:
        """The arrays of cuda_layout.Edges."""
        return self[:6]


class Loop(NamedTuple):
    """Arrays of one loop: y and spare, r (n, B), scale (n,) and the sums of the parts of long rows (parts, B)."""

    y: Any
    spare: Any
    r: Any
    scale: Any
    sums: Any


class Teams(NamedTuple):
    """How a warp is shared out: columns a thread, threads for the columns of a row, teams that share its edges."""

    width: int
    column_lanes: int
    edge_lanes: int

    def grid(self, groups: int, batch: int) -> tuple[int, int]:
        rows_a_block = THREADS // (self.column_lanes * self.edge_lanes)
        return -(-groups // rows_a_block), -(-batch // (self.column_lanes * self.width))


def teams_for(batch: int, mean_row: float) -> Teams:
    """16-byte loads when the batch allows; threads that the columns leave over share the edges of long enough rows."""
    width = 4 if batch % 4 == 0 else 1
    column_lanes = min(WARP, 1 << (-(-batch // width) - 1).bit_length())
    edge_lanes = 1
    while edge_lanes * 2 * column_lanes <= WARP and edge_lanes * 4 <= mean_row:
        edge_lanes *= 2
    return Teams(width, column_lanes, edge_lanes)


class Walk:
    """Fixed numbers of fused steps on one device, recorded as CUDA graphs where a loop comes again."""

    def __init__(self, xp: Any, kernels: Kernels) -> None:
        self._xp = xp
        self._kernels = kernels
        self._seen: dict[tuple[Any, ...], Recording] = {}
        # A recording's arrays serve one call at a time.
        self._lock = threading.Lock()

    def run(self, graph: CudaGraph, columns: Any, *, damping: float, steps: int, solver: LinearSolver) -> Any:
        """G·columns for (n, B) float32 columns, after that many steps; (n, B) float32."""
        batch = columns.shape[1]
        weights = step_weights(solver, damping, steps)
        if len(graph.columns) * batch >= RECORDED_BELOW:
            loop = self.loop(graph, batch, damping)
            fill(loop, columns, damping)
            return self.steps(graph, loop, weights)
        with self._lock:
            return self._recording(graph, batch, damping, steps, solver).run(self, columns, damping, weights)

    def _recording(self, graph: CudaGraph, batch: int, damping: float, steps: int, solver: LinearSolver) -> Recording:
        """The recording of such a loop, which becomes the latest; the oldest beyond RECORDINGS goes."""
        # The degrees' address stands for the graph: the recording holds the array, so no other takes its place.
        key = (graph.degrees.data.ptr, batch, damping, steps, solver)
        recording = self._seen.pop(key, None)
        if recording is None:
            recording = Recording(graph, self.loop(graph, batch, damping))
        self._seen[key] = recording
        while len(self._seen) > RECORDINGS:
            del self._seen[next(iter(self._seen))]
        return recording

    def loop(self, graph: CudaGraph, batch: int, damping: float) -> Loop:
        """Fresh arrays for a loop of that batch."""
        xp, shape = self._xp, (graph.nodes, batch)
        return Loop(
            xp.empty(shape, xp.float32),
            xp.empty(shape, xp.float32),
            xp.empty(shape, xp.float32),
            scale_of(xp, graph, damping),
            xp.empty((len(graph.part_row), batch), xp.float32),
        )

    def steps(self, graph: CudaGraph, loop: Loop, weights: list[float]) -> Any:
        """The loop's result, in one of its two arrays.

        The iteration runs on y = d·D⁻¹·x, so that a step is one pass; the last one is not scaled and gives x.
        """
        out, y = loop.spare, loop.y
        for number, omega in enumerate(weights):
            self.step(graph, loop, y, out, omega, scaled=number < len(weights) - 1)
            y, out = out, y
        return y

    def step(self, graph: CudaGraph, loop: Loop, y: Any, out: Any, omega: float, *, scaled: bool) -> None:
        """out = omega·(scale·(A·y + r)) + (1 − omega)·out, in one to three launches."""
        batch = y.shape[1]
        teams = teams_for(batch, len(graph.columns) / max(graph.nodes, 1))
        state = (y, loop.r, loop.scale, out, np.float32(omega), int(scaled), batch)
        shared, width = (teams.column_lanes, teams.edge_lanes), teams.width
        launch, nodes = self._kernels.launch, graph.nodes
        launch(
            f"step_rows_{width}", teams.grid(nodes, batch), THREADS, *graph.edges, *state, nodes, LONGEST_ROW, *shared
        )
        if not len(graph.long_rows):
            return
        # All threads that the columns leave over share the edges of a part, however short the mean row is.
        shared = (teams.column_lanes, WARP // teams.column_lanes)
        teams = Teams(width, *shared)
        parts, rows = len(graph.part_row), len(graph.long_rows)
        launch(
            f"step_parts_{width}", teams.grid(parts, batch), THREADS,
            *graph.edges, y, batch, graph.part_row, graph.part_first, graph.part_last, parts, loop.sums, *shared,
        )  # fmt: skip
        launch(
            f"step_long_{width}", teams.grid(rows, batch), THREADS,
            *state, graph.long_rows, graph.part_ptr, rows, loop.sums, *shared,
        )  # fmt: skip


class Recording:
    """One loop on its own arrays: launched step by step the first time, recorded the second, replayed from then on."""

    def __init__(self, graph: CudaGraph, loop: Loop) -> None:
        self._graph = graph
        self._loop = loop
        self._calls = 0
        self._recorded: Any = None
        self._result: Any = None

    def run(self, walk: Walk, columns: Any, damping: float, weights: list[float]) -> Any:
        """A copy of the result: the arrays are used again."""
        fill(self._loop, columns, damping)
        self._calls += 1
        if self._calls == 2:
            self._record(walk, weights)
        if self._recorded is not None:
            self._recorded.launch()
        else:
            self._result = walk.steps(self._graph, self._loop, weights)
        return self._result.copy()

    def _record(self, walk: Walk, weights: list[float]) -> None:
        """The first call compiled and loaded the kernels, which must not happen while a stream is recorded."""
        stream = walk._xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            self._result = walk.steps(self._graph, self._loop, weights)
            self._recorded = stream.end_capture()


def fill(loop: Loop, columns: Any, damping: float) -> None:
    """The first y = d·D⁻¹·s, and r = (1 − d)·s."""
    loop.y[...] = columns * loop.scale[:, None]
    loop.r[...] = columns * np.float32(1 - damping)


def scale_of(xp: Any, graph: CudaGraph, damping: float) -> Any:
    """d ÷ degree of every node, (n,) float32; 0 for a node without edges."""
    return xp.where(graph.degrees > 0, damping / xp.maximum(graph.degrees, LEAST_DEGREE), 0.0).astype(xp.float32)


def columns_at_once(nodes: int, budget_bytes: int) -> int:
    """Columns whose five float32 arrays (columns, y, spare, r, result) fit the budget: below 4, or a multiple of 4."""
    count = max(1, budget_bytes // max(20 * nodes, 1))
    return count // 4 * 4 if count > 4 else count


def blocks(count: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))
