"""docs/quality.md, its plot, and the same as HTML: all of it from the stored results alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.quality.errors import CLASSES
from bench.quality.plot import recall_plot
from bench.quality.tables import (
    better_table,
    case_rows,
    comparison_table,
    direction_table,
    error_rows,
    measure_table,
    overview_table,
    reference_table,
    set_table,
    speed_table,
)
from hippogpu.evaluate.pages import Block, Code, Heading, Picture, Rows, Text, as_html, as_markdown, code, plain
from hippogpu.evaluate.places import write_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quality.md"
_COMMAND = "python -m bench quality --recipe SET --only 'ROW' --data DATA --work WORK --json bench/results/quality.json"
_HOW = (
    "Percent. In brackets 95 % intervals: percentiles of 10,000 bootstrap resamples of the questions. Where two "
    "rows are compared, the same questions are drawn for both (paired), and *better* or *worse* means that the "
    "interval of the difference lies on one side of 0; else it is a *tie*. With this many comparisons some "
    "verdicts at 95 % are chance. How each measure is computed: [evaluate.md](evaluate.md)."
)
_LIMITS = (
    "**There are no simple questions (NQ, PopQA) in the data**, so nothing here says how the methods do on "
    "questions that one passage answers. Sets of use *tuned on* may have been looked at while settings were "
    "chosen: read the *report* sets for what to expect of questions that nobody has tuned on. Where the records "
    "are made without a language model, the figures say nothing of records by one."
)


def write_page(results: Mapping[str, Any], *, page: Path = PAGE, html: Path | None = None) -> None:
    """The page and its plot beside it; the HTML, with the plot inside, where it is wanted."""
    blocks = page_blocks(results, picture=page.with_suffix(".svg").name, svg=recall_plot(results))
    write_text(page, as_markdown(blocks))
    for block in blocks:
        if isinstance(block, Picture):
            write_text(page.parent / block.file, block.svg)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_text(html, as_html(blocks, title="Retrieval quality"))


def page_blocks(results: Mapping[str, Any], *, picture: str, svg: str = "") -> list[Block]:
    """Everything the page says. picture is the name of the plot's file, svg its text."""
    sets = results["sets"]
    blocks: list[Block] = [
        Heading("Retrieval quality", 1),
        Text("Written by `python -m bench quality-report` from `bench/results/quality.json`; do not edit."),
        Text(_HOW),
        Text(_LIMITS),
        Heading("The sets"),
        set_table(sets),
        Heading("Every row on every set"),
        Text("Each row is one command; DATA holds the sets' folders, WORK keeps the indexes:"),
        Code(_COMMAND),
        overview_table(sets, "recall@5"),
    ]
    blocks += [Picture(picture, "recall@5 with 95 % intervals, a panel a set", svg)] if sets else []
    blocks += [
        overview_table(sets, "all_recall@5"),
        Heading("Against the better of dense and bm25"),
        Text("At each cut-off against the one whose mean is higher there: + better, · tie, − worse (paired, 95 %)."),
        better_table(sets),
        *_directions(results),
        *_speeds(sets),
    ]
    for name, found in sets.items():
        blocks += _set(name, found)
    return [block for block in blocks if not (isinstance(block, Rows) and not block.rows)]


def _directions(results: Mapping[str, Any]) -> list[Block]:
    return [
        Heading("Published directions"),
        Text(
            "Does a change move recall@5 the way the papers say? *confirmed* or *contradicted* when the interval "
            "of our difference lies on one side of 0, *undecided* when it holds 0. Where they published less than a "
            "point either way (*about equal*), no direction is claimed: our tie *confirms it as equal*, anything else "
            "*differs*. *Extrapolated*: the paper's figures are of another family of sets than "
            "ours. Encoders, records and sizes of the corpora are other ones than the papers'."
        ),
        direction_table(results),
        Text(
            "Published figures, for reference. They were not measured here and do not compare with the tables of "
            "this page."
        ),
        reference_table(results),
    ]


