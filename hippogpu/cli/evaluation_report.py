"""What eval shows: tables for people, objects for programs, a page for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hippogpu.cli.measuring import Measured
from hippogpu.cli.output import people, print_json, table
from hippogpu.corpus import Query
from hippogpu.errors import UsageError
from hippogpu.evaluate import Difference, Interval, QuestionChange, paired_differences, question_changes
from hippogpu.evaluate.pages import Block, Heading, Picture, Rows, Text, as_html, as_markdown, plain
from hippogpu.evaluate.places import check_file, write_text
from hippogpu.evaluate.plot import Dot, interval_plot

# What the first column of a printed table takes, and the rules and room around each other one.
_MEASURE_WIDTH, _RULE_WIDTH = 12, 3
_PLOTTED = ("recall@5", "all_recall@5")


def print_measured(measured: Sequence[Measured], queries: Sequence[Query], *, measure: str | None) -> None:
    """Means with intervals, then each column less the first, then the questions that changed if a measure is named."""
    first = measured[0]
    out = people()
    for some in _fitting(measured, out.width):
        out.print(table(_title(first), *_means(some)))
    for other in measured[1:]:
        if first.intervals is not None:
            people().print(table(_difference_title(first, other), *_difference_rows(_differences(first, other))))
    if measure is not None:
        people().print(table(_change_title(measured, measure), *_change_rows(_changes(measured, measure), queries)))


def print_measured_json(measured: Sequence[Measured], queries: Sequence[Query], *, measure: str | None) -> None:
    """One object a column, with its difference to the first; then one of the questions if a measure is named."""
    first = measured[0]
    for column in measured:
        value = column.as_json()
        if column is not first and first.intervals is not None:
            found = {name: one._asdict() for name, one in _differences(first, column).items()}
            value["difference"] = {"to": first.name, **found}
        print_json(value)
    if measure is not None:
        texts = {query.id: query.text for query in queries}
        changes = [{"question": texts[change.query], **change.as_json()} for change in _changes(measured, measure)]
        print_json({"diff": [column.name for column in measured], "measure": measure, "questions": changes})


def write_report(path: Path, measured: Sequence[Measured], queries: Sequence[Query], *, measure: str | None) -> None:
    """The same as a page, Markdown or HTML by the file's name."""
    plots = _plots(measured, path)
    # Names are the user's, or those of somebody's run.
    measured = [column._replace(name=plain(column.name)) for column in measured]
    first = measured[0]
    blocks: list[Block] = [Heading("Evaluation", 1), Text(_title(first) + ". " + _how(first))]
    blocks.append(Rows(*_by_method(measured)))
    blocks += plots
    for other in measured[1:]:
        if first.intervals is not None:
            blocks += [Heading(_difference_title(first, other)), Rows(*_difference_rows(_differences(first, other)))]
    if measure is not None:
        blocks += [
            Heading(_change_title(measured, measure)),
            Rows(*_change_rows(_changes(measured, measure), queries, told_as=plain)),
        ]
    page = as_html(blocks, title="Evaluation") if path.suffix == ".html" else as_markdown(blocks)
    write_text(path, page)
    for block in blocks:
        if isinstance(block, Picture) and path.suffix == ".md":
            write_text(path.parent / block.file, block.svg)


def check_report(path: Path, *, plots: bool) -> None:
    """UsageError, before anything is measured, for a report that could not be written, or its plots beside it."""
    if path.suffix not in (".md", ".html"):
        raise UsageError(f"A report is written as .md or .html. Got '{path}'.")
    beside = [path.parent / _plot_file(path, name) for name in _PLOTTED] if plots and path.suffix == ".md" else []
    for file in (path, *beside):
        check_file(file)


def _plots(measured: Sequence[Measured], path: Path) -> list[Block]:
    """A plot of each of two measures, where there are intervals: beside a Markdown page, inside of an HTML one."""
    pictures: list[Block] = []
    for name in _PLOTTED:
        found = [(column.name, (column.intervals or {}).get(name)) for column in measured]
        dots = [Dot(column, interval) for column, interval in found if interval is not None]
        if dots:
            file = _plot_file(path, name)
            pictures.append(
                Picture(file, f"{name} with 95 % intervals", interval_plot(f"{short(name)}, percent", dots))
            )
    return pictures


def _plot_file(path: Path, measure: str) -> str:
    return f"{path.stem}-{measure.replace('@', '-')}.svg"


