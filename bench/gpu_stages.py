"""What gpu_check times, each stage after a check of its result against the CPU in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.checks import Check, all_passed, at_most, equal
from bench.gpu_time import device_ms
from bench.measure import Spread
from bench.ppr.questions import PASSAGE_WEIGHT, Questions, passage_vectors, questions_near, seed_rows
from bench.ppr.synthetic import synthetic_graph
from hippogpu.backends import PassagePart, SparseSeeds, steps_for
from hippogpu.backends.cpu import CpuBackend
from hippogpu.backends.cuda import CudaBackend
from hippogpu.types import AnyFloats, Csr, Floats

DAMPING, TOLERANCE = 0.5, 1e-6
EPSILON, LEAST_EPSILON = 1e-6, 1e-9
WIDTH = 384
HITS = 20
# The questions whose results are checked.
CHECKED = 4


class Work(NamedTuple):
    """A synthetic graph with its passage vectors and questions."""

    graph: Csr
    vectors: Floats
    questions: Questions


class Stage(NamedTuple):
    """One measured thing: milliseconds a call, the least bytes it has to move, and the share of the copy bandwidth."""

    name: str
    batch: int
    ms: Spread
    bytes: int | None
    copy_percent: float | None
    note: str = ""


def make_work(passages: int, questions: int) -> Work:
    """Seeded, the same on every machine."""
    graph = synthetic_graph(passages).graph
    vectors = passage_vectors(passages, WIDTH)
    return Work(graph, vectors, questions_near(vectors, graph, questions))


def stage(name: str, batch: int, ms: Spread, moved: int | None, copy: float, note: str = "") -> Stage:
    percent = None if moved is None else 100 * moved / (ms["median"] / 1e3) / 1e9 / copy
    return Stage(name, batch, ms, moved, percent, note)


def step_bytes(put: Any, batch: int) -> int:
    """Least bytes of one fused step: the compressed matrix, y, r and out once each, and the scale."""
    matrix = sum(array.nbytes for array in put.edges)
    return int(matrix + 3 * put.nodes * batch * 4 + put.nodes * 4)


def check_work(work: Work) -> Iterator[Check]:
    """Solutions, diffused columns and scores on this graph, against the CPU in float64."""
    cuda, exact = CudaBackend(), CpuBackend(precision="float64")
    here, there = cuda.put_graph(work.graph), exact.put_graph(work.graph)
    seeds = seed_rows(work.questions, work.graph.nodes, rows=CHECKED)
    steps = steps_for("power", DAMPING, TOLERANCE)
    wanted = exact.solve(there, exact.put(seeds), damping=DAMPING, steps=steps)
    for product in ("kernels", "cusparse"):
        backend = CudaBackend(product=product)
        found = backend.get(backend.solve(here, backend.put(seeds), damping=DAMPING, steps=steps))
        yield at_most(f"greatest error of a mass, {product}", np.abs(found - wanted).max(), 1e-6)
    asked = work.questions.vectors[:CHECKED]
    best = cuda.topk(asked, work.vectors, HITS)
    ideal = -np.sort(-(asked.astype(np.float64) @ work.vectors.astype(np.float64).T), axis=1)[:, :HITS]
    yield at_most("greatest error of a best score", np.abs(cuda.get(best.scores) - ideal).max(), 1e-6)


def time_steps(cuda: CudaBackend, work: Work, batches: tuple[int, ...], copy: float) -> Iterator[Stage]:
    """One fused step, and cuSPARSE's product alone, at each batch."""
    from hippogpu.backends.cuda_solve import Walk
    from hippogpu.backends.cuda_sparse import SparseWalk

    xp, put = cuda._cupy, cuda.put_graph(work.graph)
    walk, matrix = Walk(xp, cuda._kernels), SparseWalk(xp).matrix(put)  # type: ignore[arg-type]
    for batch in batches:
        loop = walk.loop(put, batch, DAMPING)  # type: ignore[arg-type]
        loop.y.fill(1), loop.r.fill(1), loop.spare.fill(1)
        moved = step_bytes(put, batch)
        fused = device_ms(xp, lambda: walk.step(put, loop, loop.y, loop.spare, 1.0, scaled=True))  # noqa: B023
        yield stage("fused step", batch, fused, moved, copy)
        y = xp.asfortranarray(loop.y)
        yield stage("cuSPARSE product alone", batch, device_ms(xp, lambda: matrix @ y), moved, copy)  # noqa: B023


def time_solves(cuda: CudaBackend, work: Work, batches: tuple[int, ...], copy: float) -> Iterator[Stage]:
    """Whole solutions with their transposes and checks, by power and by Chebyshev steps."""
    xp, put = cuda._cupy, cuda.put_graph(work.graph)
    for batch in batches:
        seeds = cuda.put(seed_rows(work.questions, work.graph.nodes, rows=batch))
        for solver in ("power", "chebyshev"):
            steps = steps_for(solver, DAMPING, TOLERANCE)
            ms = device_ms(
                xp,
                lambda: cuda.solve(put, seeds, damping=DAMPING, steps=steps, solver=solver),  # noqa: B023
            )
            yield stage(f"solve, {solver}, {steps} steps", batch, ms, steps * step_bytes(put, batch), copy)


