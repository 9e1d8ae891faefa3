"""What every method works on, and what it hands back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from hippogpu.backends import Backend, Graph
from hippogpu.config import RunConfig
from hippogpu.errors import IndexDamagedError
from hippogpu.methods.derived import Derived
from hippogpu.nearest import ExactRows, Nearest, near_rows
from hippogpu.precision import ScaledRows, float_rows, summed
from hippogpu.store import DIFFUSED, FACT_CELLS, Snapshot
from hippogpu.store.snapshot import VECTORS
from hippogpu.tables import mention_counts
from hippogpu.types import AnyFloats, Bools, Floats, Ints, KeptFact, LinkedEntity, Ragged, Seed

# BLAS sums the columns of one product in different orders: equal keys came out up to two steps of float32 apart, and
# without this margin min-max would stretch that noise over the whole of [0, 1].
ROUNDING_STEPS = 4


_NO_SCALES: Floats = np.empty(0, np.float32)
_GRAPH = ("graph_indptr", "graph_indices", "graph_weights")
_PASSAGES = ("passage_vectors", "passage_scales")
_FACTS = ("fact_vectors", "fact_scales", *FACT_CELLS)


class DiffusedOn(NamedTuple):
    """Diffused vectors on a backend, and sums (w,) float64 of passage vectors: of all, of the `lone` without edges."""

    vectors: Any
    ones: Any
    damping: float
    error: float
    sum: AnyFloats
    lone_sum: AnyFloats
    lone: int


class Loaded(NamedTuple):
    """A snapshot with its vectors and graph on a backend. passages (P, w), put_facts (F, w).

    near finds facts. put_facts is None where it does so without all of them: facts puts them there when asked for.
    diffused is None where the index has none that are fresh. derived holds what single methods made of it.
    """

    snapshot: Snapshot
    backend: Backend
    passages: Any
    put_facts: Any
    near: Nearest
    graph: Graph
    mention_counts: Ints
    diffused: DiffusedOn | None
    derived: Derived

    @property
    def facts(self) -> Any:
        """The facts' vectors (F, w) on the backend."""
        if self.put_facts is not None:
            return self.put_facts
        return self.derived.once("facts on the backend", lambda: self.backend.put(self.snapshot.fact_vectors))


class Queries(NamedTuple):
    """Questions as vectors: to compare with facts and with passages, both (B, w); the same where the encoder has no
    instructions.
    """

    to_facts: Floats
    to_passages: Floats

    def rows(self, chosen: Bools) -> Queries:
        """Some of the questions."""
        return Queries(self.to_facts[chosen], self.to_passages[chosen])


class Ranked(NamedTuple):
    """One query's passages: rows (k,) descending by score, ties by lower row; and why."""

    rows: Ints
    scores: AnyFloats
    facts: tuple[KeptFact, ...] = ()
    seeds: tuple[Seed, ...] = ()
    solver: str | None = None
    fallback: str | None = None
    certified: bool | None = None
    filter_failure: str | None = None
    entities: tuple[LinkedEntity, ...] = ()
    fact_search: str | None = None


