"""Tables of a result, for the console and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from bench.ppr.results import costs, slope
from bench.report import print_rows, shown

SOLVER_COLUMNS = (
    "solver", "B", "ms a question", "prepare s", "MiB", "GB moved", "GB/s", "% copy", "% gather",
    "largest error", "L1 error",
)  # fmt: skip
CERTIFICATE_COLUMNS = (
    "least ε", "certified %", "edges, median", "90 %", "99 %", "most",
    "ms in batches", "ms alone, median", "90 %", "99 %", "most",
)  # fmt: skip
STEP_COLUMNS = ("step", "B", "ms", "GB/s", "% copy", "% gather", "ours is faster by", "error")


def solver_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """One line a solver; what has no time says why."""
    return [_solver_row(row) for row in found["solvers"]]


def _solver_row(row: Mapping[str, Any]) -> list[str]:
    time = _time(row)
    moved = _between(_giga(row.get("bytes_lower")), _giga(row.get("bytes_upper"))) if "ms" in row else "–"
    rate = _between(row.get("lower_gbs"), row.get("upper_gbs"))
    errors = [_error(row.get("largest_error")), _error(row.get("l1_error"))]
    figures = [_figure(row.get(name)) for name in ("prepare_s", "peak_mib")]
    return [row["name"], str(row["batch"]), time, *figures, moved, rate, *_roof_shares(row), *errors]


def _time(row: Mapping[str, Any]) -> str:
    if row.get("absent"):
        return "not installed"
    if row.get("too_large"):
        return "graph too large for it"
    if "failed" in row:
        return str(row["failed"]).replace("|", "/")
    if "ms" not in row:
        return "error beyond its kind: not timed"
    return shown(row["ms"]) + (" one call" if row.get("first_call_only") else "")


def step_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """One line a step; the last but one column is its time ÷ the time of our own."""
    ours = {row["batch"]: row["ms"]["median"] for row in found["steps"] if row["name"] == "cpu-step" and "ms" in row}
    rows = []
    for row in found["steps"]:
        own = ours.get(row["batch"])
        ratio = f"{row['ms']['median'] / own:.2f}×" if own and "ms" in row else "–"
        rate = _between(row.get("lower_gbs"), row.get("upper_gbs"))
        shares, error = _roof_shares(row), _error(row.get("error"))
        rows.append([row["name"], str(row["batch"]), _time(row), rate, *shares, ratio, error])
    return rows


def slope_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """One line a solver: milliseconds a question at each size, and the exponent of its growth."""
    found = costs(results)
    sizes = sorted({size for cost in found.values() for size in cost})
    return [[name, *(_figure(cost.get(size)) for size in sizes), _figure(slope(cost))] for name, cost in found.items()]


def slope_columns(results: Mapping[str, Any]) -> list[str]:
    """The head of slope_rows."""
    sizes = sorted({size for cost in costs(results).values() for size in cost})
    return ["ms a question", *(f"{size:,}" for size in sizes), "exponent"]


def graph_line(found: Mapping[str, Any]) -> str:
    """What the graph is and where it was measured."""
    graph, machine, roof = found["graph"], found["machine"], found["roof"]
    gathers = ", ".join(f"{rate['median']:.3g} (B = {batch})" for batch, rate in roof["gather_gbs"].items())
    return (
        f"{graph['passages']:,} passages, {graph['phrases']:,} phrases, {graph['nonzeros']:,} non-zeros, "
        f"{graph['isolated']:,} nodes without edges. {machine['cpu']}, threads: {found['threads']}, {machine['date']}, "
        f"load before {machine['load_before']}. Copy {roof['copy_gbs']['median']:.3g} GB/s; gather {gathers} GB/s."
    )


def certificate_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """One line a depth of tightening: shares, edges touched and milliseconds a question."""
    return [
        [
            f"{depth['least_epsilon']:.0e}",
            f"{100 * depth['certified']:.1f}",
            *(f"{value:,.0f}" for value in depth["edges"].values()),
            _figure(depth["ms_in_batches"]),
            *(_figure(value) for value in depth["ms_alone"].values()),
        ]
        for depth in found["certificates"]["tightening"]
    ]


def diffused_lines(found: Mapping[str, Any]) -> list[str]:
    """What diffusion cost, where the time of a diffused ranking goes, and how far the passage part is off."""
    diffusion, certificates = found["diffusion"], found["certificates"]
    errors = ", ".join(f"{error:.1e} in {kind}" for kind, error in certificates["part"].items())
    lines = [
        f"Diffusion of {diffusion['columns']} columns: {diffusion['seconds']:,.1f} s, {diffusion['peak_mib']:,.0f} MiB "
        f"above the graph and vectors. Passage part against a full solve in float64: off by {errors}, of the row's "
        f"greatest. {certificates['questions']} questions below."
    ]
    for batch, parts in certificates["stages"].items():
        times = ", ".join(f"{name} {_figure(time['median'])}" for name, time in parts.items())
        lines.append(f"B = {batch}, ms a question: {times}.")
    if certificates["facts"]:
        facts = ", ".join(f"{_figure(time['median'])} (B = {b})" for b, time in certificates["facts"]["ms"].items())
        lines.append(f"Beside it, the five best of {certificates['facts']['facts']:,} facts: {facts} ms a question.")
    return lines


def print_graph(name: str, found: Mapping[str, Any], console: Console) -> None:
    """The graph's tables on the console."""
    console.print(graph_line(found))
    print_rows(f"{name}: solvers; median (least–greatest)", SOLVER_COLUMNS, solver_rows(found), console)
    if "certificates" in found:
        console.print("\n".join(diffused_lines(found)))
        print_rows(f"{name}: certified rankings", CERTIFICATE_COLUMNS, certificate_rows(found), console)
    print_rows(f"{name}: one step", STEP_COLUMNS, step_rows(found), console)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return head + [f"| {' | '.join(row)} |" for row in rows]


def _roof_shares(row: Mapping[str, Any]) -> list[str]:
    return [f"{row[name]:.0f}" if row.get(name) is not None else "–" for name in ("copy_percent", "gather_percent")]


def _between(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.3g}–{high:.3g}"


def _giga(count: int | None) -> float | None:
    return None if count is None else count / 1e9


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _error(value: float | None) -> str:
    return "–" if value is None else f"{value:.1e}"
