"""Recall@5 with intervals as a picture, docs/quality.svg; the same bytes from the same results."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

from bench.quality.tables import all_rows
from hippogpu.errors import require_extra

_ACROSS = 3


def recall_plot(results: Mapping[str, Any], measure: str = "recall@5") -> str:
    """The SVG: a panel a set, a dot with its interval for each row without a comma in its name; "" without sets."""
    sets = {name: found for name, found in results["sets"].items() if not found["cases_set"]}
    if not sets:
        return ""
    mpl: Any = require_extra("matplotlib", package="matplotlib", extra="bench", purpose="Drawing the plot")
    from matplotlib.figure import Figure

    rows = [row for row in all_rows(sets) if "," not in row]
    # Glyphs stay text and ids are hashed with a fixed salt, so that the file depends on the results alone.
    with mpl.rc_context({"svg.hashsalt": "hippogpu", "svg.fonttype": "none", "font.size": 9}):
        down = math.ceil(len(sets) / _ACROSS)
        figure = Figure(figsize=(3.4 * _ACROSS, (0.26 * len(rows) + 1.1) * down), layout="constrained")
        panels = figure.subplots(down, _ACROSS, sharey=True, squeeze=False).ravel()
        for axes, (name, found) in zip(panels, sets.items(), strict=False):
            for place, row in enumerate(row for row in rows):
                if row in found["rows"]:
                    low, high = found["rows"][row]["intervals"][measure]
                    mean = found["rows"][row]["values"][measure]
                    axes.plot([100 * low, 100 * high], [place, place], color="#888", linewidth=1.5)
                    axes.plot([100 * mean], [place], "o", color="C0", markersize=5)
            axes.set_yticks(range(len(rows)), rows)
            axes.set_title(name, fontsize=9)
            axes.grid(axis="x", alpha=0.3)
        panels[0].invert_yaxis()
        for axes in panels[len(sets) :]:
            axes.set_axis_off()
        figure.supxlabel(f"{measure}, percent, with 95 % intervals", fontsize=9)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
