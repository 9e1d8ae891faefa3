"""Times as medians with their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np


class Spread(TypedDict):
    """Median, least and greatest of some times, and how many there were."""

    median: float
    least: float
    greatest: float
    repeats: int


def spread(times: Sequence[float]) -> Spread:
    """The four figures, rounded to five digits."""
    low, middle, high = (float(f"{value:.5g}") for value in (min(times), np.median(times), max(times)))
    return {"median": middle, "least": low, "greatest": high, "repeats": len(times)}
