"""The few verbs every backend has."""

from __future__ import annotations

from typing import Any, Protocol

from hippogpu.backends.values import Certified, Graph, PassagePart, Residual, SparseSeeds, TopK
from hippogpu.config import LinearSolver
from hippogpu.precision import Vectors
from hippogpu.types import AnyFloats, Csr, Ints


class Backend(Protocol):
    """Arrays in, arrays out; batches are rows. Every implementation keeps to the reference's results."""

    @property
    def name(self) -> str: ...

    def put(self, array: Vectors | AnyFloats) -> Any:
        """The array where this backend computes, in its float type, or, for rows in fewer bytes, as they are stored.

        Such rows are keys of scores and topk, which turn a block of them into floats at a time.
        """
        ...

    def get(self, array: Any) -> AnyFloats:
        """The array as a NumPy array."""
        ...

    def put_graph(self, graph: Csr) -> Graph:
        """A graph that passed Csr.check, with its degrees."""
        ...

    def scores(self, queries: Any, keys: Any) -> Any:
        """Inner products, (B, rows of keys)."""
        ...

    def select(self, scores: Any, k: int) -> Ints:
        """Numbers of the k greatest entries of each row, (B, min(k, columns)), descending, ties by lower number."""
        ...

    def topk(self, queries: Any, keys: Any, k: int) -> TopK:
        """The k nearest keys of each query by inner product, worked out in blocks under the byte budget."""
        ...

    def solve(self, graph: Graph, seeds: Any, *, damping: float, steps: int, solver: LinearSolver = "power") -> Any:
        """Personalised PageRank mass of every node, one row a query.

        seeds : (B, n), rows ≥ 0 summing to 1
        returns (B, n); rows sum to 1, with chebyshev within the solver's own error
        x = d·A·D⁻¹·x + (d·λ + 1 − d)·seeds, where λ is the mass at nodes without edges: it restarts at the seeds
        (PRPACK's rule), which only rescales: x = G·seeds ÷ (1 − d·m₀), m₀ the seed mass on such nodes.
        The error in L1 of power is at most 2·d^steps. HippoRAG 2, section 3.5.
        """
        ...

    def diffuse(
        self, graph: Graph, columns: Any, *, damping: float, steps: int, solver: LinearSolver = "chebyshev"
    ) -> Any:
        """G·columns for G = (1 − d)·(I − d·A·D⁻¹)⁻¹: the plain linear system, without the restart of isolated mass.

        columns : (n, c) of any sign
        returns (n, c)
        """
        ...

    def residual(self, graph: Graph, columns: Any, diffused: Any, *, damping: float) -> Residual:
        """How far `diffused` (n, c) is from G·columns, worked out in float64."""
        ...

    def push(self, graph: Graph, seeds: SparseSeeds, *, passages: int, damping: float, epsilon: float) -> AnyFloats:
        """What sparse seeds bring each passage (nodes 0…passages−1): G·seeds, (B, passages) as a NumPy array.

        Off by at most epsilon · max(degree, 1) · (sum of the row's seeds), and by roundings. Of the plain linear
        system, as diffuse: without the restart of isolated mass.
        """
        ...

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
        """The k passages (nodes 0…P−1) with the greatest G·s, s the passage seeds of `part` and sparse phrase seeds.

        Mass of the sparse seeds is pushed forward until every node keeps at most epsilon · degree. Queries whose k
        passages are not certain then are pushed on, down to least_epsilon at most.
        """
        ...
