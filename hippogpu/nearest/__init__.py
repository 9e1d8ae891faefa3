"""Near vectors: which of many rows have the greatest inner products with a question, found exactly or by cells."""

from __future__ import annotations

from hippogpu.nearest.cells import CellRows
from hippogpu.nearest.exact import ExactRows
from hippogpu.nearest.filling import OnProgress, fact_cells
from hippogpu.nearest.seam import Near, Nearest

__all__ = ["CellRows", "ExactRows", "Near", "Nearest", "OnProgress", "fact_cells"]
