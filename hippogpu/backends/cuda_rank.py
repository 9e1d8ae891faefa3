"""The certified ranking on the device: a batched push for the phrase seeds, and bounds that allow for roundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hippogpu.backends._kernels import Kernels
from hippogpu.backends.cuda_affine import DOUBLE, SINGLE, Affine
from hippogpu.backends.cuda_solve import CudaGraph, blocks
from hippogpu.backends.cuda_topk import best_of_rows
from hippogpu.backends.rows import best_of_row
from hippogpu.backends.values import Certified, PassagePart, SparseSeeds
from hippogpu.types import AnyFloats, AnyInts

SCAN_THREADS, TILE = 256, 512
# Seeds are counted in units of at most 2⁻⁶⁰ of their sum, so that 64 bits hold them with room to spare.
UNIT_BITS = 61


class Device(NamedTuple):
    """CuPy, the kernels, and how an array comes to the host; NumPy where the kernels are compiled for the host."""

    xp: Any
    kernels: Kernels
    get: Callable[[Any], Any]


class Walkers(NamedTuple):
    """State of a block of questions on the device (kernels/push.cu): rows of n nodes or P passages."""

    left: Any
    mass: Any
    frontier: Any
    next: Any
    moved: Any
    units: Any
    sizes: Any
    touched: Any
    reached: Any


class Question(NamedTuple):
    """What the host knows of a block: the sum, unit and number of each question's seeds, (b,) each."""

    total: AnyFloats
    unit: AnyFloats
    seeds: AnyInts


class Answer(NamedTuple):
    """One row of Certified."""

    ids: AnyInts
    scores: AnyFloats
    bounds: AnyFloats
    certified: bool
    epsilon: float
    edges: int


