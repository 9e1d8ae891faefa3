"""The generated parts of docs/scale.md, and its plot: all of it from the stored results alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.scale.cost_tables import cost_blocks, kill_blocks
from bench.scale.quality_asking import GROUPS
from bench.scale.quality_plot import quality_plot
from bench.scale.quality_tables import (
    change_table,
    corpus_table,
    main_line,
    measures_table,
    recall_table,
    speed_table,
    summary,
    variant_table,
)
from hippogpu.evaluate.pages import Block, Heading, Picture, Rows, Text, as_markdown
from hippogpu.evaluate.places import write_text

RESULTS = Path(__file__).resolve().parents[1] / "results"
COST, QUALITY = RESULTS / "scale.json", RESULTS / "scale_quality.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
_PICTURE = "scale.svg"
_BLOCK = r"(<!-- scale {0} -->\n).*(<!-- /scale {0} -->)"

Stored = Mapping[str, Any]


def write_page(cost: Stored, quality: Stored, page: Path = PAGE) -> None:
    """The page with its generated parts written over, and the plot beside it."""
    write_text(page, with_tables(page.read_text(encoding="utf-8"), cost, quality))
    if quality.get("cases"):
        write_text(page.with_name(_PICTURE), plot(quality))


def with_tables(text: str, cost: Stored, quality: Stored) -> str:
    """The page's text, each marked part replaced by what the results say; what was not measured is said to be so."""
    parts = {"quality": _quality(quality), "cost": cost_blocks(cost), "kills": kill_blocks(cost)}
    for name, blocks in parts.items():
        said = as_markdown(blocks or [Text("No result is stored.")])
        pattern = re.compile(_BLOCK.format(name), re.DOTALL)
        text = pattern.sub(lambda found, said=said: f"{found[1]}\n{said}\n{found[2]}", text)  # type: ignore[misc]
    return text


def plot(quality: Stored) -> str:
    """The SVG of the main line."""
    return quality_plot(main_line(quality["cases"]), sets=quality["asked_passages"], modern=quality["modern_passages"])


def stored(path: Path) -> dict[str, Any]:
    """Results as they are stored; empty where there is no file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def _quality(results: Stored) -> list[Block]:
    cases = results.get("cases", {})
    line = main_line(cases)
    if not line:
        return []
    questions = results["questions"]
    blocks: list[Block] = [
        Text(
            f"{questions['both']} questions with {results['gold_passages']} gold passages. Up to "
            f"{results['asked_passages']:,} passages every distractor is one that the makers of the two sets chose; up "
            f"to {results['modern_passages']:,} the others are modern Wikipedia; **beyond, all are of the "
            "encyclopaedia of 1810**."
            + ("" if line[-1]["sources"]["of_1810"] else " No size below has a passage of 1810.")
        ),
        Picture(_PICTURE, "recall@5 of four methods against the number of passages, with 95 % intervals"),
        *([Text(summary(line))] if len(line) > 1 else []),
        Heading("What each index holds", 3),
        corpus_table(line),
        Heading("recall@5", 3),
    ]
    for group in GROUPS:
        blocks += [Text(f"**{group}**, {questions[group]} questions:"), recall_table(line, group)]
    if len(line) > 1:
        blocks += [Heading("The same questions, from the smallest size to each other", 3), change_table(line)]
    blocks += [Heading("Every measure, both sets", 3), measures_table(line)]
    variants = variant_table(cases)
    if variants.rows:
        blocks += [Heading("Synonyms by cells, and quantised facts", 3), variants]
    mixed = main_line(cases, "mixed")
    if mixed:
        blocks += [
            Heading("The second order", 3),
            Text("Distractors of all modern Wikipedia, shuffled: the two sets' own come no sooner than others."),
            *[part for part in (corpus_table(mixed), recall_table(mixed, "both")) if isinstance(part, Rows)],
        ]
    where = line[-1]["machine"]
    return [
        *blocks,
        Heading("Time", 3),
        Text(
            f"{where['cores']} cores. Where the load is above them, other processes shared these, and the clock says "
            "little: seconds of processor hold there too. Milliseconds: all questions in one call, twenty each, "
            "without encoding them, median of the calls; in brackets of processor. hippo2 walks by `power` here. "
            "Stages under a second are left out; *encode* looks vectors up in the pool."
        ),
        speed_table(line),
    ]
