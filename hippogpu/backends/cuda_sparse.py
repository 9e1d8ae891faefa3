"""The walk through cuSPARSE: the baseline that the fused step is compared with."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from hippogpu.backends.cuda_layout import Edges, expand
from hippogpu.backends.cuda_solve import CudaGraph, scale_of
from hippogpu.backends.steps import step_weights
from hippogpu.config import LinearSolver
from hippogpu.errors import UsageError


class SparseWalk:
    """Fixed numbers of steps, each a product of CuPy's csr_matrix and some passes over (n, B)."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._latest: tuple[Any, Any] | None = None

    def run(self, graph: CudaGraph, columns: Any, *, damping: float, steps: int, solver: LinearSolver) -> Any:
        """G·columns for (n, B) float32 columns, after that many steps; (n, B) float32."""
        matrix = self.matrix(graph)
        scale = scale_of(self._cupy, graph, damping)[:, None]
        x = before = columns
        for omega in step_weights(solver, damping, steps):
            walked = matrix @ (scale * x) + np.float32(1 - damping) * columns
            x, before = np.float32(omega) * (walked - before) + before, x
        return x

    def matrix(self, graph: CudaGraph) -> Any:
        """The graph as a csr_matrix; that of the latest graph is kept."""
        if self._latest is not None and self._latest[0] is graph.degrees:
            return self._latest[1]
        if len(graph.columns) >= 2**31:
            raise UsageError(
                f"CuPy's csr_matrix takes fewer than 2³¹ edges. Got {len(graph.columns)}: use the kernels."
            )
        xp, shape = self._cupy, (graph.nodes, graph.nodes)
        csr = expand(Edges(*(xp.asnumpy(array) for array in graph.edges)))
        sparse = importlib.import_module("cupyx.scipy.sparse")
        # Rows come in two runs and cuSPARSE's product asks for ascending columns: sorted in place, so in a copy.
        arrays = (xp.asarray(csr.weights), graph.columns.copy(), graph.indptr.astype(xp.int32))
        matrix = sparse.csr_matrix(arrays, shape=shape)
        matrix.sort_indices()
        self._latest = (graph.degrees, matrix)
        return matrix
