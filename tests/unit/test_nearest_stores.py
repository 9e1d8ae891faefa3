"""Stores of other libraries find what a look at every row finds, and say what they need."""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nearest_cases import ROUNDING, WIDTH, truth, unit_rows

from hippogpu.backends import load_backend
from hippogpu.backends.devices import find_device
from hippogpu.config import RunConfig
from hippogpu.errors import HippoError, MissingExtraError, UsageError
from hippogpu.nearest import CellRows, ExactRows, Nearest, near_rows
from hippogpu.nearest import cagra as cagra_module
from hippogpu.nearest.cagra import cagra_rows
from hippogpu.nearest.faiss_gpu import MOST_ON_GPU, Gpus, all_gpus, flat_on, spread
from hippogpu.nearest.filling import fact_cells
from hippogpu.precision import Vectors, float_rows, rounded

KINDS = ("float32", "float16", "int8")
FAISS = RunConfig(fact_store="faiss", backend="cpu")


def by_faiss(rows: Vectors, *, cells: bool = False) -> Nearest:
    pytest.importorskip("faiss")
    return near_rows(rows, fact_cells(rows) if cells else None, load_backend("cpu"), FAISS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "queries", "k"), [(1, 1, 1), (31, 7, 99), (1000, 33, 5), (1000, 1, 1000)])
def test_flat_faiss_finds_what_a_look_at_every_row_finds(kind: Any, rows: int, queries: int, k: int) -> None:
    stored, asked = rounded(unit_rows(rows), kind), unit_rows(queries, seed=1)
    store = by_faiss(stored).looking(probes=1, shortlist=rows)
    found, (ids, scores, low, high) = store.topk(asked, k), truth(stored, asked, k)
    np.testing.assert_allclose(found.scores, scores, atol=ROUNDING)
    np.testing.assert_allclose(np.stack([found.low, found.high]), np.stack([low, high]), atol=ROUNDING)
    assert found.ids.shape == ids.shape
    assert (store.name, found.exact) == (f"faiss-{kind}", kind != "int8")


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_more_equal_rows_than_a_list_has_come_in_the_order_of_their_numbers(kind: Any) -> None:
    rows = np.repeat(unit_rows(5), 200, axis=0)
    found = by_faiss(rounded(rows, kind)).topk(rows[:1], 9)
    assert found.ids[0].tolist() == list(range(9))


def test_faiss_finds_by_our_cells_what_our_own_loop_finds() -> None:
    rows, asked = unit_rows(3_000), unit_rows(33, seed=2)
    store = by_faiss(rows, cells=True).looking(probes=5, shortlist=64)
    ours = CellRows(fact_cells(rows), rows, probes=5, shortlist=64)
    found, expected = store.topk(asked, 5), ours.topk(asked, 5)
    # The 64th fact by its bytes may be another where two are equal but for rounding.
    assert np.mean(found.ids == expected.ids) > 0.99
    np.testing.assert_allclose(found.low, expected.low, atol=ROUNDING)
    assert (store.name, found.exact) == ("faiss-ivfpq", False)


def test_a_width_that_fills_no_whole_piece_is_padded() -> None:
    rows = unit_rows(400)
    assert WIDTH % 8
    store = by_faiss(rows, cells=True).looking(probes=99, shortlist=400)
    np.testing.assert_allclose(store.topk(rows[:7], 3).scores, truth(rows, rows[:7], 3)[1], atol=ROUNDING)


def test_where_cells_hold_fewer_than_asked_for_our_own_loop_looks_further() -> None:
    rows = unit_rows(2_000)
    found = by_faiss(rows, cells=True).looking(probes=1, shortlist=1).topk(rows[:3], 1_500)
    assert all(len(set(row)) == 1_500 for row in found.ids.tolist())


def test_more_rows_than_a_gpu_selects_are_asked_of_our_own_product() -> None:
    rows = unit_rows(300)
    store = by_faiss(rows)._replace(most=8)  # type: ignore[attr-defined]
    found, expected = store.topk(rows[:3], 20), truth(rows, rows[:3], 20)
    np.testing.assert_allclose(found.scores, expected[1], atol=ROUNDING)


