"""Certified rankings on the CPU: a thread pushes a query's seeds, and stops when no other passage can enter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from hippogpu.backends.cpu_push import Left, Walk, clear, left_for, push, push_in_stages, sow
from hippogpu.backends.cpu_select import sift
from hippogpu.backends.values import Certified, Graph, SparseSeeds
from hippogpu.types import AnyFloats

# To certify, epsilon falls by at least and at most these factors from one try to the next.
_LEAST_FALL, _MOST_FALL = 2.0, 16.0
# Passages that are looked at together: their greatest score decides whether any of them counts.
_RUN = 256


class Scoring(NamedTuple):
    """The passage part of a batch of queries, and how far it may be off.

    products (B, P) diffused·query, of which a score is slope (B,) · product + offset (B,) · ones (P,)
    diffused (P, w) · queries (B, w) · degrees (P,)
    rough (B,) · ones (P,)     the rounding of a score made of products
    fine (B,) · rounding (P,)  what is left of it when a product is made anew in float64: that of what is stored
    most (3,)                  the greatest degree, one and rounding
    unit                       what the sums of a score add, as a share of the score
    """

    products: AnyFloats
    slope: AnyFloats
    offset: AnyFloats
    ones: AnyFloats
    diffused: AnyFloats
    queries: AnyFloats
    degrees: AnyFloats
    rough: AnyFloats
    fine: AnyFloats
    rounding: AnyFloats
    most: AnyFloats
    unit: float


class Desk(NamedTuple):
    """Working memory of one thread: that of the push; scores (P,), and the greatest of each run of them (runs,)."""

    left: Left
    scores: AnyFloats
    greatest: AnyFloats


def desk_for(graph: Graph, passages: int, dtype: np.dtype[Any]) -> Desk:
    """Fresh working memory; scores are of the dtype of the products."""
    return Desk(left_for(graph, passages), np.zeros(passages, dtype), np.zeros(-(-passages // _RUN), dtype))


if TYPE_CHECKING:

    def rank_row(
        walk: Walk,
        part: Scoring,
        seeds: SparseSeeds,
        row: int,
        desk: Desk,
        out: Certified,
        epsilon: float,
        least: float,
    ) -> None: ...

else:

    @numba.njit(nogil=True, cache=True)
    def rank_row(walk, part, seeds, row, desk, out, epsilon, least):
        """Writes one row of Certified."""
        at, k = desk.left, out.ids.shape[1]
        mine = slice(seeds.indptr[row], seeds.indptr[row + 1])
        count = sow(seeds.nodes[mine], seeds.weights[mine], walk.damping, at)
        count, edges = push_in_stages(walk, at, count, epsilon)
        pool = _pool(walk, part, row, desk, count, epsilon, k)
        if len(pool) < k:
            # Only scores that are no numbers leave fewer; the caller refuses them.
            out.edges[row] = -1
            clear(at, count)
            return
        exact, widths, slacks = _exactly(walk, part, row, pool)
        value, upper = np.empty(len(pool)), np.empty(len(pool))
        chosen = np.empty(len(pool), np.bool_)
        while True:
            for place in range(len(pool)):
                value[place] = exact[place] + _walked_out(walk, at, pool[place])
                upper[place] = value[place] + widths[place] * epsilon + slacks[place]
            order = np.argsort(-value, kind="mergesort")[:k]
            chosen[:] = False
            chosen[order] = True
            floor, rival = _closest(value, upper, slacks, chosen)
            if rival <= floor or epsilon <= least:
                break
            epsilon = max(_next_epsilon(epsilon, floor, value, upper, widths, chosen), least)
            count, more = push(walk, at, count, epsilon)
            edges += more
        for rank in range(k):
            place = order[rank]
            out.ids[row, rank], out.scores[row, rank] = pool[place], value[place]
            out.bounds[row, rank] = widths[place] * epsilon + slacks[place]
        out.certified[row], out.epsilon[row], out.edges[row] = rival <= floor, epsilon, edges
        clear(at, count)

    @numba.njit(nogil=True, cache=True)
    def _pool(walk, part, row, desk, count, epsilon, k):
        """The passages that may be among the k: no other can become one, as scores never fall and bounds never grow."""
        _estimate(walk, part, row, desk, count)
        rough, fine, bound = part.rough[row], part.fine[row], walk.damping * epsilon
        floor = _kth_least(part, row, desk, k)
        widest = bound * part.most[0] + rough * part.most[1] + fine * part.most[2]
        unit = part.unit
        pool, members = np.empty(4 * k + 64, np.int32), 0
        for run in range(len(desk.greatest)):
            if desk.greatest[run] + unit * abs(desk.greatest[run]) + widest < floor:
                continue
            for passage in range(run * _RUN, min(len(desk.scores), (run + 1) * _RUN)):
                score = desk.scores[passage]
                slack = rough * part.ones[passage] + fine * part.rounding[passage] + unit * abs(score)
                if score + bound * part.degrees[passage] + slack >= floor:
                    if members == len(pool):
                        pool = np.concatenate((pool, np.empty_like(pool)))
                    pool[members] = passage
                    members += 1
        return pool[:members]

    @numba.njit(nogil=True, cache=True, fastmath={"contract"})
    def _estimate(walk, part, row, desk, count):
        """Scores of all passages in the products' type, and the greatest of each run of them."""
        scores, products, at = desk.scores, part.products[row], desk.left
        passages = len(scores)
        slope, offset = products.dtype.type(part.slope[row]), products.dtype.type(part.offset[row])
        for passage in range(passages):
            scores[passage] = slope * products[passage] + offset * part.ones[passage]
        for place in range(count):
            node = at.touched[place]
            if node < passages:
                scores[node] += at.mass[node] + (1 - walk.damping) * at.left[node, 0]
        for run in range(len(desk.greatest)):
            most = scores[run * _RUN]
            for passage in range(run * _RUN, min(passages, (run + 1) * _RUN)):
                most = max(most, scores[passage])
            desk.greatest[run] = most

    @numba.njit(nogil=True, cache=True)
    def _kth_least(part, row, desk, k):
        """The k-th greatest lower bound of a score."""
        heap, numbers = np.full(k, -np.inf), np.zeros(k, np.int32)
        for run in range(len(desk.greatest)):
            if desk.greatest[run] <= heap[0]:
                continue
            for passage in range(run * _RUN, min(len(desk.scores), (run + 1) * _RUN)):
                score = desk.scores[passage]
                slack = part.rough[row] * part.ones[passage] + part.fine[row] * part.rounding[passage]
                least = score - slack - part.unit * abs(score)
                if least > heap[0]:
                    heap[0] = least
                    sift(heap, numbers, k)
        return heap[0]

    @numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
    def _exactly(walk, part, row, pool):
        """The passage part of each passage of the pool in float64; its d²·degree; its slack."""
        exact, widths, slacks = np.empty(len(pool)), np.empty(len(pool)), np.empty(len(pool))
        for place in range(len(pool)):
            passage, total = pool[place], 0.0
            for axis in range(part.queries.shape[1]):
                total += np.float64(part.diffused[passage, axis]) * np.float64(part.queries[row, axis])
            exact[place] = part.slope[row] * total + part.offset[row] * part.ones[passage]
            widths[place] = walk.damping * walk.damping * part.degrees[passage]
            slacks[place] = part.fine[row] * part.rounding[passage]
        return exact, widths, slacks

    @numba.njit(nogil=True, cache=True)
    def _walked_out(walk, at, passage):
        """What seeds give a passage, residuals here and next to it walked out: short by ≤ d²·epsilon·degree."""
        near = 0.0
        for j in range(walk.indptr[passage], walk.indptr[passage + 1]):
            other = walk.indices[j]
            near += walk.weights[j] * at.left[other, 0] / at.left[other, 1]
        return at.mass[passage] + (1 - walk.damping) * (at.left[passage, 0] + walk.damping * near)

    @numba.njit(nogil=True, cache=True)
    def _closest(value, upper, slacks, chosen):
        """The least that a chosen passage can have, and the most that another can."""
        floor, rival = np.inf, -np.inf
        for place in range(len(value)):
            if chosen[place]:
                floor = min(floor, value[place] - slacks[place])
            else:
                rival = max(rival, upper[place])
        return floor, rival

    @numba.njit(nogil=True, cache=True)
    def _next_epsilon(epsilon, floor, value, upper, widths, chosen):
        """An epsilon at which the bounds would just clear, by what is known now."""
        wanted = epsilon / _LEAST_FALL
        for place in range(len(value)):
            if not chosen[place] and upper[place] > floor and widths[place] > 0.0:
                wanted = min(wanted, 0.8 * (floor - value[place]) / widths[place])
        return max(wanted, epsilon / _MOST_FALL)
