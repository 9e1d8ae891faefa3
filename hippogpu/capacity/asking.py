"""What a question costs, by method and solver: bytes and flops, and milliseconds from them."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.backends import steps_for
from hippogpu.capacity.arrays import NUMBER_BYTES, batch_bytes, step_bytes
from hippogpu.capacity.counts import Counts
from hippogpu.capacity.devices import Device
from hippogpu.capacity.rates import Rates
from hippogpu.config import IndexConfig, SearchConfig, ServingSolver

BATCH = 32
# Edges that the push of one question's phrase seeds touches, repeats counted: the mean of 512 questions with
# least_epsilon 1e-8 from 1,000 to 300,000 passages is 49,000 to 94,000, and does not grow (docs/ppr.md).
PUSHED_EDGES = 75_000
# hippo pushes three kinds of seeds, to push_epsilon alone.
HIPPO_PUSHES = 3
# Python's own work on a question (names, seeds, hits), and what hippo adds for words and pairs in its pool.
QUESTION_MS, POOL_MS = 0.4, 3.0


class Question(NamedTuple):
    """What one question takes: alone, and as one of a batch of 32.

    vector_bytes : bytes of vectors read · flops of products with them · edges walked or pushed, repeats counted
    step_bytes   : what one step of the batch's walk moves; 0 without a walk
    """

    method: str
    solver: str
    vector_bytes: int
    flops: float
    edges: float
    step_bytes: int
    alone_ms: float
    batch_ms: float


ASKED: tuple[tuple[str, ServingSolver | None], ...] = (
    ("dense", None),
    ("hippo2", "power"),
    ("hippo2", "chebyshev"),
    ("hippo2", "diffused"),
    ("hippo", "power"),
    ("hippo", "diffused"),
)


def questions(
    counts: Counts, width: int, config: IndexConfig, search: SearchConfig, device: Device, *, budget_bytes: int
) -> list[Question]:
    """A line for each method with each solver that serves it."""
    together = min(BATCH, questions_at_once(counts, budget_bytes))
    return [_question(counts, width, config, search, device, method, solver, together) for method, solver in ASKED]


def _question(
    counts: Counts,
    width: int,
    config: IndexConfig,
    search: SearchConfig,
    device: Device,
    method: str,
    solver: ServingSolver | None,
    walking: int,
) -> Question:
    """walking: questions whose rows of all nodes fit the budget together."""
    read, flops = _products(counts, width, config, method, solver)
    rates, nodes = device.rates, counts.nodes
    alone = read / (rates.read_gbs * 1e6)
    batch = walking if solver in ("power", "chebyshev") else BATCH
    together = max(flops / (rates.product_gflops * 1e6), read / batch / (rates.read_gbs * 1e6))
    edges = 0.0
    if solver == "diffused":
        edges = PUSHED_EDGES * (HIPPO_PUSHES if method == "hippo" else 1)
        walked = 1e3 * edges / rates.at(rates.push_edges, nodes)
        alone, together = alone + walked, together + walked
    elif solver is not None:
        columns = HIPPO_PUSHES if method == "hippo" else 1
        edges = float(counts.nonzeros) * columns * steps_for(solver, search.damping, search.tolerance)
        alone += 1e3 * edges / rates.at(_walk_rate(rates, columns), nodes)
        together += 1e3 * edges / rates.at(_walk_rate(rates, columns * walking), nodes)
    own = QUESTION_MS + (POOL_MS if method == "hippo" else 0.0)
    stepped = step_bytes(counts, BATCH) if solver in ("power", "chebyshev") else 0
    return Question(method, solver or "none", read, flops, edges, stepped, alone + own, together + own)


def _walk_rate(rates: Rates, columns: int) -> float:
    """Edges times columns a second of so many columns: each reads its own line of memory until they share them."""
    return min(rates.walk_edges, columns * rates.walk_edges_alone)


def _products(
    counts: Counts, width: int, config: IndexConfig, method: str, solver: ServingSolver | None
) -> tuple[int, float]:
    """Bytes of vectors that a question alone reads, and its flops: passages, facts, and diffused vectors."""
    passage = width * NUMBER_BYTES[config.passage_vectors]
    read, flops = counts.passages * passage, 2.0 * counts.passages * width
    if method == "dense":
        return read, flops
    if solver == "diffused":
        read, flops = read + 4 * counts.passages * width, 2 * flops
    fact = width * NUMBER_BYTES[config.fact_vectors]
    if config.fact_search == "ivfpq":
        looked, again = _looked_at(counts.facts, width)
        return read + round(looked) + again * fact, flops + 2.0 * again * width + looked
    return read + counts.facts * fact, flops + 2.0 * counts.facts * width


def _looked_at(facts: int, width: int) -> tuple[float, int]:
    """Bytes of codes that a question looks at, once for each end of the scale, and facts that it scores again."""
    from hippogpu.nearest.cells import PROBES, SHORTLIST
    from hippogpu.nearest.quantising import cells_for, pieces_for

    cells = cells_for(facts, width)
    return 2.0 * facts * min(1.0, PROBES / cells) * pieces_for(width)[0], 2 * SHORTLIST


def questions_at_once(counts: Counts, budget_bytes: int) -> int:
    """Questions that are walked together under the budget: at least 1, however much it takes."""
    return max(1, budget_bytes // max(batch_bytes(counts, 1), 1))
