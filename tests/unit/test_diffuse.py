"""Passage vectors over the graph: the full solve's passage part, made once, kept when cut short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hippogpu.backends import load_backend, steps_for
from hippogpu.backends.cpu import CpuBackend
from hippogpu.backends.reference import ReferenceBackend
from hippogpu.diffuse import columns_at_once, diffuse_passages, estimated_seconds
from hippogpu.testing.graphs import small_graph
from hippogpu.types import AnyFloats, Diffused

NODES, PASSAGES, WIDTH = 301, 120, 40
GRAPH = small_graph(NODES, seed=9)
# Of the row's greatest: what float32 storage leaves, and what double precision does.
SINGLE, DOUBLE = 1e-6, 1e-12


@pytest.fixture(scope="module")
def vectors() -> AnyFloats:
    rows = np.random.default_rng(1).standard_normal((PASSAGES, WIDTH))
    unit: AnyFloats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def diffused(vectors: AnyFloats, scratch: Path | None = None, *, budget_bytes: int = 2**20) -> Diffused:
    return diffuse_passages(
        GRAPH, vectors, damping=0.5, backend=load_backend("cpu"), budget_bytes=budget_bytes, scratch=scratch
    )


def full_solve(seeds: AnyFloats) -> AnyFloats:
    """G·seeds on passages, (B, P), in double precision."""
    reference = load_backend("reference")
    right = np.zeros((NODES, len(seeds)))
    right[:PASSAGES] = seeds.T
    steps = steps_for("chebyshev", 0.5, 1e-15)
    solved: AnyFloats = reference.diffuse(reference.put_graph(GRAPH), right, damping=0.5, steps=steps)[:PASSAGES].T
    return solved


def test_the_passage_part_is_that_of_a_full_solve(vectors: AnyFloats) -> None:
    made, question = diffused(vectors), vectors[7].astype(np.float64)
    product = vectors.astype(np.float64) @ question
    slope, offset = 0.05 / np.ptp(product), -0.05 * product.min() / np.ptp(product)
    wanted = full_solve((slope * product + offset)[None])[0]
    found = slope * (made.vectors.astype(np.float64) @ question) + offset * made.ones
    assert np.abs(found - wanted).max() <= SINGLE * wanted.max()


@pytest.mark.parametrize("backend", [ReferenceBackend(), CpuBackend(precision="float64")])
def test_in_double_precision_the_passage_part_is_the_full_solve(backend: CpuBackend, vectors: AnyFloats) -> None:
    right = np.zeros((NODES, WIDTH))
    right[:PASSAGES] = vectors
    steps = steps_for("chebyshev", 0.5, 1e-15)
    made = backend.diffuse(backend.put_graph(GRAPH), right, damping=0.5, steps=steps)[:PASSAGES]
    questions = vectors[:3].astype(np.float64)
    wanted = full_solve(questions @ vectors.T.astype(np.float64))
    assert np.abs(questions @ made.T - wanted).max() <= DOUBLE * np.abs(wanted).max()


def test_the_stated_error_bounds_the_true_one(vectors: AnyFloats) -> None:
    made, questions = diffused(vectors), vectors[:20].astype(np.float64)
    wanted = full_solve(questions @ vectors.T.astype(np.float64))
    degrees = load_backend("reference").put_graph(GRAPH).degrees[:PASSAGES]
    off = np.abs(questions @ made.vectors.T.astype(np.float64) - wanted)
    rounding = np.finfo(np.float32).eps * full_solve(np.ones((1, PASSAGES)))
    assert np.all(off <= made.error * degrees + rounding)
    assert 0 < made.error < 1e-6


def test_blocks_of_any_size_give_the_same_vectors(vectors: AnyFloats) -> None:
    one, other = diffused(vectors), diffused(vectors, budget_bytes=2**30)
    assert columns_at_once(NODES, 2**20) != columns_at_once(NODES, 2**30) or columns_at_once(NODES, 1) == 8
    assert np.abs(one.vectors - other.vectors).max() <= 1e-6


def test_finished_blocks_are_not_solved_again(
    tmp_path: Path, vectors: AnyFloats, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = diffused(vectors, tmp_path, budget_bytes=1)
    solved: list[int] = []
    solve = CpuBackend.diffuse
    monkeypatch.setattr(CpuBackend, "diffuse", lambda *a, **k: solved.append(1) or solve(*a, **k))
    (tmp_path / "columns-000016.npz").unlink()
    again = diffused(vectors, tmp_path, budget_bytes=1)
    assert len(solved) == 1
    assert np.array_equal(again.vectors, whole.vectors)
    assert again.error == whole.error


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-40], lambda data: b"", lambda data: data[:200] + b"x" + data[201:]]
)
def test_a_spoiled_block_is_solved_again(tmp_path: Path, vectors: AnyFloats, harm: object) -> None:
    whole = diffused(vectors, tmp_path, budget_bytes=1)
    path = tmp_path / "columns-000008.npz"
    path.write_bytes(harm(path.read_bytes()))  # type: ignore[operator]
    assert np.array_equal(diffused(vectors, tmp_path, budget_bytes=1).vectors, whole.vectors)


def test_progress_counts_columns_to_the_last(vectors: AnyFloats) -> None:
    seen: list[tuple[int, int]] = []
    diffuse_passages(
        GRAPH,
        vectors,
        damping=0.5,
        backend=load_backend("cpu"),
        budget_bytes=1,
        on_progress=lambda done, whole: seen.append((done, whole)),
    )
    assert seen[0] == (8, WIDTH + 1)
    assert seen[-1] == (WIDTH + 1, WIDTH + 1)


def test_the_estimate_grows_with_the_columns() -> None:
    few, many = (estimated_seconds(GRAPH, width, damping=0.5, backend=load_backend("cpu")) for width in (8, 80_000))
    assert 0 < few < many


def test_columns_are_diffused_in_multiples_of_a_cache_line() -> None:
    assert [columns_at_once(1000, budget) for budget in (1, 44_000 * 15, 44_000 * 16, 44_000 * 47, 2**40)] == [
        *(8, 8, 16, 32, 64),
    ]


@pytest.mark.parametrize("budget_bytes", [2**10, 2**20])
def test_in_another_order_of_the_nodes_the_vectors_are_the_same(
    vectors: AnyFloats, monkeypatch: pytest.MonkeyPatch, budget_bytes: int
) -> None:
    plain = diffused(vectors, budget_bytes=budget_bytes)
    monkeypatch.setattr("hippogpu.diffuse.ORDERED_NODES", 1)
    ordered = diffused(vectors, budget_bytes=budget_bytes)
    np.testing.assert_allclose(ordered.vectors, plain.vectors, rtol=0, atol=SINGLE * np.abs(plain.vectors).max())
    np.testing.assert_allclose(ordered.ones, plain.ones, rtol=SINGLE)
    assert ordered.error == pytest.approx(plain.error, rel=0.5)
