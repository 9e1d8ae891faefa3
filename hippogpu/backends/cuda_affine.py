"""What the passage seeds add to a ranking on the device, and how far it may be off."""

from __future__ import annotations

from typing import Any, NamedTuple

from hippogpu.backends.values import PassagePart

# Relative error of one rounding.
SINGLE, DOUBLE = 2.0**-24, 2.0**-53


class Affine(NamedTuple):
    """The passage part of a block: slope·(diffused·query) + offset·ones, its product in float32 (b, P) float64."""

    scores: Any
    queries: Any
    slope: Any
    offset: Any
    norms: Any
    error: float

    @classmethod
    def of(cls, xp: Any, part: PassagePart, block: slice) -> Affine:
        queries = xp.asarray(part.queries[block], dtype=xp.float64)
        slope, offset = (xp.asarray(array[block], dtype=xp.float64) for array in (part.slope, part.offset))
        products = (queries.astype(xp.float32) @ part.diffused.T).astype(xp.float64)
        scores = slope[:, None] * products + offset[:, None] * part.ones.astype(xp.float64)
        return cls(scores, queries, slope, offset, xp.sqrt(xp.square(queries).sum(axis=1)), part.error)

    def doubt(self, xp: Any, rows: Any, norms: Any, ones: Any, degrees: Any, precision: float) -> Any:
        """The most that the passage part may be off, either way.

        A sum of w products is off by w roundings of ‖row‖ · ‖query‖ at most; what is stored was rounded to float32
        a few times, and comes from a system that was solved within part.error (of rows up to a thousandth too long).
        """
        factor = (self.queries.shape[1] + 8) * precision + 4 * SINGLE
        length, offset = xp.abs(self.slope[rows]) * self.norms[rows], xp.abs(self.offset[rows])
        rounding = factor * (length[:, None] * norms + offset[:, None] * xp.abs(ones))
        return rounding + 1.001 * self.error * (length + offset)[:, None] * degrees

    def exact(self, xp: Any, rows: Any, diffused: Any, ones: Any) -> Any:
        """The passage part of candidates, diffused (b, c, w), in float64."""
        products = (diffused.astype(xp.float64) * self.queries[rows][:, None, :]).sum(axis=2)
        return self.slope[rows][:, None] * products + self.offset[rows][:, None] * ones
