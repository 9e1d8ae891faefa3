"""What a stage will take at a size, foretold from smaller ones by a power of the size."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bench.scale.ledger import Stage

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


def figures_by_size(stages: Mapping[str, Stage], settings: str) -> dict[int, dict[str, dict[str, float]]]:
    """What finished stages took, by size and stage, those that the verb tells of its own stages too.

    stages : by names such as 10000-compact/index, as a ledger has them; those of other settings are left out
    """
    found: dict[int, dict[str, dict[str, float]]] = {}
    for name, stage in stages.items():
        case, _, step = name.partition("/")
        size, _, own = case.partition("-")
        if own not in ("", settings):
            continue
        value = stage.value()
        figures = found.setdefault(int(size), {})
        figures[step] = {figure: value[figure] for figure in FIGURES}
        if step == "index":
            figures |= {f"index: {one}": {"wall_s": seconds} for one, seconds in stage.said["seconds"].items()}
    return found
