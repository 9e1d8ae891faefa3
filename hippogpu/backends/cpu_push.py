"""Certified rankings on the CPU: one thread a query pushes its seeds and stops when no other passage can enter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from hippogpu.backends.cpu_select import sift
from hippogpu.backends.seam import Graph
from hippogpu.types import AnyFloats, Bools, Floats, Ints, Longs

# Pushing large residuals first lets small ones gather before they move: the start is this much above epsilon.
_COARSE = 64.0
# Epsilon falls by at least and at most these factors from one try to the next.
_LEAST_FALL, _MOST_FALL = 2.0, 16.0


class Space(NamedTuple):
    """Working memory of one graph, a row a thread; all zeros between queries but for the degrees.

    left (T, n, 2) float64: residual and degree of a node, side by side, as both are needed at once
    seen (T, n) whether a node is among touched (T, n) · queue (T, n) · mass, scores (T, P) float64
    """

    left: AnyFloats
    seen: Bools
    touched: Ints
    queue: Ints
    mass: AnyFloats
    scores: AnyFloats


def threads() -> int:
    """Threads that may run rank_rows."""
    return int(numba.get_num_threads())


def space_for(graph: Graph, passages: int, rows: int) -> Space:
    """Fresh working memory: about 25 bytes a node and 16 a passage for each thread."""
    n = graph.nodes
    left = np.zeros((rows, n, 2))
    left[:, :, 1] = graph.degrees
    seen = np.zeros((rows, n), bool)
    touched, queue = np.empty((rows, n), np.int32), np.empty((rows, n), np.int32)
    return Space(left, seen, touched, queue, np.zeros((rows, passages)), np.zeros((rows, passages)))


if TYPE_CHECKING:

    def rank_rows(
        indptr: Longs,
        indices: Ints,
        weights: Floats,
        degrees: AnyFloats,
        products: AnyFloats,
        diffused: AnyFloats,
        ones: AnyFloats,
        queries: AnyFloats,
        slope: AnyFloats,
        offset: AnyFloats,
        rough: AnyFloats,
        fine: AnyFloats,
        rounding: AnyFloats,
        seed_indptr: Longs,
        seed_nodes: Ints,
        seed_weights: AnyFloats,
        damping: float,
        epsilon: float,
        least: float,
        left: AnyFloats,
        seen: Bools,
        touched: Ints,
        queue: Ints,
        mass: AnyFloats,
        scores: AnyFloats,
        ids: Ints,
        best: AnyFloats,
        bounds: AnyFloats,
        certified: Bools,
        epsilons: AnyFloats,
        edges: Longs,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def _push(indptr, indices, weights, left, seen, touched, count, queue, mass, damping, epsilon):
        """Pushes until every residual is at most epsilon · degree; the number of nodes touched, and edges."""
        n, passages = len(seen), len(mass)
        head, waiting, edges = 0, 0, 0
        for place in range(count):
            node = touched[place]
            if left[node, 0] > epsilon * left[node, 1]:
                queue[waiting] = node
                waiting += 1
        while waiting:
            node = queue[head]
            head = head + 1 if head + 1 < n else 0
            waiting -= 1
            held = left[node, 0]
            left[node, 0] = 0.0
            if node < passages:
                mass[node] += (1 - damping) * held
            passed = damping * held / left[node, 1]
            for j in range(indptr[node], indptr[node + 1]):
                other = indices[j]
                before = left[other, 0]
                after = before + passed * weights[j]
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
            edges += indptr[node + 1] - indptr[node]
        return count, edges

    @numba.njit(nogil=True, cache=True)
    def _sow(nodes, weights, damping, left, seen, touched, mass):
        """Puts the seeds in place; how many nodes were touched. A node without edges keeps its share at once."""
        count = 0
        for place in range(len(nodes)):
            node = nodes[place]
            if left[node, 1] > 0.0:
                left[node, 0] += weights[place]
            elif node < len(mass):
                mass[node] += (1 - damping) * weights[place]
            if not seen[node]:
                seen[node] = True
                touched[count] = node
                count += 1
        return count

    @numba.njit(nogil=True, cache=True)
    def _clear(left, seen, touched, count, mass):
        for place in range(count):
            node = touched[place]
            left[node, 0], seen[node] = 0.0, False
            if node < len(mass):
                mass[node] = 0.0

    @numba.njit(nogil=True, cache=True)
    def _kth_least(scores, ones, rough, rounding, fine, k):
        """The k-th greatest lower bound of a score."""
        heap, numbers = np.full(k, -np.inf), np.zeros(k, np.int32)
        for passage in range(len(scores)):
            value = scores[passage] - rough * ones[passage] - fine * rounding[passage]
            if value > heap[0]:
                heap[0] = value
                sift(heap, numbers, k)
        return heap[0]

    @numba.njit(nogil=True, cache=True)
    def _refined(passage, exact, indptr, indices, weights, left, mass, damping):
        """A passage's score with its own residual and its neighbours' walked out: short by ≤ d²·epsilon·degree."""
        near = 0.0
        for j in range(indptr[passage], indptr[passage + 1]):
            other = indices[j]
            near += weights[j] * left[other, 0] / left[other, 1]
        return exact + mass[passage] + (1 - damping) * (left[passage, 0] + damping * near)

    @numba.njit(nogil=True, cache=True)
    def _next_epsilon(epsilon, floor, scores, upper, widths, chosen):
        """An epsilon at which the bounds would just clear, by what is known now."""
        wanted = epsilon / _LEAST_FALL
        for place in range(len(scores)):
            if not chosen[place] and upper[place] > floor and widths[place] > 0.0:
                room = (floor - scores[place]) / widths[place]
                wanted = min(wanted, 0.8 * room)
        return max(wanted, epsilon / _MOST_FALL)

    @numba.njit(nogil=True, cache=True)
    def _rank_row(
        indptr, indices, weights, degrees, products, diffused, ones, query, slope, offset, rough, fine, rounding,
        seed_nodes, seed_weights, damping, epsilon, least, left, seen, touched, queue, mass, scores, ids, best, bounds,
    ):  # fmt: skip
        """One query of rank_rows: whether it is certain, the last epsilon, the edges touched."""
        passages, k, edges = len(mass), len(ids), 0
        count = _sow(seed_nodes, seed_weights, damping, left, seen, touched, mass)
        coarse = epsilon * _COARSE
        while coarse > epsilon:
            count, more = _push(indptr, indices, weights, left, seen, touched, count, queue, mass, damping, coarse)
            edges += more
            coarse /= 4.0
        count, more = _push(indptr, indices, weights, left, seen, touched, count, queue, mass, damping, epsilon)
        edges += more
        for passage in range(passages):
            scores[passage] = slope * products[passage] + offset * ones[passage]
            scores[passage] += mass[passage] + (1 - damping) * left[passage, 0]
        floor = _kth_least(scores, ones, rough, rounding, fine, k)

        # Only these can still be among the k: scores never fall and bounds never grow.
        pool, members = np.empty(4 * k + 64, np.int32), 0
        for passage in range(passages):
            slack = rough * ones[passage] + fine * rounding[passage]
            if scores[passage] + damping * epsilon * degrees[passage] + slack >= floor:
                if members == len(pool):
                    pool = np.concatenate((pool, np.empty_like(pool)))
                pool[members] = passage
                members += 1
        pool = pool[:members]
        exact, widths, slacks = np.empty(members), np.empty(members), fine * rounding[pool]
        for place in range(members):
            product = 0.0
            row = diffused[pool[place]]
            for axis in range(len(query)):
                product += np.float64(row[axis]) * np.float64(query[axis])
            exact[place] = slope * product + offset * ones[pool[place]]
            widths[place] = damping * damping * degrees[pool[place]]

        value, upper, chosen = np.empty(members), np.empty(members), np.zeros(members, np.bool_)
        while True:
            for place in range(members):
                value[place] = _refined(pool[place], exact[place], indptr, indices, weights, left, mass, damping)
                upper[place] = value[place] + widths[place] * epsilon + slacks[place]
            order = np.argsort(-value, kind="mergesort")[:k]
            chosen[:] = False
            chosen[order] = True
            lowest, rival = np.inf, -np.inf
            for place in range(members):
                if chosen[place]:
                    lowest = min(lowest, value[place] - slacks[place])
                else:
                    rival = max(rival, upper[place])
            certain = rival <= lowest and (members == passages or floor <= lowest)
            if certain or epsilon <= least:
                break
            epsilon = max(_next_epsilon(epsilon, lowest, value, upper, widths, chosen), least)
            count, more = _push(indptr, indices, weights, left, seen, touched, count, queue, mass, damping, epsilon)
            edges += more
        for rank in range(k):
            ids[rank], best[rank] = pool[order[rank]], value[order[rank]]
            bounds[rank] = widths[order[rank]] * epsilon + slacks[order[rank]]
        _clear(left, seen, touched, count, mass)
        return certain, epsilon, edges

    @numba.njit(parallel=True, nogil=True, cache=True)
    def rank_rows(
        indptr, indices, weights, degrees, products, diffused, ones, queries, slope, offset, rough, fine, rounding,
        seed_indptr, seed_nodes, seed_weights, damping, epsilon, least, left, seen, touched, queue, mass, scores, ids,
        best, bounds, certified, epsilons, edges,
    ):  # fmt: skip
        """Certified of every query, into the last six arrays.

        products (B, P) are diffused·query; scores made of them are off by at most rough (B,) · ones (P,), and by
        fine (B,) · rounding (P,) for what is stored in diffused and ones.
        """
        for row in numba.prange(len(queries)):
            t = numba.get_thread_id()
            first, last = seed_indptr[row], seed_indptr[row + 1]
            certified[row], epsilons[row], edges[row] = _rank_row(
                indptr, indices, weights, degrees, products[row], diffused, ones, queries[row], slope[row],
                offset[row], rough[row], fine[row], rounding, seed_nodes[first:last], seed_weights[first:last], damping,
                epsilon, least, left[t], seen[t], touched[t], queue[t], mass[t], scores[t], ids[row], best[row],
                bounds[row],
            )  # fmt: skip