def _title(first: Measured) -> str:
    return f"{first.evaluation.queries} questions, {first.evaluation.level} level, percent"


def _how(first: Measured) -> str:
    found = (
        "In brackets 95 % intervals: percentiles of 10,000 bootstrap resamples of the questions. "
        if first.intervals
        else ""
    )
    absent = "not known without an index" if first.absent is None else first.absent
    return f"{found}Gold that the index does not hold: {absent}. Questions without gold, left out: " + (
        f"{len(first.evaluation.without_gold)}."
    )


def _fitting(measured: Sequence[Measured], width: int) -> list[Sequence[Measured]]:
    """As many columns together as fit the width, at least one."""
    cells = [_mean(column, name) for column in measured for name in column.evaluation.values]
    cell = max(map(len, [*cells, *(column.name for column in measured)]))
    at_once = max(1, (width - _MEASURE_WIDTH) // (cell + _RULE_WIDTH))
    return [measured[start : start + at_once] for start in range(0, len(measured), at_once)]


def _means(measured: Sequence[Measured]) -> tuple[list[str], list[list[str]]]:
    names = list(measured[0].evaluation.values)
    rows = [[short(name), *(_mean(column, name) for column in measured)] for name in names]
    return ["measure", *(column.name for column in measured)], rows


def _by_method(measured: Sequence[Measured]) -> tuple[list[str], list[list[str]]]:
    names = list(measured[0].evaluation.values)
    rows = [[column.name, *(_mean(column, name, breaks=True) for name in names)] for column in measured]
    return ["method", *map(short, names)], rows


def _mean(column: Measured, name: str, *, breaks: bool = False) -> str:
    shown = f"{100 * column.evaluation.values[name]:.2f}"
    if column.intervals is None:
        return shown
    return shown + ("\n" if breaks else " ") + bracket(column.intervals[name])


def bracket(found: Interval | Difference) -> str:
    """An interval in percent: [58.1, 70.2]."""
    return f"[{100 * found.low:.1f}, {100 * found.high:.1f}]"


def short(measure: str) -> str:
    """A measure's name in a table: R@5, all@5."""
    return measure.replace("all_recall@", "all@").replace("recall@", "R@")


def _differences(first: Measured, other: Measured) -> Mapping[str, Difference]:
    return paired_differences(other.evaluation, first.evaluation)


def _difference_title(first: Measured, other: Measured) -> str:
    return f"{other.name} less {first.name}, points, paired"


def _difference_rows(found: Mapping[str, Difference]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [short(name), f"{100 * one.mean:+.2f} {bracket(one)}", f"{one.p:.4f}", one.verdict]
        for name, one in found.items()
    ]
    return ["measure", "difference", "p", "verdict"], rows


def _changes(measured: Sequence[Measured], measure: str) -> list[QuestionChange]:
    if len(measured) != 2:
        raise UsageError(f"--diff compares two columns. Got {len(measured)}: name two of --method, --variant, --run.")
    return question_changes(measured[0].side(), measured[1].side(), measured[0].gold, measure=measure)


def _change_title(measured: Sequence[Measured], measure: str) -> str:
    changes = _changes(measured, measure)
    counts = {kind: sum(change.change == kind for change in changes) for kind in ("gained", "lost", "moved", "same")}
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return f"{short(measure)} of each question, {measured[0].name} → {measured[1].name}: {told}"


def _change_rows(
    changes: Sequence[QuestionChange], queries: Sequence[Query], *, told_as: Callable[[str], str] = str
) -> tuple[list[str], list[list[str]]]:
    """The questions that gained and lost, the greatest first; ranks of gold as before → after."""
    texts = {query.id: query.text for query in queries}
    told: list[QuestionChange] = [change for change in changes if change.change in ("gained", "lost")]
    told.sort(key=lambda change: (change.first - change.second, change.query))
    rows = [
        [
            change.change,
            f"{100 * change.first:.0f} → {100 * change.second:.0f}",
            told_as(_ranks(change)),
            told_as(texts[change.query]),
        ]
        for change in told
    ]
    return ["", "percent", "gold, ranks", "question"], rows


def _ranks(change: QuestionChange) -> str:
    def shown(rank: Any) -> str:
        return "–" if rank is None else str(rank)

    return ", ".join(f"{place.id} {shown(place.first)} → {shown(place.second)}" for place in change.gold)
