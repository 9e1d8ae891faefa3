"""Centres as they are after a round, kept so that a killed run does not learn them again."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hippogpu.synonyms.kept import keep, kept
from hippogpu.types import Floats, Longs


class Centres(NamedTuple):
    """groups (T, w) and cells (C, w) float32 unit rows; group t has the cells from starts[t] to starts[t+1]."""

    groups: Floats
    cells: Floats
    starts: Longs


def keep_centres(folder: Path, number: int, centres: Centres, random: np.random.Generator) -> None:
    """Keeps the centres of a round, and where the draw of random numbers stands."""
    state = np.frombuffer(json.dumps(random.bit_generator.state).encode("ascii"), np.uint8)
    sizes = np.array([*centres.groups.shape, len(state)], np.int64)
    keep(folder / f"centres-{number}", len(centres.groups), len(centres.cells), [sizes, *centres, state])


def kept_centres(folder: Path, number: int) -> tuple[Centres, dict[str, Any]] | None:
    """The centres of a round and the state to go on from, None where they are not there whole."""
    there = kept(folder / f"centres-{number}")
    if there is None:
        return None
    groups, width, state = np.frombuffer(there.body[:24].tobytes(), np.int64).tolist()
    ends = np.cumsum([24, 4 * width * groups, 4 * width * there.second, 8 * (groups + 1), state])
    parts = [there.body[first:last] for first, last in pairwise(ends.tolist())]
    rows = [part.view(np.float32).reshape(-1, width) for part in parts[:2]]
    starts = np.frombuffer(parts[2].tobytes(), np.int64)
    return Centres(rows[0], rows[1], starts), json.loads(parts[3].tobytes())
