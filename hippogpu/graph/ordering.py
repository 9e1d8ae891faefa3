"""An order of the nodes in which neighbours lie side by side, so that many steps over a graph find them in a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from hippogpu.types import Csr, Floats, Ints, Longs

# Rounds of label propagation; hardly a node changes its label after the third.
_ROUNDS = 5


def neighbours_together(graph: Csr) -> Longs:
    """The nodes in their new order, (n,): community by community, as a breadth-first walk meets them.

    Communities are those of label propagation (Raghavan, Albert and Kumara, 2007), weighted, node by node in the
    graph's order; equal votes go to the label that is met first. So the order is a function of the graph alone. About
    0.12 s a million non-zeros on one core, and 33 bytes a node while it works.
    """
    walked, labels = breadth_first(graph.indptr, graph.indices), communities(graph)
    met = np.full(graph.nodes, graph.nodes)
    np.minimum.at(met, labels[walked], np.arange(graph.nodes))
    order: Longs = walked[np.argsort(met[labels[walked]], kind="stable")]
    return order


def communities(graph: Csr) -> Ints:
    """A label of each node, (n,) int32: that which most of its neighbours' weight bears."""
    labels = np.arange(graph.nodes, dtype=np.int32)
    for _ in range(_ROUNDS):
        _propagate(graph.indptr, graph.indices, graph.weights, labels)
    return labels


def renumbered(graph: Csr, order: Longs) -> Csr:
    """The same graph with node order[i] as node i; the columns of a row ascend."""
    ranks = np.empty(graph.nodes, np.int32)
    ranks[order] = np.arange(graph.nodes, dtype=np.int32)
    indptr = np.zeros(graph.nodes + 1, np.int64)
    np.cumsum(np.diff(graph.indptr)[order], out=indptr[1:])
    indices, weights = np.empty(graph.nonzeros, np.int32), np.empty(graph.nonzeros, np.float32)
    _fill(graph.indptr, graph.indices, graph.weights, order, ranks, indptr, indices, weights)
    return Csr(indptr, indices, weights)


if TYPE_CHECKING:

    def breadth_first(indptr: Longs, indices: Ints) -> Longs: ...

    def _propagate(indptr: Longs, indices: Ints, weights: Floats, labels: Ints) -> None: ...

    def _fill(
        indptr: Longs,
        indices: Ints,
        weights: Floats,
        order: Longs,
        ranks: Ints,
        starts: Longs,
        columns: Ints,
        values: Floats,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def breadth_first(indptr, indices):
        """All nodes, (n,): each connected part from its first node on, neighbours in the order of the row."""
        n = len(indptr) - 1
        queue, seen, count, head = np.empty(n, np.int64), np.zeros(n, np.bool_), 0, 0
        for start in range(n):
            if seen[start]:
                continue
            seen[start] = True
            queue[count] = start
            count += 1
            while head < count:
                node = queue[head]
                head += 1
                for j in range(indptr[node], indptr[node + 1]):
                    other = indices[j]
                    if not seen[other]:
                        seen[other] = True
                        queue[count] = other
                        count += 1
        return queue

    @numba.njit(nogil=True, cache=True)
    def _propagate(indptr, indices, weights, labels):
        """One round, in place."""
        votes = np.zeros(len(labels), np.float32)
        for node in range(len(labels)):
            first, last = indptr[node], indptr[node + 1]
            best, most = labels[node], np.float32(0)
            for j in range(first, last):
                label = labels[indices[j]]
                votes[label] += weights[j]
                if votes[label] > most:
                    best, most = label, votes[label]
            for j in range(first, last):
                votes[labels[indices[j]]] = 0
            labels[node] = best

    @numba.njit(parallel=True, nogil=True, cache=True)
    def _fill(indptr, indices, weights, order, ranks, starts, columns, values):
        for row in numba.prange(len(order)):
            first, last, here = indptr[order[row]], indptr[order[row] + 1], starts[row]
            numbers = ranks[indices[first:last]]
            sorting = np.argsort(numbers)
            for place in range(last - first):
                columns[here + place] = numbers[sorting[place]]
                values[here + place] = weights[first + sorting[place]]