def time_topk(cuda: CudaBackend, work: Work, batches: tuple[int, ...], copy: float) -> Iterator[Stage]:
    """The nearest passages of a batch, product and selection."""
    keys = cuda.put(work.vectors)
    for batch in batches:
        asked = cuda.put(work.questions.vectors[:batch])
        ms = device_ms(cuda._cupy, lambda: cuda.topk(asked, keys, HITS))  # noqa: B023
        # Scores are written once and read once by the selection, at least.
        yield stage(f"topk, k {HITS}", batch, ms, keys.nbytes + 2 * 4 * batch * len(keys), copy)


class Ranked(NamedTuple):
    """The stages of the certified ranking with their checks."""

    checks: list[Check]
    stages: list[Stage]


def rank(cuda: CudaBackend, work: Work, batches: tuple[int, ...], copy: float) -> Ranked:
    """Diffusion of the passage vectors, then rankings of batches; not timed when a certified one is wrong."""
    put, passages = cuda.put_graph(work.graph), len(work.vectors)
    columns = np.zeros((work.graph.nodes, WIDTH + 1), np.float32)
    columns[:passages, :WIDTH], columns[:passages, WIDTH] = work.vectors, 1.0
    steps = steps_for("chebyshev", DAMPING, TOLERANCE)
    there = cuda.put(columns)
    ms = device_ms(cuda._cupy, lambda: cuda.diffuse(put, there, damping=DAMPING, steps=steps), repeats=3)
    stages = [stage(f"diffuse, chebyshev, {steps} steps", WIDTH + 1, ms, steps * step_bytes(put, WIDTH + 1), copy)]
    diffused = cuda.diffuse(put, there, damping=DAMPING, steps=steps)
    worst = float(cuda.residual(put, there, diffused, damping=DAMPING).over_degree.max()) / (1 - DAMPING)
    vectors, ones = cuda.put(diffused[:passages, :WIDTH]), cuda.put(diffused[:passages, WIDTH])
    checks = [at_most("error of the diffused vectors over degree", worst, 1e-5)]
    for batch in batches:
        part, seeds = passage_part(work, vectors, ones, batch), phrase_seeds(work, batch)
        options = {"damping": DAMPING, "epsilon": EPSILON, "least_epsilon": LEAST_EPSILON}
        found = cuda.rank_diffused(put, part, seeds, HITS, **options)
        if batch >= CHECKED:
            checks.append(check_ranking(cuda, work, found))
        if all_passed(checks):
            ms = device_ms(cuda._cupy, lambda: cuda.rank_diffused(put, part, seeds, HITS, **options))  # noqa: B023
            note = f"{100 * found.certified.mean():.1f} % certified, {int(np.median(found.edges))} edges touched"
            stages.append(stage(f"rank_diffused, k {HITS}", batch, ms, None, copy, note))
    return Ranked(checks, stages)


def check_ranking(cuda: CudaBackend, work: Work, found: Any) -> Check:
    """Of the first questions, those with a certified ranking have the k best of the whole solution."""
    exact = CpuBackend(precision="float64")
    there = exact.put_graph(work.graph)
    seeds = np.asarray(seed_rows(work.questions, work.graph.nodes, rows=CHECKED), np.float64)
    mass = exact.solve(there, seeds, damping=DAMPING, steps=50)[:, : len(work.vectors)]
    wrong = 0
    for row in np.flatnonzero(found.certified[:CHECKED]):
        least = np.sort(mass[row])[::-1][HITS - 1]
        # Seeds are float32 and so is Ṽ: what differs by less than their rounding may change places.
        wrong += int((mass[row][found.ids[row]] < least * (1 - 1e-4)).sum())
    return equal("certified passages that are not among the best", wrong, 0)


def passage_part(work: Work, vectors: Any, ones: Any, batch: int) -> PassagePart:
    """The passage seeds of the first questions: 0.05 · min–max of their inner products with all passages."""
    asked = work.questions.vectors[:batch]
    products: AnyFloats = asked @ work.vectors.T
    low, high = (products.min(axis=1).astype(np.float64), products.max(axis=1).astype(np.float64))
    slope = PASSAGE_WEIGHT / (high - low)
    return PassagePart(vectors, ones, asked, slope, -slope * low)


def phrase_seeds(work: Work, batch: int) -> SparseSeeds:
    """The phrase seeds of the first questions, as nodes."""
    phrases = work.questions.phrases[:batch]
    indptr = np.arange(batch + 1, dtype=np.int64) * phrases.shape[1]
    nodes = (phrases + len(work.vectors)).astype(np.int32).ravel()
    return SparseSeeds(indptr, nodes, work.questions.weights[:batch].ravel())
