"""The tables of docs/vectors.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path("docs/vectors.md")
_BLOCK = re.compile(r"(<!-- vectors tables -->\n).*(<!-- /vectors tables -->)", re.DOTALL)


def write_page(results: Mapping[str, Any], page: Path = PAGE) -> None:
    """The page with the tables of the results."""
    page.write_text(with_tables(page.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_tables(text: str, results: Mapping[str, Any]) -> str:
    tables = "\n".join(_set(name, found) for name, found in results["sets"].items())
    return _BLOCK.sub(lambda block: f"{block[1]}\n{tables}\n{block[2]}", text)


def _set(name: str, found: Mapping[str, Any]) -> str:
    where = found["machine"]
    told = (
        f"**{name}**: {found['passages']:,} passages, {found['facts']:,} facts of width {found['width']}, "
        f"{found['questions']:,} questions, {found['cells']:,} cells; {where['cores']} cores, {where['date']}, load "
        f"{where['load_before']} before.\n"
    )
    head = (
        "| store | recall of the top 5 | same first | least off, p95 | score off, p95 | R@5 hippo2 | R@5 hippo | "
        "bytes a fact | made in CPU s | CPU ms alone | CPU ms of 32 |"
    )
    lines = [_row(row) for row in found["rows"]]
    return "\n".join([told, head, "|---" * head.count(" | ") + "|---|", *lines, ""])


def _row(row: Mapping[str, Any]) -> str:
    cells = [
        row["store"],
        f"{100 * row['recall']:.2f}",
        f"{100 * row['same_first']:.1f}",
        f"{row['low_off']['p95']:.2g}",
        f"{row['score_off']['p95']:.2g}",
        *(_recall(row["rankings"][method]) for method in ("hippo2", "hippo")),
        f"{row['stored_bytes']:,.0f}" + (f" + {row['copied_bytes']:,.0f}" if row["copied_bytes"] else ""),
        f"{row['filling_s'] + row['opening_s']:.1f}",
        *(f"{row['ms'][batch]['median']:.2f}" for batch in ("1", "32")),
    ]
    return "| " + " | ".join(cells) + " |"


def _recall(found: Mapping[str, Any]) -> str:
    mean, low, high = (100 * value for value in found["difference"])
    off = "" if mean == low == high == 0 else f" ({mean:+.2f}, {low:+.2f} to {high:+.2f})"
    return f"{100 * found['recall@5']:.2f}{off}"