@pytest.mark.parametrize("queries", [np.empty((0, WIDTH), np.float32)])
def test_no_question_finds_nothing(queries: Any) -> None:
    assert by_faiss(unit_rows(7)).topk(queries, 3).ids.shape == (0, 3)


def test_a_call_that_means_nothing_is_refused() -> None:
    for queries, k in ((unit_rows(1), 0), (unit_rows(1, width=8), 1), (np.full((1, WIDTH), np.nan, np.float32), 1)):
        with pytest.raises(UsageError):
            by_faiss(unit_rows(7)).topk(queries, k)


def test_shards_are_searched_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")
    from hippogpu.nearest import faiss_rows

    rows = unit_rows(301)
    parts = [lambda: faiss.IndexFlatIP(WIDTH)] * 3
    index = faiss_rows._shards(faiss, rows, parts)
    assert index.search(rows[[0, 150, 300]], 1)[0][:, 0] == pytest.approx([1, 1, 1], abs=ROUNDING)
    found = index.search(rows[[150, 300]], 2)[1]
    products = float_rows(rows, slice(None)) @ rows[[150, 300]].T
    assert [products[row[0], column] for column, row in enumerate(found)] == pytest.approx([1, 1], abs=ROUNDING)


def test_without_faiss_the_error_names_the_extra_and_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r'"own".*hippogpu\[faiss\]'):
        near_rows(unit_rows(7), None, load_backend("cpu"), FAISS)


def test_a_graph_of_cuvs_is_refused_without_a_gpu() -> None:
    with pytest.raises(UsageError, match="needs a GPU"):
        near_rows(unit_rows(7), None, load_backend("cpu"), RunConfig(fact_store="cagra"))


def test_without_cuvs_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuvs", None)
    rows, backend = unit_rows(7), load_backend("cpu")
    with pytest.raises(MissingExtraError, match="cuvs13"):
        cagra_rows(rows, SimpleNamespace(name="cuda"), ExactRows(backend, rows))  # type: ignore[arg-type]


class Cagra:
    """Stands for cuVS: an index that finds the rows by a product, as device arrays that are fetched."""

    def IndexParams(self, **given: Any) -> Any:
        return given

    def SearchParams(self, *, itopk_size: int) -> int:
        return itopk_size

    def build(self, parameters: Any, rows: Any) -> Any:
        assert (parameters["metric"], rows.dtype) == ("inner_product", np.float16)
        return rows.astype(np.float32)

    def search(self, most: int, index: Any, queries: Any, count: int) -> Any:
        assert (most % 32, most >= count, queries.dtype) == (0, True, np.float16)
        ids = np.argsort(-(queries.astype(np.float32) @ index.T), axis=1)[:, :count].astype(np.uint32)
        ids[:, -1] = 2**32 - 1
        return None, SimpleNamespace(copy_to_host=lambda: ids)


def test_what_a_graph_finds_is_compared_by_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cagra_module, "_cagra", Cagra)
    rows, asked, backend = unit_rows(600), unit_rows(7, seed=1), load_backend("cpu")
    here = SimpleNamespace(name="cuda", put=backend.put)
    store = cagra_rows(rows, here, ExactRows(backend, rows))  # type: ignore[arg-type]
    found, expected = store.looking(probes=1, shortlist=99).topk(asked, 5), truth(rows, asked, 5)
    np.testing.assert_allclose(found.scores, expected[1], atol=ROUNDING)
    np.testing.assert_allclose(found.low, expected[2], atol=ROUNDING)
    assert (found.exact, store.topk(asked, 600).exact) == (False, True)


def test_faiss_without_a_gpu_says_so() -> None:
    faiss = pytest.importorskip("faiss")
    if faiss.get_num_gpus():
        pytest.skip("FAISS sees a GPU here")
    with pytest.raises(HippoError, match="faiss-gpu"):
        all_gpus(faiss, temporary_bytes=1)


