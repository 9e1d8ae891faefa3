"""recall@5 against the number of passages as a picture, docs/scale.svg; the same bytes from the same results."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from bench.scale.quality_asking import GROUPS, MAIN, METHODS
from hippogpu.errors import require_extra

_COLOURS = {"dense": "C0", "bm25": "C1", "hippo2": "C2", "hippo": "C3"}
_ASIDE = 1.018
"""Methods stand a little aside of each other, so that their intervals can be told apart."""


def quality_plot(line: Sequence[Mapping[str, Any]], *, sets: int, modern: int) -> str:
    """The SVG: a panel for both sets and one for each, a line a method, 95 % intervals; "" without cases.

    sets   : passages of the two sets whose questions are asked: up to there each distractor is one of theirs
    modern : passages of modern Wikipedia: what is beyond is of 1810
    """
    if not line:
        return ""
    mpl: Any = require_extra("matplotlib", package="matplotlib", extra="bench", purpose="Drawing the plot")
    from matplotlib.figure import Figure

    # Glyphs stay text and ids are hashed with a fixed salt, so that the file depends on the results alone.
    with mpl.rc_context({"svg.hashsalt": "hippogpu", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(10.5, 4.2), layout="constrained")
        panels = figure.subplots(1, len(GROUPS), sharey=True)
        for axes, group in zip(panels, GROUPS, strict=True):
            _panel(axes, line, group, sets=sets, modern=modern)
        panels[0].set_ylabel(f"{MAIN}, percent, with 95 % intervals")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(METHODS))
        figure.supxlabel("passages in the index", fontsize=9)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _panel(axes: Any, line: Sequence[Mapping[str, Any]], group: str, *, sets: int, modern: int) -> None:
    sizes = [case["size"] for case in line]
    for place, method in enumerate(METHODS):
        found = [case["methods"][method]["groups"][group] for case in line]
        means = [100 * one["values"][MAIN] for one in found]
        bounds = [[100 * bound for bound in one["intervals"][MAIN]] for one in found]
        off = [[mean - low for mean, (low, _) in zip(means, bounds, strict=True)]]
        off.append([high - mean for mean, (_, high) in zip(means, bounds, strict=True)])
        beside = [size * _ASIDE ** (place - (len(METHODS) - 1) / 2) for size in sizes]
        axes.errorbar(
            beside, means, yerr=off, marker="o", markersize=4, linewidth=1.2, elinewidth=0.9, capsize=2,
            color=_COLOURS[method], label=method,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(sizes, [_short(size) for size in sizes], fontsize=8, rotation=60)
    axes.set_xticks([], minor=True)
    for size, what in ((sets, "others from here"), (modern, "1810 from here")):
        if sizes[0] < size < sizes[-1]:
            axes.axvline(size, color="#999", linewidth=0.8, linestyle=":")
            axes.text(
                size, 0.01, f" {what}", rotation=90, va="bottom", ha="left", fontsize=7, color="#555",
                transform=axes.get_xaxis_transform(),
            )  # fmt: skip
    questions = line[0]["methods"][METHODS[0]]["groups"][group]["questions"]
    axes.set_title(f"{group}: {questions} questions", fontsize=9)
    axes.grid(axis="y", alpha=0.3)


def _short(size: int) -> str:
    return f"{size / 1000:.3g}k"
