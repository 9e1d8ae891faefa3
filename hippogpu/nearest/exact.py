"""Every row is compared: the backend's blockwise product, which needs no other library."""

from __future__ import annotations

from typing import Any, NamedTuple

from hippogpu.backends import Backend
from hippogpu.nearest.seam import Near
from hippogpu.types import Floats


class ExactRows(NamedTuple):
    """Rows as they are put on a backend, where topk compares a query with all of them, block by block."""

    backend: Backend
    keys: Any

    @property
    def name(self) -> str:
        return "exact"

    @property
    def shape(self) -> tuple[int, int]:
        rows, width = self.keys.shape
        return rows, width

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def exact(self) -> bool:
        return True

    def looking(self, *, probes: int, shortlist: int) -> ExactRows:
        return self

    def topk(self, queries: Floats, k: int) -> Near:
        found = self.backend.topk(queries, self.keys, k)
        return Near(*found, exact=True)
