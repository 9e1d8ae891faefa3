"""How far an answer is from the exact masses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hippogpu.types import AnyFloats


class Errors(NamedTuple):
    """Greatest difference of a mass, and greatest sum of a row's differences, over the questions that were compared."""

    largest: float
    l1: float


def mass_errors(answer: AnyFloats, exact: AnyFloats) -> Errors:
    """Of masses (B, n), or (B, P) of passages alone, against the exact rows; not a number where an answer is none."""
    rows = min(len(answer), len(exact))
    apart = np.abs(answer[:rows].astype(np.float64) - exact[:rows, : answer.shape[1]])
    return Errors(float(apart.max()), float(apart.sum(axis=1).max()))
