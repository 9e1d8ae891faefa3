"""The stored result: one entry a graph, and what follows from several of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parents[1] / "results" / "ppr.json"


def read_results(path: Path) -> dict[str, Any]:
    """The file's result; an empty one when there is no file yet."""
    if not path.exists():
        return {"bench": "ppr", "graphs": {}}
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def merged(results: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The result with that graph's entry in place of an earlier one: synthetic graphs by size, then the others."""
    graphs = {**results["graphs"], name: found}
    ordered = sorted(graphs, key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0, key))
    return {**results, "graphs": {key: graphs[key] for key in ordered}}


def synthetic_graphs(results: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Passages and entry of each synthetic graph, ascending."""
    for found in results["graphs"].values():
        if found["graph"]["made_from"]["kind"] == "synthetic":
            yield found["graph"]["passages"], found


def costs(results: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Median milliseconds a question of each solver by passages of the synthetic graph, where it was timed."""
    found: dict[str, dict[int, float]] = {}
    for passages, entry in synthetic_graphs(results):
        for row in entry["solvers"]:
            if "ms" in row:
                found.setdefault(row["name"], {})[passages] = row["ms"]["median"]
    return found


def slope(cost: Mapping[int, float]) -> float | None:
    """Exponent of the growth: the least-squares slope of log time against log passages; None below two sizes."""
    if len(cost) < 2:
        return None
    return float(np.polyfit(np.log(list(cost)), np.log(list(cost.values())), 1)[0])
