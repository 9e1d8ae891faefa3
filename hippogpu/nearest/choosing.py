"""Which store finds the facts of an index."""

from __future__ import annotations

from hippogpu.backends import Backend
from hippogpu.config import RunConfig
from hippogpu.nearest.cagra import cagra_rows
from hippogpu.nearest.cells import CellRows
from hippogpu.nearest.exact import ExactRows
from hippogpu.nearest.faiss_rows import faiss_cells, faiss_rows
from hippogpu.nearest.seam import Nearest
from hippogpu.precision import Vectors
from hippogpu.store.fact_cells import FactCells


def near_rows(vectors: Vectors, cells: FactCells | None, backend: Backend, run: RunConfig) -> Nearest:
    """What finds rows (F ≥ 1, w) that are near to questions: by the cells where there are any.

    cells passed FactCells.check. MissingExtraError where the package of run.fact_store is absent.
    """
    own = CellRows(cells, vectors) if cells is not None else ExactRows(backend, backend.put(vectors))
    if run.fact_store == "own":
        return own
    if run.fact_store == "cagra":
        return cagra_rows(vectors, backend, own)
    gpu = backend.name in ("cuda", "cugraph")
    if cells is not None:
        return faiss_cells(cells, vectors, own, gpu=gpu, temporary_bytes=run.budget_bytes)
    return faiss_rows(vectors, own, gpu=gpu, temporary_bytes=run.budget_bytes)
