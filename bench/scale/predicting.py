"""What a stage will take at a size, foretold from smaller ones by a power of the size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MOST_POWER = 2.0
FIGURES = ("wall_s", "anon_bytes")


def predictions(done: Mapping[int, Mapping[str, Mapping[str, float]]], passages: int) -> dict[str, dict[str, float]]:
    """Figures of each stage by name, from what the stage took at smaller sizes.

    done : size → stage → figure → value
    From two sizes or more: the power law through the two largest, its exponent cut to 0…2; from one: in proportion.
    """
    sizes = sorted(size for size in done if size < passages)
    if not sizes:
        return {}
    last, before = done[sizes[-1]], done[sizes[-2]] if len(sizes) > 1 else {}
    return {
        stage: {name: _at(passages, sizes, figures[name], before.get(stage, {}).get(name)) for name in figures}
        for stage, figures in last.items()
    }


def _at(passages: int, sizes: list[int], last: float, before: float | None) -> float:
    power = 1.0
    if before and last:
        power = min(max(math.log(last / before) / math.log(sizes[-1] / sizes[-2]), 0.0), MOST_POWER)
    return float(f"{last * (passages / sizes[-1]) ** power:.4g}")


def figures_of(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The figures that are foretold, of every stage of a result, those that the verb tells of its own stages too."""
    found = {name: {figure: value[figure] for figure in FIGURES} for name, value in stages.items() if "wall_s" in value}
    inner = stages.get("index", {}).get("stages_s", {})
    return found | {f"index: {name}": {"wall_s": seconds} for name, seconds in inner.items()}
