"""What people and programs see: tables and JSON on stdout, progress, notes and errors on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as EtaColumn
from rich.table import Table

LISTED = 10
LINE_EVERY_S = 30.0


class Show(Protocol):
    """Tells how far a stage is, with a note on its pace."""

    def __call__(self, stage: str, done: int, whole: int, note: str = "") -> None: ...


def people() -> Console:
    """Standard output, for tables."""
    return Console(highlight=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """One object on a line of stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def complain(message: str) -> None:
    """An error on stderr."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]error:[/] {escape(message)}")


def note(message: str, *, quiet: bool = False) -> None:
    """Something worth knowing, on stderr."""
    if not quiet:
        Console(stderr=True, highlight=False, soft_wrap=True).print(escape(message))


def note_list(heading: str, lines: Sequence[str], *, quiet: bool = False) -> None:
    """The first lines of a list of problems, and how many more there are. What fails a run is told to the quiet too."""
    if lines:
        note(f"{heading}:", quiet=quiet)
        for line in lines[:LISTED]:
            note(f"  {line}", quiet=quiet)
        if len(lines) > LISTED:
            note(f"  and {len(lines) - LISTED} more (--json lists all)", quiet=quiet)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Show]:
    """Bars with counts and the time left, one a stage, on stderr; lines where it is no terminal."""
    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("ETA"),
        EtaColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet) as bars:
        tasks: dict[str, TaskID] = {}
        lines = _Lines(silent=quiet or console.is_terminal)

        def show(stage: str, done: int, whole: int, note: str = "") -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=whole, note="")
            bars.update(tasks[stage], completed=done, total=whole, note=note)
            lines.tell(stage, done, whole, note)

        yield show


class _Lines:
    """Progress as a line now and then, where stderr is a file or a pipe and bars cannot be drawn."""

    def __init__(self, *, silent: bool) -> None:
        self._silent, self._told = silent, time.monotonic()

    def tell(self, stage: str, done: int, whole: int, pace: str) -> None:
        now = time.monotonic()
        if not self._silent and now - self._told >= LINE_EVERY_S:
            self._told = now
            note(f"{stage}: {done:,} of {whole:,}" + (f", {pace}" if pace else ""))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose number columns stand right."""
    made = Table(title=escape(printable(title)), title_justify="left")
    for number, column in enumerate(columns):
        right = bool(rows) and all(_is_number(row[number]) for row in rows)
        made.add_column(escape(printable(column)), justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in rows:
        made.add_row(*(escape(printable(cell)) for cell in row))
    return made


def printable(text: str) -> str:
    """The text with control characters spelled out: what an index holds must not steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def count_rows(counts: Mapping[str, int]) -> list[list[str]]:
    """Rows of a table of counts."""
    return [[name.replace("_", " "), f"{count:,}"] for name, count in counts.items()]


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("-", "").isdigit() or cell == "-"
