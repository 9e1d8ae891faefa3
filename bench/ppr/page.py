"""The tables of docs/ppr.md, written between its marks from the stored result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.ppr.tables import (
    CERTIFICATE_COLUMNS,
    SOLVER_COLUMNS,
    STEP_COLUMNS,
    certificate_rows,
    diffused_lines,
    graph_line,
    markdown,
    slope_columns,
    slope_rows,
    solver_rows,
    step_rows,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ppr.md"
_BLOCK = re.compile(r"(<!-- ppr tables -->\n).*(<!-- /ppr tables -->)", re.DOTALL)


def write_page(results: Mapping[str, Any]) -> None:
    """Replace the tables of docs/ppr.md."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_tables(text: str, results: Mapping[str, Any]) -> str:
    """The page with what stands between its two marks replaced by the tables of the result."""
    lines = ["", *_growth(results), ""]
    for name, found in results["graphs"].items():
        kind = found["graph"]["made_from"]["kind"]
        title = f"{found['graph']['passages']:,} passages" if kind == "synthetic" else f"The index {name}"
        lines += [f"### {title}", "", graph_line(found), "", *markdown(SOLVER_COLUMNS, solver_rows(found)), ""]
        lines += [*markdown(STEP_COLUMNS, step_rows(found)), ""]
        if "certificates" in found:
            lines += [*" ".join(diffused_lines(found)).splitlines(), ""]
            lines += [*markdown(CERTIFICATE_COLUMNS, certificate_rows(found)), ""]
    return _BLOCK.sub(lambda block: block[1] + "\n".join(lines) + "\n" + block[2], text)


def _growth(results: Mapping[str, Any]) -> list[str]:
    return ["### Growth", "", *markdown(slope_columns(results), slope_rows(results))]
