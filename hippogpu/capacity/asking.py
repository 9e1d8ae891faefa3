"""What a question costs, by method and solver: bytes and flops, and milliseconds from them."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.backends import steps_for
from hippogpu.capacity.arrays import NUMBER_BYTES, step_bytes
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
# Bytes that a question holds: of each node while it walks (searcher), and of each passage for its scores.
NODE_BYTES, PASSAGE_BYTES, HIPPO_PASSAGE_BYTES = 64, 32, 40


class Question(NamedTuple):
    """What one question takes: alone, and as one of a batch of 32 or of as many as the budget lets be held at once.

    vector_bytes : bytes of vectors read · flops of products with them · code_bytes: bytes of facts in cells looked up
    edges        : walked or pushed, repeats counted · step_bytes: what one step of the batch's walk moves, 0 without
    held_bytes   : what is held for it meanwhile · batch: questions that are worked on together
    """

    method: str
    solver: str
    vector_bytes: int
    flops: float
    code_bytes: int
    edges: float
    step_bytes: int
    held_bytes: int
    batch: int
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


class _Asking(NamedTuple):
    """An index and the settings with which it is asked."""

    counts: Counts
    width: int
    config: IndexConfig
    search: SearchConfig
    rates: Rates
    budget_bytes: int


def questions(
    counts: Counts, width: int, config: IndexConfig, search: SearchConfig, device: Device, *, budget_bytes: int
) -> list[Question]:
    """A line for each method with each solver that serves it."""
    asking = _Asking(counts, width, config, search, device.rates, budget_bytes)
    return [_question(asking, method, solver) for method, solver in ASKED]


def held_bytes(counts: Counts, method: str, *, walks: bool) -> int:
    """Working memory of a question: rows of all nodes while it walks, and rows of all passages."""
    passage = HIPPO_PASSAGE_BYTES if method == "hippo" else PASSAGE_BYTES
    return NODE_BYTES * counts.nodes * walks + passage * counts.passages


def _question(asking: _Asking, method: str, solver: ServingSolver | None) -> Question:
    counts, rates = asking.counts, asking.rates
    walks = solver in ("power", "chebyshev")
    held = held_bytes(counts, method, walks=walks)
    batch = min(BATCH, max(1, asking.budget_bytes // held)) if held else BATCH
    read, flops, codes = _products(asking, method, solver)
    edges, alone_edges, together_edges = _edges(asking, method, solver, batch)
    own = QUESTION_MS + (POOL_MS if method == "hippo" else 0.0)
    alone = read / (rates.read_gbs * 1e6) + codes / (rates.scan_gbs * 1e6)
    products = max(flops / (rates.product_gflops * 1e6), read / batch / (rates.read_gbs * 1e6))
    together = products + codes / (rates.cores * rates.scan_gbs * 1e6)
    return Question(
        method,
        solver or "none",
        read,
        flops,
        codes,
        edges,
        step_bytes(counts, batch) if walks else 0,
        held,
        batch,
        alone + alone_edges + own,
        together + together_edges + own,
    )


def _edges(asking: _Asking, method: str, solver: ServingSolver | None, batch: int) -> tuple[float, float, float]:
    """Edges of a question, and the milliseconds that they take it alone and in the batch."""
    rates, nodes, kinds = asking.rates, asking.counts.nodes, HIPPO_PUSHES if method == "hippo" else 1
    if solver is None:
        return 0.0, 0.0, 0.0
    if solver == "diffused":
        edges = float(PUSHED_EDGES * kinds)
        pushed = 1e3 * edges / rates.at(rates.push_edges, nodes)
        return edges, pushed, pushed
    edges = float(asking.counts.nonzeros) * kinds * steps_for(solver, asking.search.damping, asking.search.tolerance)
    alone, together = (1e3 * edges / rates.at(_walk_rate(rates, kinds * columns), nodes) for columns in (1, batch))
    return edges, alone, together


def _walk_rate(rates: Rates, columns: int) -> float:
    """Edges times columns a second of so many columns: each reads its own line of memory until they share them."""
    return min(rates.walk_edges, columns * rates.walk_edges_alone)


def _products(asking: _Asking, method: str, solver: ServingSolver | None) -> tuple[int, float, int]:
    """Bytes of vectors that a question alone reads, flops with them, and bytes of the codes of facts in cells."""
    counts, width, config = asking.counts, asking.width, asking.config
    read, flops = counts.passages * width * NUMBER_BYTES[config.passage_vectors], 2.0 * counts.passages * width
    if method == "dense":
        return read, flops, 0
    if solver == "diffused":
        read, flops = read + 4 * counts.passages * width, 2 * flops
    fact = width * NUMBER_BYTES[config.fact_vectors]
    if config.fact_search == "ivfpq" and not asking.search.exact_facts:
        again = 2 * asking.search.fact_shortlist
        return read + again * fact, flops + 2.0 * again * width, _code_bytes(asking)
    return read + counts.facts * fact, flops + 2.0 * counts.facts * width, 0


def _code_bytes(asking: _Asking) -> int:
    """Bytes of facts in near cells, once for each end of the scale of scores."""
    from hippogpu.nearest.quantising import cells_for, pieces_for

    facts, width = asking.counts.facts, asking.width
    share = min(1.0, asking.search.fact_probes / cells_for(facts, width))
    return round(2.0 * facts * share * pieces_for(width)[0])
