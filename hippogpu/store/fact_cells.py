"""The facts in cells of near ones, with a few bytes of each: plain arrays, from which near facts are found without a
look at all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError
from hippogpu.types import Floats, Ints, Longs, Ragged

CODE_VALUES = 256
# What is learned of unit vectors is never longer than 2; sums of a question with numbers up to this stay finite.
_MOST = 4.0
FACT_CELLS = {
    "fact_centroids": ("<f4", 2),
    "fact_cells_indptr": ("<i8", 1),
    "fact_cells": ("<i4", 1),
    "fact_codes": ("|u1", 2),
    "fact_codebooks": ("<f4", 3),
}
"""Roles of the files of FactCells, in the order of its fields, with type and number of axes of each."""


class FactCells(NamedTuple):
    """An inverted file with product quantisation: the facts of cell c are facts[indptr[c]:indptr[c+1]], ascending.

    centroids (cells, w) float32 · indptr (cells+1,) int64 · facts (F,) int32, each once
    codes (F, M) uint8, in the order of `facts` · codebooks (M, 256, d) float32 with (M − 1)·d < w ≤ M·d
    A fact's vector is about centroids[c] plus, side by side, codebooks[m, codes[i, m]] for each m.
    """

    centroids: Floats
    indptr: Longs
    facts: Ints
    codes: NDArray[np.uint8]
    codebooks: Floats

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def check(self, facts: int, width: int) -> FactCells:
        """Self; IndexDamagedError unless every fact is in one cell and all shapes and numbers can be searched."""
        shapes = self._misfit(facts, width)
        if shapes:
            raise IndexDamagedError(f"The cells of the facts do not fit: {shapes}. Index the corpus again.")
        Ragged(self.indptr, self.facts).check("cells of facts", below=facts)
        seen = np.zeros(facts, bool)
        seen[self.facts] = True
        if not seen.all():
            raise IndexDamagedError(f"Fact {int(np.argmin(seen))} is in no cell. Index the corpus again.")
        if not all(len(numbers) == 0 or np.abs(numbers).max() <= _MOST for numbers in (self.centroids, self.codebooks)):
            raise IndexDamagedError(
                f"A number in the cells of the facts is not within ±{_MOST:g}. Make them anew: index --force build."
            )
        return self

    def _misfit(self, facts: int, width: int) -> str:
        cells = len(self.indptr) - 1
        pieces, values, size = self.codebooks.shape
        if self.centroids.shape != (cells, width):
            return f"{cells} cells of width {width}, but centroids {self.centroids.shape}"
        if self.facts.shape != (facts,) or self.codes.shape != (facts, pieces):
            return f"{facts} facts in {pieces} bytes each, but facts {self.facts.shape}, codes {self.codes.shape}"
        if values != CODE_VALUES or not (pieces - 1) * size < width <= pieces * size:
            return f"codebooks {self.codebooks.shape} for a width of {width}"
        return ""
