"""The tables of docs/locality.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path("docs/locality.md")
BATCHES = ("1", "8", "32")
_BLOCK = re.compile(r"(<!-- locality tables -->\n).*(<!-- /locality tables -->)", re.DOTALL)


def write_page(results: Mapping[str, Any], page: Path = PAGE) -> None:
    """The page with the tables of the results."""
    page.write_text(with_tables(page.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_tables(text: str, results: Mapping[str, Any]) -> str:
    lines = [""]
    for name, found in results["graphs"].items():
        lines += [*_graph(name, found), ""]
    lines += [*_predictions(results["predicted"]), ""]
    return _BLOCK.sub(lambda block: block[1] + "\n".join(lines) + block[2], text)


def _graph(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    graph, where = found["graph"], found["machine"]
    kind = "synthetic" if graph["synthetic"] else "real"
    yield f"### {name}"
    yield ""
    yield (
        f"{kind}: {graph['passages']:,} passages, {graph['nodes']:,} nodes, {graph['nonzeros']:,} non-zeros, "
        f"{100 * graph['of_mentions'] / graph['nonzeros']:.0f} % of them mentions; {where['cpu']}, {where['date']}, "
        f"load before {where['load_before']}."
    )
    for kind, write in TABLES:
        if found.get(kind):
            yield ""
            yield from write(found[kind])


def _orders(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    steps = (f"B = {batch}: ms | ratio | GB/s" for batch in BATCHES)
    yield from _head(["order", "communities", "made in s", *steps, "push", "gaps: 16 bits / varint / group / entropy"])
    for row in rows:
        bits = " / ".join(
            f"{row['bits'][kind]:.1f}" for kind in ("16 bits, escape", "varint", "group varint", "entropy")
        )
        made = f"{row['found_s']:.1f} + {row['applied_s']:.1f}"
        yield _line([row["order"], f"{row['communities']:,}", made, *_steps(row), _ratio(row["push"]), bits])


def _layouts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    steps = (f"B = {batch}: ms | ratio | GB/s" for batch in BATCHES)
    yield from _head(["layout", "order", "bytes a non-zero", *steps, "error"])
    for row in rows:
        error = max(found["error"] for found in row["steps"].values())
        yield _line([row["layout"], row["order"], f"{row['bytes_a_nonzero']:.2f}", *_steps(row), f"{error:.1e}"])


def _diffusion(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        plain, ordered = (row[name]["median"] for name in ("plain_ms", "ms"))
        yield (
            f"A diffusion of {row['columns']} columns, ordering and check included: {plain:,.4g} ms as it is, "
            f"{ordered:,.4g} in the order *labels*, ratio {_ratio(row)}; vectors differ by "
            f"{row['difference']:.1g} of the greatest entry."
        )


def _accuracy(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from _head(["weights", "questions", "sets of 20 changed", "passages in them", "orders changed", "R@5"])
    for row in rows:
        changed = (row.get(key, "–") for key in ("sets_changed", "passages_changed", "orders_changed"))
        yield _line([row["weights"], row["questions"], *changed, f"{100 * row['recall@5']:.2f}"])


def _predictions(predicted: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield "### Predicted"
    yield ""
    yield from _head(["of", "what", "prediction"])
    for kind, lines in predicted.items():
        for name, words in lines.items():
            yield _line([kind, name, words])


def _steps(row: Mapping[str, Any]) -> Iterator[str]:
    for batch in BATCHES:
        found = row["steps"][batch]
        gbs = found["gbs"]
        yield f"{found['ms']['median']:,.4g} | {_ratio(found)} | {gbs['lower']:.3g}–{gbs['upper']:.3g}"


def _ratio(found: Mapping[str, Any]) -> str:
    ratio = found["ratio"]
    return f"{ratio['median']:.2f} ({ratio['least']:.2f}–{ratio['greatest']:.2f})"


def _head(columns: Sequence[str]) -> list[str]:
    line = _line(columns)
    return [line, "|" + "---|" * (line.count("|") - 1)]


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


TABLES: tuple[tuple[str, Callable[[Sequence[Mapping[str, Any]]], Iterator[str]]], ...] = (
    ("orders", _orders),
    ("diffusion", _diffusion),
    ("layouts", _layouts),
    ("accuracy", _accuracy),
)