class Recorder(SimpleNamespace):
    """Stands for the classes of faiss-gpu, which faiss-cpu has not, and keeps what they are given."""

    INDICES_32_BIT = 2

    def __init__(self, faiss: Any) -> None:
        self.given: list[Any] = []
        # The function that is called is there without a GPU: its own signature takes what we give.
        signature = inspect.signature(faiss.index_cpu_to_gpu_multiple_py)

        def multiple(*values: Any, **named: Any) -> str:
            self.given.append(signature.bind(*values, **named).arguments)
            return "on the GPUs"

        super().__init__(
            index_cpu_to_gpu_multiple_py=multiple,
            GpuMultipleClonerOptions=SimpleNamespace,
            GpuIndexFlatConfig=SimpleNamespace,
            GpuIndexFlatIP=lambda *values: self.given.append(values) or "flat",
        )


@pytest.mark.parametrize("count", [1, 3])
def test_an_index_of_cells_is_cut_over_several_gpus_and_whole_on_one(count: int) -> None:
    faiss = pytest.importorskip("faiss")
    recorder = Recorder(faiss)
    gpus = Gpus(recorder, tuple(range(count)), tuple(f"resources {n}" for n in range(count)))
    index = SimpleNamespace(pq=SimpleNamespace(M=48))
    assert spread(gpus, index) == "on the GPUs"
    [given] = recorder.given
    assert (given["resources"], given["gpus"]) == ([f"resources {n}" for n in range(count)], list(range(count)))
    assert (given["index"], given["co"].shard, given["co"].common_ivf_quantizer) == (index, count > 1, True)


def test_codes_that_no_gpu_search_takes_are_refused() -> None:
    with pytest.raises(HippoError, match="codes of 5 bytes"):
        spread(Gpus(None, (0,), ("r",)), SimpleNamespace(pq=SimpleNamespace(M=5)))


def test_a_flat_index_on_a_gpu_gets_its_device_and_type() -> None:
    recorder = Recorder(pytest.importorskip("faiss"))
    flat_on(Gpus(recorder, (0, 1), ("a", "b")), 384, 1, half=True)
    [(resources, width, config)] = recorder.given
    assert (resources, width, config.device, config.useFloat16) == ("b", 384, 1, True)


def on_device(store: Any, *, cells: bool, kind: Any = "float32") -> tuple[Vectors, Nearest]:
    """A store on the GPU; the test is skipped where there is none, or without the package."""
    found = find_device()
    if found.device is None:
        pytest.skip(f"no CUDA device: {found.reason}")
    pytest.importorskip("cuvs" if store == "cagra" else "faiss")
    rows = rounded(unit_rows(5_000, width=64), kind)
    backend = load_backend("cuda")
    return rows, near_rows(rows, fact_cells(rows) if cells else None, backend, RunConfig(fact_store=store))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [5, MOST_ON_GPU + 1])
def test_flat_faiss_on_a_gpu(kind: Any, k: int) -> None:
    rows, store = on_device("faiss", cells=False, kind=kind)
    asked = unit_rows(33, seed=1, width=64)
    expected = truth(rows, asked, k)
    found = store.topk(asked, k)
    assert found.scores.shape == expected[1].shape
    np.testing.assert_allclose(found.scores[:, 0], expected[1][:, 0], atol=1e-3)


@pytest.mark.parametrize(("store", "cells"), [("faiss", True), ("cagra", False)])
def test_approximate_stores_on_a_gpu_find_most_facts(store: Any, cells: bool) -> None:
    rows, near = on_device(store, cells=cells)
    asked = unit_rows(33, seed=1, width=64)
    found, expected = near.topk(asked, 5), truth(rows, asked, 5)[0]
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found.ids.tolist(), expected.tolist(), strict=True)])
    assert recall > 0.9


def test_the_own_product_on_a_gpu_finds_what_it_finds_on_the_cpu() -> None:
    if find_device().device is None:
        pytest.skip("no CUDA device")
    rows, asked = unit_rows(3_000, width=64), unit_rows(7, seed=1, width=64)
    stores = [ExactRows(backend, backend.put(rows)) for backend in map(load_backend, ("cpu", "cuda"))]
    one, other = (store.topk(asked, 5) for store in stores)
    np.testing.assert_allclose(one.scores, other.scores, atol=ROUNDING)