def rank_in_blocks(
    device: Device,
    graph: CudaGraph,
    part: PassagePart,
    seeds: SparseSeeds,
    k: int,
    *,
    damping: float,
    epsilon: float,
    least_epsilon: float,
    budget_bytes: int,
) -> Certified:
    """Certified, over blocks of questions whose state fits the budget."""
    passages, questions = len(part.diffused), len(part.queries)
    ranker = Ranker(device, graph, part, min(k, passages), damping)
    size = max(1, budget_bytes // ranker.question_bytes)
    answers: list[Answer] = []
    for block in blocks(questions, size):
        answers += ranker.rank(block, seeds, epsilon, least_epsilon)
    shape = (len(answers), min(k, passages))
    return Certified(
        np.array([answer.ids for answer in answers], np.int32).reshape(shape),
        np.array([answer.scores for answer in answers], np.float64).reshape(shape),
        np.array([answer.bounds for answer in answers], np.float64).reshape(shape),
        np.array([answer.certified for answer in answers], bool),
        np.array([answer.epsilon for answer in answers], np.float64),
        np.array([answer.edges for answer in answers], np.int64),
    )


class Candidates(NamedTuple):
    """Candidates of each question (b, c), numbers ascending: scores, how short and how wrong either way they may be."""

    ids: AnyInts
    scores: AnyFloats
    short: AnyFloats
    doubt: AnyFloats


class Ranker:
    """One call's constants: the graph, the passage part, k and the damping."""

    def __init__(self, device: Device, graph: CudaGraph, part: PassagePart, k: int, damping: float) -> None:
        self._xp, self._kernels, self._get = device
        self._graph, self._part = graph, part
        self._k, self._damping = k, damping
        self._passages = len(part.diffused)
        self._candidates = min(self._passages, max(2 * k, k + 64))
        xp = self._xp
        self._ones = part.ones.astype(xp.float64)
        self._degrees = graph.degrees[: self._passages]
        # A norm in float32 is off by far less than the thousandth that is added.
        self._norms = 1.001 * xp.sqrt(xp.square(part.diffused).sum(axis=1)).astype(xp.float64)

    @property
    def question_bytes(self) -> int:
        """Device memory that a question takes: 24 bytes a node, 6 float64 a passage, its candidates' vectors."""
        width = int(self._part.diffused.shape[1])
        return 24 * self._graph.nodes + 48 * self._passages + 20 * self._candidates * width + 64

    def rank(self, block: slice, seeds: SparseSeeds, epsilon: float, least: float) -> list[Answer]:
        """The answers of a block of questions, each pushed on until it is certain or has reached the least epsilon."""
        affine = Affine.of(self._xp, self._part, block)
        question, walkers = self._start(seeds, block, len(affine.slope))
        answers: dict[int, Answer] = {}
        waiting = np.arange(len(affine.slope))
        while len(waiting):
            self._push(walkers, waiting, epsilon)
            fresh = self._judge(walkers, question, affine, waiting)
            answers.update(zip(waiting.tolist(), fresh, strict=True))
            if epsilon <= least:
                break
            waiting = np.array([row for row in waiting.tolist() if not answers[row].certified], np.int64)
            epsilon = max(epsilon / 10, least)
        return [answers[row] for row in range(len(affine.slope))]

    def _start(self, seeds: SparseSeeds, block: slice, count: int) -> tuple[Question, Walkers]:
        """The seeds as whole units at their nodes; rounding down loses less than a unit a seed."""
        xp, nodes = self._xp, self._graph.nodes
        indptr = seeds.indptr[block.start : block.start + count + 1]
        here = slice(int(indptr[0]), int(indptr[-1]))
        number = np.diff(indptr)
        rows = np.repeat(np.arange(count), number)
        weights = np.asarray(seeds.weights[here], np.float64)
        total = np.bincount(rows, weights, minlength=count).astype(np.float64)
        unit = unit_of(total)
        left = xp.zeros((count, nodes), xp.uint64)
        units = np.floor(weights / unit[rows]).astype(np.uint64)
        left[xp.asarray(rows), xp.asarray(seeds.nodes[here].astype(np.int64))] = xp.asarray(units)
        walkers = Walkers(
            left,
            xp.zeros((count, self._passages), xp.float64),
            xp.empty((count, nodes), xp.int32),
            xp.empty((count, nodes), xp.int32),
            xp.empty((count, nodes), xp.uint64),
            xp.asarray(unit),
            xp.zeros(count, xp.int32),
            xp.zeros(count, xp.int64),
            xp.zeros(count, xp.uint64),
        )
        return Question(total, unit, number), walkers

    def _push(self, walkers: Walkers, waiting: AnyInts, epsilon: float) -> None:
        """Rounds for the waiting questions until no node keeps more than epsilon · degree."""
        xp, graph = self._xp, self._graph
        rows = xp.asarray(waiting.astype(np.int32))
        walkers.sizes.fill(0)
        walkers.reached.fill(0)
        state = (*walkers[:6], np.float64(self._damping), np.float64(epsilon), graph.nodes, self._passages)
        grid = (len(waiting), min(-(-graph.nodes // SCAN_THREADS), 1024))
        launch = self._kernels.launch
        launch("push_scan", grid, SCAN_THREADS, *state, graph.degrees, rows, walkers.sizes)
        launch("push_rounds", grid[:1], TILE, *graph.edges, *state, graph.degrees, rows, walkers.sizes, walkers.touched)
        launch(
            "push_reached", grid, SCAN_THREADS,
            walkers.left, walkers.units, graph.nodes, graph.degrees, rows, walkers.reached,
        )  # fmt: skip

    def _judge(self, walkers: Walkers, question: Question, affine: Affine, waiting: AnyInts) -> list[Answer]:
        """The k best of each waiting question, and whether all others are certain to stand below.

        The float32 products choose candidates, twice k or more, which are scored again in float64. A passage outside
        them counts with its bound and the most that its float32 product may be short.
        """
        xp, d = self._xp, self._damping
        rows = xp.asarray(waiting)
        reached = self._get(walkers.reached).view(np.float64)[waiting]
        edges = self._get(walkers.touched)[waiting]
        lost = lost_mass(question, waiting, edges, d)
        pushed = walkers.mass[rows] + (1 - d) * (
            walkers.left[rows, : self._passages].astype(xp.float64) * walkers.units[rows][:, None]
        )
        bounds = xp.asarray(d * reached)[:, None] * self._degrees[None]
        bounds += xp.asarray(lost)[:, None]
        scores = affine.scores[rows] + pushed
        ids = xp.sort(best_of_rows(xp, self._kernels, scores, self._candidates).ids.astype(xp.int64), axis=1)
        upper = scores + bounds + affine.doubt(xp, rows, self._norms, self._ones, self._degrees, SINGLE)
        upper[xp.arange(len(waiting))[:, None], ids] = -np.inf
        outside = self._get(upper.max(axis=1)) if self._passages else np.full(len(waiting), -np.inf)
        norms, ones, degrees = self._norms[ids], self._ones[ids], self._degrees[ids]
        doubt = affine.doubt(xp, rows, norms, ones, degrees, DOUBLE)
        doubt += xp.asarray(2.0**-46 * question.total[waiting])[:, None]
        found = affine.exact(xp, rows, self._part.diffused[ids], ones) + xp.take_along_axis(pushed, ids, axis=1)
        short = xp.take_along_axis(bounds, ids, axis=1)
        candidates = Candidates(*(self._get(array) for array in (ids, found, short, doubt)))
        return [
            choose(candidates, row, self._k, float(outside[row]), float(reached[row]), int(edges[row]))
            for row in range(len(waiting))
        ]


def unit_of(total: AnyFloats) -> AnyFloats:
    """The unit of each question's seeds, a power of two; 1 for a question without seeds."""
    exponent = np.frexp(total)[1]
    return np.where(total > 0, np.ldexp(1.0, np.maximum(exponent - UNIT_BITS, -1000)), 1.0)


def lost_mass(question: Question, rows: AnyInts, edges: AnyInts, damping: float) -> AnyFloats:
    """The most mass that rounding down has lost: a unit an edge and a seed, and some parts in 2⁵⁰ of what was moved.

    G keeps or loses mass, so no score can be short by more than this.
    """
    added = edges + question.seeds[rows]
    return added * question.unit[rows] + 2.0**-49 * question.total[rows] / (1 - damping)


def choose(candidates: Candidates, row: int, k: int, outside: float, reached: float, edges: int) -> Answer:
    """The k best of a question's candidates; certain when neither the others nor those outside can pass the k-th."""
    ids, scores, short, doubt = (array[row] for array in candidates)
    chosen = best_of_row(scores, k)
    others = np.ones(len(ids), bool)
    others[chosen] = False
    greatest = max(outside, float((scores + short + doubt)[others].max(initial=-np.inf)))
    certain = greatest <= float((scores - doubt)[chosen].min(initial=np.inf))
    return Answer(ids[chosen], scores[chosen], (short + doubt)[chosen], certain, reached, edges)
