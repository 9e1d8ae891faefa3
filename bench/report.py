"""Results as a table for people and as JSON for the record."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.checks import Check

PACKAGES = ("hippogpu", "numpy", "scipy", "numba", "pyarrow", "tokenizers")


def machine() -> dict[str, Any]:
    """Date, processor, cores, thread limits and versions; nothing that names the machine or its folders."""
    limits = {name: os.environ[name] for name in sorted(os.environ) if name.endswith("_NUM_THREADS")}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 2),
        "thread_limits": limits,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def cpu_model() -> str:
    """The processor's name as Linux gives it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def print_checks(checks: Sequence[Check], console: Console) -> None:
    """One row a check; those that failed are marked."""
    table = Table("check", "found", "wanted", "", title="checks")
    for check in checks:
        mark = "[green]ok[/green]" if check.passed else "[red]FAILED[/red]"
        table.add_row(check.name, shown(check.found), shown(check.wanted), mark)
    console.print(table)


def print_rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], console: Console) -> None:
    """A table of figures."""
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    console.print(table)


def shown(value: Any) -> str:
    """A figure as people read it."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 0.01 else f"{value:,.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict) and "median" in value:
        return f"{value['median']:,.4g} ({value['least']:,.4g}–{value['greatest']:,.4g})"
    if isinstance(value, (list, tuple)):
        return " / ".join(shown(part) for part in value)
    return "–" if value is None else str(value)


def write_json(path: Path, result: Mapping[str, Any]) -> None:
    """The result as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
