"""What `python -m bench scale quality` does: sizes to cases, results into one file, a table for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.quality.results import write_results
from bench.report import print_rows
from bench.scale.quality import Bench, Case, cases_of, results_of, run_cases
from bench.scale.quality_asking import GROUPS, MEASURES, METHODS
from bench.scale.quality_corpus import Order, read_asked, read_sea

QUALITY = Path("bench/results/scale_quality.json")
LARGEST = 50_000


def measure_quality(
    work: Path,
    data: Path,
    sizes: Sequence[int] | None,
    exact_up_to: int,
    *,
    mixed: bool,
    path: Path,
    console: Console,
) -> bool:
    """Measures all sizes; the file has each case as soon as it is known. Whether all checks passed."""
    sea = read_sea(data, max(sizes or (LARGEST,)))
    order: Order = "mixed" if mixed else "near"
    cases = cases_of(sizes or (2_000, 5_000, sea.asked, 20_000, sea.modern, LARGEST), exact_up_to, order)
    bench = Bench(work, sea, read_asked(data, sea), console.print)

    def store(case: Case, result: dict[str, Any]) -> None:
        held = json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else {}
        held = {name: one for name, one in held.items() if name != case.name} | {case.name: result}
        write_results(path, results_of(bench, dict(sorted(held.items(), key=_place))))
        _show(case, result, console)

    return run_cases(bench, cases, store)


def _place(item: tuple[str, Mapping[str, Any]]) -> tuple[Any, ...]:
    case = item[1]
    return case["order"] != "near", case["size"], case["variant"] != "exact", case["variant"]


def _show(case: Case, result: Mapping[str, Any], console: Console) -> None:
    counts, seconds = result["counts"], result["build_s"]
    told = ", ".join(f"{name} {counts[name]:,}" for name in ("phrases", "facts", "synonyms", "edges"))
    console.print(f"{case.name}: {told}; " + ", ".join(f"{name} {value:,.1f} s" for name, value in seconds.items()))
    rows = []
    for group in GROUPS:
        for method in METHODS:
            found = result["methods"][method]["groups"][group]
            values = [100 * found["values"][name] for name in MEASURES]
            rows.append([group, method, *values, found["against_dense"]["recall@5"][3]])
    print_rows(case.name, ["questions", "method", *MEASURES, "to dense"], rows, console)
    for check in result["checks"]:
        if not check["passed"]:
            console.print(f"[red]FAILED[/red] {check['name']}: {check['found']}, wanted {check['wanted']}")
