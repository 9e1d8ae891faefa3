"""The method hippo where a backend's arrays are no NumPy arrays: it takes nothing from there but through get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hippo_cases import ASKED, HIPPO, every_edge
from method_cases import rank

from hippogpu.backends import load_backend
from hippogpu.backends.cpu import CpuBackend
from hippogpu.methods import load
from hippogpu.store import current_manifest, load_snapshot
from hippogpu.types import AnyFloats, Ints


class Distant:
    """An array of a device: NumPy may neither look into it nor work with it."""

    __array_ufunc__ = None

    def __init__(self, held: AnyFloats) -> None:
        self.held, self.dtype, self.shape, self.ndim = held, held.dtype, held.shape, held.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyFloats:
        raise TypeError("an array of the device was taken for one of NumPy")

    def __len__(self) -> int:
        return len(self.held)


def near(array: Any) -> Any:
    return array.held if isinstance(array, Distant) else array


class DistantBackend(CpuBackend):
    """The CPU, behind arrays that only it can read, as a GPU has them."""

    def put(self, array: Any) -> Any:
        return Distant(super().put(near(array)))

    def get(self, array: Any) -> AnyFloats:
        return super().get(near(array))

    def scores(self, queries: Any, keys: Any) -> Any:
        return Distant(super().scores(near(queries), near(keys)))

    def select(self, scores: Any, k: int) -> Ints:
        return super().select(near(scores).astype(np.float32), k)

    def topk(self, queries: Any, keys: Any, k: int) -> Any:
        return super().topk(near(queries), near(keys), k)

    def diffuse(self, graph: Any, columns: Any, **how: Any) -> Any:
        return Distant(super().diffuse(graph, near(columns), **how))


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_edge(tmp_path_factory.mktemp("device") / "small.hippo")


@pytest.mark.parametrize(
    "settings",
    [
        *({}, {"solver": "power"}, {"solver": "chebyshev"}, {"rerank": "lead"}, {"rerank": "none"}, {"doubt": 0.5}),
        *({"focus": 2.0}, {"hubs": 0.2}, {"synonyms": False, "focus": 1.0}, {"link": "phrase"}, {"link": "entity"}),
    ],
    ids=str,
)
def test_it_ranks_on_a_device_as_on_the_host(edges: Path, settings: dict[str, Any]) -> None:
    snapshot, config = load_snapshot(edges, current_manifest(edges)), replace(HIPPO, **settings)
    host, device = (
        rank(load(snapshot, backend), ASKED, config, [["Ada"]] * len(ASKED))
        for backend in (load_backend("cpu"), DistantBackend())
    )
    for one, other in zip(device, host, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
