"""The tables of docs/bench.md, generated from the JSON of the benches: python -m bench guide."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "bench.md"
RESULTS = ROOT / "bench" / "results"
_BLOCK = r"(<!-- {0} table -->\n).*(<!-- /{0} table -->)"


def guide() -> None:
    """Write the tables of the stored results of growth, opening and concurrent into docs/bench.md."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), stored_results()), encoding="utf-8")


def stored_results() -> dict[str, Any]:
    """The committed results by bench; a bench without one is left out."""
    paths = {name: RESULTS / f"{name}.json" for name in TABLES}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.is_file()}


def with_tables(page: str, results: Mapping[str, Any]) -> str:
    """The page with what stands between the two marks of each result replaced by its tables."""
    for name, result in results.items():
        page = _replaced(page, name, "\n".join([*TABLES[name](result), _machine(result["machine"]), ""]))
    return page


def growth(result: Mapping[str, Any]) -> list[str]:
    """A table a rule of diffusion, and that of adding 1 %."""
    lines: list[str] = []
    for rule, found in result["rules"].items():
        rows = [
            [
                f"{row['passages']:,}",
                _spread(row["commit_s"]),
                _short(row["linear_s"]["median"]),
                _short(row["one_shot_s"]),
            ]
            for row in found["marks"]
        ]
        head = [f"passages, `--diffuse {rule}`", "seconds a commit", "of which linear stages", "one commit of all, s"]
        lines += [*_table(head, rows), ""]
        lines += [
            f"{found['commits']:,} commits took {_short(found['total_s'])} s, one {_short(found['one_shot_s'])} s. "
            f"A commit grows as passages^{found['exponent']:.2f}, "
            f"its linear stages as passages^{found['exponent_linear']:.2f}.",
            "",
        ]
    rows = [
        [
            f"{row['passages']:,} + {row['added']}",
            *(_short(row[name]) for name in ("added_s", "one_shot_s")),
            f"{row['share_of_one_shot']:.0%}",
        ]
        for row in result["shares"]
    ]
    return [*lines, *_table(["adding 1 %", "seconds", "one commit of all, s", "share"], rows), ""]


def opening(result: Mapping[str, Any]) -> list[str]:
    """A table an index: milliseconds of each step, fresh and warm, and the peak memory of a fresh process."""
    lines: list[str] = []
    for name, found in result["indexes"].items():
        rows = [
            [step, _ms(row["fresh_s"]), _ms(row["warm_s"]), f"{row['peak_mib']['median']:,.0f}"]
            for step, row in found["steps"].items()
        ]
        what = f"{name}: {found['counts']['passages']:,} passages, {found['bytes'] / 2**20:,.0f} MiB"
        lines += [*_table([what, "ms, fresh process", "ms, warm", "peak MiB"], rows), ""]
        lines += [f"A fresh process imports for {_ms(found['import_s'])} ms before.", ""]
    return lines


def concurrent(result: Mapping[str, Any]) -> list[str]:
    """A row a case."""
    rows = [
        [
            f"{row['processes']} × {row['threads']}, {row['backend']}, {row['layer'] or '–'}",
            f"{row['questions']:,}",
            f"{row['questions_a_second']:,.0f}",
            str(row["generations_seen"]),
            _short(row["commit_s"]["median"]),
            *(_pair(row, name, scale) for name, scale in (("rss", 2**20), ("files", 1), ("maps", 1))),
        ]
        for row in result["cases"]
    ]
    head = ["processes × threads, backend, layer", "questions", "a second", "generations met", "seconds a commit"]
    settings = result["settings"]
    passed = f"{sum(check['passed'] for check in result['checks'])} of {len(result['checks'])} checks passed"
    after = f"{settings['generations']} generations of {settings['passages']:,} passages; {passed}."
    return [*_table([*head, "MiB, 10th → end", "open files", "mapped files"], rows), "", after, ""]


TABLES: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "growth": growth,
    "opening": opening,
    "concurrent": concurrent,
}


def _replaced(page: str, name: str, lines: str) -> str:
    return re.sub(_BLOCK.format(name), lambda found: found[1] + lines + found[2], page, flags=re.DOTALL)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def _machine(machine: Mapping[str, Any]) -> str:
    return f"On {machine['cpu']}, {machine['cores']} cores, {machine['date']}, load {machine['load_before']:g} before."


def _short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def _spread(found: Mapping[str, float]) -> str:
    return f"{_short(found['median'])} ({_short(found['least'])}–{_short(found['greatest'])})"


def _ms(seconds: Mapping[str, float]) -> str:
    return _spread({name: value * 1000 for name, value in seconds.items() if name != "repeats"})


def _pair(row: Mapping[str, Any], name: str, scale: int) -> str:
    return f"{row['early'][name] / scale:,.0f} → {row['late'][name] / scale:,.0f}"
