"""The tables of docs/shards.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.shards_plan import sharded_plans

PAGE = Path("docs/shards.md")
_BLOCK = re.compile(r"(<!-- shards tables -->\n).*(<!-- /shards tables -->)", re.DOTALL)


def write_page(results: Mapping[str, Any], page: Path = PAGE) -> None:
    """The page with the tables of the results."""
    page.write_text(with_tables(page.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_tables(text: str, results: Mapping[str, Any]) -> str:
    return _BLOCK.sub(lambda found: f"{found[1]}\n{tables(results)}\n{found[2]}", text)


def tables(results: Mapping[str, Any]) -> str:
    cases = results["cases"]
    parts = [_case(name, case) for name, case in cases.items()]
    return "\n".join([*parts, _plans(between_of(cases))])


def between_of(cases: Mapping[str, Any]) -> float:
    """The greatest measured share of edges between phrases that lead to another shard."""
    return float(max(cut["between"] for case in cases.values() for cut in case["cuts"]))


def _case(name: str, case: Mapping[str, Any]) -> str:
    numbers = sorted({row["shards"] for row in case["rows"]})
    exact = f", R@5 of the whole {100 * case['exact']['recall']:.1f}" if "recall" in case["exact"] else ""
    told = (
        f"{case['passages']:,} passages, {case['phrases']:,} phrases, {case['nonzeros']:,} non-zeros, "
        f"{case['synonyms']:,} synonym edges, "
        f"{case['questions']} questions{exact}."
    )
    lines = [f"### {name}\n", told + "\n", *_survival(case, numbers), "", *_cuts(case, numbers), ""]
    return "\n".join(lines)


def _survival(case: Mapping[str, Any], numbers: Sequence[int]) -> list[str]:
    """A row a split and scheme; in each cell the shared top 20, the mass, and R@5, in percent."""
    head = ["split", "what a shard walks", *(f"{number} shards" for number in numbers)]
    found = {(row["split"], row["scheme"], row["shards"]): row for row in case["rows"]}
    lines = _head(head)
    for kind, scheme in dict.fromkeys((row["split"], row["scheme"]) for row in case["rows"]):
        cells = [_cell(found.get((kind, scheme, number))) for number in numbers]
        lines.append("| " + " | ".join([kind, scheme, *cells]) + " |")
    return lines


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    values = (row["top"], row.get("mass"), row.get("recall"))
    return " / ".join("–" if value is None else f"{100 * value:.1f}" for value in values)


def _cuts(case: Mapping[str, Any], numbers: Sequence[int]) -> list[str]:
    lines = _head(["split", *(f"{number} shards" for number in numbers)])
    cuts = {(cut["split"], cut["shards"]): cut for cut in case["cuts"]}
    for kind in dict.fromkeys(cut["split"] for cut in case["cuts"]):
        cells = [
            f"{cut['copies']:.2f} / {100 * cut['mentions']:.0f} / {100 * cut['between']:.0f} / {100 * cut['held']:.0f}"
            for cut in (cuts[kind, number] for number in numbers)
        ]
        lines.append("| " + " | ".join([kind, *cells]) + " |")
    return lines


def _plans(between: float) -> str:
    head = [
        "passages", "w", "H200 cards", "GB a card", "GB of the phrase graph", "walk, GB sent", "walk, ms of links",
        "push, kB sent", "gathered, kB", "products, ms", "diffusion, h", "synonyms by cells, h on two cores a card",
        "hosts, TB",
    ]  # fmt: skip
    lines = ["### Past one machine\n", *_head(head)]
    for plan in sharded_plans(between=between):
        cells = [f"{plan.passages:,}", str(plan.width), f"{plan.cards:,}", *(f"{value:,.3g}" for value in plan[3:])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _head(columns: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