class Clock:
    """Milliseconds by stage."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.ms[stage] = self.ms.get(stage, 0.0) + 1000 * (time.perf_counter() - started)


def load(
    snapshot: Snapshot,
    backend: Backend,
    *,
    earlier: Loaded | None = None,
    run: RunConfig = RunConfig(),  # noqa: B008  (frozen)
) -> Loaded:
    """The snapshot's arrays where the backend computes; IndexDamagedError when a number points outside its table.

    earlier : another generation of the same index on the same backend; what both have is not put there again
    run     : its fact_store says what finds facts
    """
    snapshot.tables.check()
    Ragged(snapshot.graph.indptr, snapshot.graph.indices).check("graph", below=max(snapshot.graph.nodes, 1))
    counts = mention_counts(snapshot.tables)
    _check_numbers(snapshot, counts)
    passages, facts = _held(snapshot, earlier, *_PASSAGES), _held(snapshot, earlier, *_FACTS)
    graph, diffused = _held(snapshot, earlier, *_GRAPH), _held(snapshot, earlier, *_GRAPH, *_PASSAGES, *DIFFUSED)
    put_facts, near = (facts.put_facts, facts.near) if facts else _put_facts(snapshot, backend, run)
    return Loaded(
        snapshot,
        backend,
        passages.passages if passages else backend.put(snapshot.passage_vectors),
        put_facts,
        near,
        graph.graph if graph else backend.put_graph(snapshot.graph),
        counts,
        diffused.diffused if diffused and diffused.diffused else _put_diffused(snapshot, backend),
        Derived(),
    )


def _put_facts(snapshot: Snapshot, backend: Backend, run: RunConfig) -> tuple[Any, Nearest]:
    """The facts on the backend, None where they are found without, and what finds them."""
    vectors, cells = snapshot.fact_vectors, snapshot.fact_cells
    if not vectors.shape[0] or (run.fact_store == "own" and cells is None):
        put = backend.put(vectors)
        return put, ExactRows(backend, put)
    return None, near_rows(vectors, cells.check(*vectors.shape) if cells else None, backend, run)


def _check_numbers(snapshot: Snapshot, counts: Ints) -> None:
    """IndexDamagedError where a count or a weight would divide by nothing or let a walk never end."""
    facts, weights = snapshot.tables.facts, snapshot.graph.weights
    if not (counts[facts.subject].all() and counts[facts.object].all()):
        raise IndexDamagedError("A fact names a phrase that no passage mentions. Index the corpus again.")
    if len(weights) and not (weights.min() > 0 and np.isfinite(weights.max())):
        raise IndexDamagedError("A weight of the graph is no number above 0. Index the corpus again.")
    for role, name in VECTORS.items():
        vectors = getattr(snapshot, role)
        scales = vectors.scales if isinstance(vectors, ScaledRows) else _NO_SCALES
        # Numbers of a row are whole, so it is at least 1 long before it is scaled. NaN passes neither test.
        if len(scales) and not (scales.min() > 0 and scales.max() <= 1):
            raise IndexDamagedError(f"A scale of '{name}' is not in (0, 1]. Index the corpus again.")


def _held(snapshot: Snapshot, earlier: Loaded | None, *roles: str) -> Loaded | None:
    """The earlier generation when its files of these roles are the snapshot's own."""
    if earlier is None:
        return None
    files, held = snapshot.manifest.files, earlier.snapshot.manifest.files
    # Scales, which only rows in int8 have, are absent from both or the same.
    return earlier if all(files.get(role) == held.get(role) for role in roles) else None


def _put_diffused(snapshot: Snapshot, backend: Backend) -> DiffusedOn | None:
    diffused, vectors = snapshot.diffused, snapshot.passage_vectors
    if diffused is None:
        return None
    diffused.check()
    lone = np.diff(snapshot.graph.indptr[: vectors.shape[0] + 1]) == 0
    return DiffusedOn(
        backend.put(diffused.vectors),
        backend.put(diffused.ones),
        diffused.damping,
        diffused.error,
        summed(vectors),
        float_rows(vectors, np.flatnonzero(lone)).sum(axis=0, dtype=np.float64),
        int(lone.sum()),
    )


def min_max(scores: AnyFloats, low: AnyFloats, high: AnyFloats) -> AnyFloats:
    """(scores − low) ÷ (high − low) for each row, float64 in [0, 1]; ones where all scores of the row are equal.

    scores : inner products of unit rows; equal means within their own rounding
    """
    low, span = np.asarray(low, np.float64)[:, None], np.asarray(high - low, np.float64)[:, None]
    scaled = np.divide(scores - low, span, out=np.ones(scores.shape), where=~equal_within_rounding(span, scores.dtype))
    return np.clip(scaled, 0.0, 1.0)


def equal_within_rounding(span: AnyFloats, dtype: Any) -> Bools:
    """Whether scores of that type that lie so far apart at most are equal but for their rounding."""
    return np.asarray(span <= ROUNDING_STEPS * np.finfo(dtype).eps)
