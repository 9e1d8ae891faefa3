"""Forward push on the CPU: mass of few seeds moves until what is left everywhere is small against the degree."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from hippogpu.backends.cpu_step import prefetch
from hippogpu.backends.values import Graph
from hippogpu.types import AnyFloats, Bools, Floats, Ints, Longs

# Nodes of the queue, and edges, whose memory is asked for so much in advance. At 692,000 edges a query this took the
# push from 34 to 23 ms on one core.
_NODES_AHEAD, _ROWS_AHEAD, _EDGES_AHEAD = 4, 2, 12
# Large residuals go first, so that small ones gather before they move: epsilon comes down from this much above.
_COARSE, _FALL = 64.0, 4.0


class Walk(NamedTuple):
    """What a push reads of a graph; damping is the share that moves on."""

    indptr: Longs
    indices: Ints
    weights: Floats
    damping: float


class Left(NamedTuple):
    """What a push works on, for one query; all zeros between queries but for the degrees.

    left (n, 2) float64: residual and degree of a node, side by side, as both are needed at once
    seen (n,) whether a node is among touched (n,) · queue (n,) · mass (P,) float64, that of passages alone
    """

    left: AnyFloats
    seen: Bools
    touched: Ints
    queue: Ints
    mass: AnyFloats


def left_for(graph: Graph, passages: int) -> Left:
    """Fresh working memory: 25 bytes a node and 8 a passage."""
    n = graph.nodes
    left = np.zeros((n, 2))
    left[:, 1] = graph.degrees
    return Left(left, np.zeros(n, bool), np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(passages))


if TYPE_CHECKING:

    def sow(nodes: Ints, weights: AnyFloats, damping: float, at: Left) -> int: ...

    def push(walk: Walk, at: Left, count: int, epsilon: float) -> tuple[int, int]: ...

    def clear(at: Left, count: int) -> None: ...

    def push_in_stages(walk: Walk, at: Left, count: int, epsilon: float) -> tuple[int, int]: ...

    def push_row(walk: Walk, nodes: Ints, weights: AnyFloats, at: Left, epsilon: float, brought: AnyFloats) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def sow(nodes, weights, damping, at):
        """Puts seeds in place; how many nodes are touched. A node without edges keeps its share at once."""
        count = 0
        for place in range(len(nodes)):
            node = nodes[place]
            if at.left[node, 1] > 0.0:
                at.left[node, 0] += weights[place]
            elif node < len(at.mass):
                at.mass[node] += (1 - damping) * weights[place]
            if not at.seen[node]:
                at.seen[node] = True
                at.touched[count] = node
                count += 1
        return count

    @numba.njit(nogil=True, cache=True)
    def push(walk, at, count, epsilon):
        """Pushes until every residual is at most epsilon · degree; how many nodes are touched, and edges were now."""
        left, seen, touched, queue = at.left, at.seen, at.touched, at.queue
        n, passages = len(seen), len(at.mass)
        head, waiting, edges = 0, 0, 0
        for place in range(count):
            node = touched[place]
            if left[node, 0] > epsilon * left[node, 1]:
                queue[waiting] = node
                waiting += 1
        while waiting:
            node = queue[head]
            if waiting > _NODES_AHEAD:
                _ask_for_next(walk, left, queue, head)
            head = head + 1 if head + 1 < n else 0
            waiting -= 1
            held = left[node, 0]
            left[node, 0] = 0.0
            if node < passages:
                at.mass[node] += (1 - walk.damping) * held
            passed = walk.damping * held / left[node, 1]
            first, last = walk.indptr[node], walk.indptr[node + 1]
            for j in range(first, last):
                prefetch(left, 2 * np.int64(walk.indices[min(j + _EDGES_AHEAD, last - 1)]))
                other = walk.indices[j]
                before = left[other, 0]
                after = before + passed * walk.weights[j]
                left[other, 0] = after
                limit = epsilon * left[other, 1]
                if after > limit and before <= limit:
                    place = head + waiting
                    queue[place if place < n else place - n] = other
                    waiting += 1
                if before == 0.0 and not seen[other]:
                    seen[other] = True
                    touched[count] = other
                    count += 1
            edges += last - first
        return count, edges

    @numba.njit(nogil=True, cache=True)
    def push_in_stages(walk, at, count, epsilon):
        """push, down to epsilon from far above it; how many nodes are touched, and edges were now."""
        edges, coarse = 0, epsilon * _COARSE
        while coarse >= epsilon:
            count, more = push(walk, at, count, coarse)
            edges += more
            coarse /= _FALL
        return count, edges

    @numba.njit(nogil=True, cache=True)
    def push_row(walk, nodes, weights, at, epsilon, brought):
        """Writes what one query's seeds bring each passage; residuals keep at most epsilon · degree · their sum."""
        whole = weights.sum()
        if whole <= 0.0:
            return
        count = sow(nodes, weights, walk.damping, at)
        count, _ = push_in_stages(walk, at, count, epsilon * whole)
        for place in range(count):
            node = at.touched[place]
            if node < len(brought):
                brought[node] = at.mass[node] + (1 - walk.damping) * at.left[node, 0]
        clear(at, count)

    @numba.njit(nogil=True, cache=True)
    def _ask_for_next(walk, left, queue, head):
        """The rows of the next nodes are scattered over memory: they are asked for before they are needed."""
        n = len(queue)
        far, near = head + _NODES_AHEAD, head + _ROWS_AHEAD
        prefetch(walk.indptr, queue[far if far < n else far - n])
        node = queue[near if near < n else near - n]
        start = walk.indptr[node]
        for edge in range(start, min(walk.indptr[node + 1], start + 64), 16):
            prefetch(walk.indices, edge)
            prefetch(walk.weights, edge)
        prefetch(left, 2 * np.int64(node))

    @numba.njit(nogil=True, cache=True)
    def clear(at, count):
        """Makes everything zero again that the touched nodes hold."""
        for place in range(count):
            node = at.touched[place]
            at.left[node, 0], at.seen[node] = 0.0, False
            if node < len(at.mass):
                at.mass[node] = 0.0