def _speeds(sets: Mapping[str, Any]) -> list[Block]:
    timed = {name: one for name, one in sets.items() if any("queries_per_s" in row for row in one["rows"].values())}
    machines = {(found["machine"]["cpu"], found["machine"]["cores"]) for found in timed.values()}
    untimed = [f"`{name}`" for name in sets if name not in timed]
    lacking: list[Block] = [Text(f"No speed was measured on {', '.join(untimed)}.")] if untimed else []
    if not machines:
        return [Heading("Speed"), *lacking] if lacking else []
    loads = [found["machine"]["load_before"] for found in timed.values()]
    told = "; ".join(f"{cpu}, {cores} cores" for cpu, cores in sorted(machines))
    return [
        Heading("Speed"),
        Text(
            "All questions of a set in one batch, twenty passages each, without encoding them; median "
            f"(least–greatest). On {told}, which other processes used too (load before {min(loads):.1f} to "
            f"{max(loads):.1f}): read them as orders of magnitude."
        ),
        speed_table(sets),
        *lacking,
    ]


def _set(name: str, found: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = [Heading(f"{name}: {found['title']}")]
    use = "settings were chosen on these questions" if found["use"] == "train" else "no setting was chosen on these"
    absent = [check for check in found["checks"] if "gold that" in check["name"] and not check["passed"]]
    blocks.append(
        Text(
            f"{found['questions']:,} questions, {found['passages']:,} passages, {found['level']} level; {use}. "
            f"Records: {found['records']['by']}. Encoder {found['index']['encoder']}, profile "
            f"{found['index']['profile']}. "
            + (
                f"**Gold that the index does not hold: {plain(str(absent[0]['found']))}.**"
                if absent
                else "All gold is in the index."
            )
        )
    )
    blocks += [Text(found["note"])] if found["note"] else []
    failed = [check["name"] for check in found["checks"] if not check["passed"]]
    blocks += [Text(f"**Checks that failed: {'; '.join(failed)}.** Nothing was timed.")] if failed else []
    blocks.append(measure_table(found))
    compared = comparison_table(found)
    if compared.rows:
        blocks += [
            Text("Against others at R@1, 2, 5, 10 and 20: + better, · tie, − worse (paired, 95 %)."),
            compared,
        ]
    blocks += _errors(found) + _cases(found)
    if found["not_run"]:
        blocks.append(Text(f"Not run, as they ask a language model: {', '.join(found['not_run'])}."))
    return blocks


def _errors(found: Mapping[str, Any]) -> list[Block]:
    table = error_rows(found)
    if table is None:
        return []
    told = "; ".join(f"*{kind}*: {what}" for kind, what in CLASSES.items())
    return [
        Heading("Failures by class", 3),
        Text(
            "Questions with a gold passage that is not among the first five, by the first class that fits. A fact"
            f" is usable when a gold passage of the question states it. {told}."
        ),
        table,
    ]


def _cases(found: Mapping[str, Any]) -> list[Block]:
    cases = found.get("cases", {})
    blocks: list[Block] = [Heading("Case by case", 3)] if cases else []
    for case in cases.values():
        answers = f" Answer: {plain(', '.join(case['answers']))}." if case["answers"] else ""
        blocks += [
            Text(f"**{plain(case['question'])}**{answers} Ranks among the passages of its group."),
            case_rows(case),
        ]
        blocks += [Text(line) for line in _path_lines(case)]
    return blocks


def _path_lines(case: Mapping[str, Any]) -> list[str]:
    """What carried mass to each wanted passage, a line a passage and row; paths as code."""
    lines = []
    for id_, one in case["passages"].items():
        for method, why in one["paths"].items():
            parts = [code(part) if "→" in part else plain(part) for part in why]
            lines.append(f"**{plain(one['title'] or id_)}** ({code(id_)}) under {method}: {'; '.join(parts)}")
    return lines
