"""Near vectors: which of many rows have the greatest inner products with a question, found exactly or by cells.

filling, which makes cells, compiles loops and is imported where they are made.
"""

from __future__ import annotations

from hippogpu.nearest.cells import CellRows
from hippogpu.nearest.choosing import near_rows
from hippogpu.nearest.exact import ExactRows
from hippogpu.nearest.seam import Near, Nearest

__all__ = ["CellRows", "ExactRows", "Near", "Nearest", "near_rows"]
