"""Cost against passages as a picture, docs/ppr.svg; the same bytes from the same result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.ppr.results import costs, synthetic_graphs

PLOT = Path(__file__).resolve().parents[2] / "docs" / "ppr.svg"


def write_plot(results: Mapping[str, Any], path: Path = PLOT) -> None:
    """Milliseconds a question over passages, both logarithmic: ours drawn through, peers dashed."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    peers = {row["name"] for _, found in synthetic_graphs(results) for row in found["solvers"] if row["peer"]}
    # Glyphs stay text and ids are hashed with a fixed salt, so that the file depends on the result alone.
    with mpl.rc_context({"svg.hashsalt": "hippogpu", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 5.5), layout="constrained")
        axes = figure.subplots()
        axes.set_prop_cycle(color=[mpl.colormaps["tab20"](number) for number in range(20)])
        for name, cost in costs(results).items():
            axes.loglog(list(cost), list(cost.values()), "o--" if name in peers else "o-", label=name, markersize=4)
        axes.set(xlabel="passages", ylabel="milliseconds a question", title="Personalised PageRank, synthetic graphs")
        axes.grid(which="major", alpha=0.3)
        axes.legend(fontsize=8, ncols=2)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
