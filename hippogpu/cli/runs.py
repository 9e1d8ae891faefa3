"""search --output: a file of questions to a file of rankings, with progress, and a word on how to go on."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hippogpu.cli.output import complain, note, note_list, print_json
from hippogpu.config import SearchConfig
from hippogpu.corpus.questions import count_rows, query_file, stream_queries
from hippogpu.errors import HippoError
from hippogpu.runs import Report, partial_folder, run_identity, write_run
from hippogpu.searcher import Searcher
from hippogpu.types import Ranking

INTERRUPTED = 130
# So many questions are lost at most by a kill, and held in memory; beyond it a CPU gains nothing.
MOST_AT_ONCE = 512
_LINE_SECONDS = 10.0
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What to rank and where to write it. models: the names of those that decide the rankings besides the settings."""

    queries: Path
    output: Path
    k: int
    config: SearchConfig
    batch: int | None = None
    force: bool = False
    models: Mapping[str, str] = field(default_factory=dict)


def write_file(searcher: Searcher, job: Job, *, json: bool, quiet: bool) -> None:
    """Writes the run and reports it; exits with 1 when questions were refused, with 130 when interrupted."""
    try:
        with _stopped_by_sigterm(), _progress(count_rows(job.queries), quiet=quiet) as show:
            report = _run(searcher, job, show)
    except KeyboardInterrupt as error:
        complain(f"Interrupted. What is done lies in '{partial_folder(job.output)}': the same command again goes on.")
        raise typer.Exit(INTERRUPTED) from error
    except OSError as error:
        raise HippoError(
            f"'{job.output}' could not be written ({error}). What is done lies in '{partial_folder(job.output)}': "
            "the same command again goes on."
        ) from error
    _tell(report, json=json, quiet=quiet)
    if report.refused:
        raise typer.Exit(1)


def _run(searcher: Searcher, job: Job, show: OnProgress) -> Report:
    def rank(texts: Sequence[str]) -> list[Ranking]:
        batches = searcher.rank_batches(texts, k=job.k, config=job.config)
        return [ranking for batch in batches for ranking in batch]

    file = query_file(job.queries)
    return write_run(
        job.output,
        stream_queries(job.queries),
        rank,
        {**run_identity(searcher.manifest, file, job.config, k=job.k, backend=searcher.backend), **job.models},
        batch=job.batch or min(searcher.batch_size(job.config), MOST_AT_ONCE),
        force=job.force,
        on_progress=show,
    )


def _tell(report: Report, *, json: bool, quiet: bool) -> None:
    if json:
        print_json(_value(report))
    note_list("Refused", [f"{item.where}: {item.reason}" for item in report.refusals])
    if report.seconds == 0.0:
        note(f"'{report.output}' is whole: {report.questions:,} questions. Nothing was done.", quiet=quiet or json)
        return
    earlier = f", {report.earlier:,} of them by an earlier call" if report.earlier else ""
    refused = f"; {report.refused:,} refused" if report.refused else ""
    note(
        f"{report.output}: {report.questions:,} questions{earlier}{refused}; {report.seconds:.1f} s, "
        f"{report.rate:,.1f} questions a second.",
        quiet=quiet or json,
    )


def _value(report: Report) -> dict[str, Any]:
    return {
        "output": str(report.output),
        "questions": report.questions,
        "earlier": report.earlier,
        "refused": report.refused,
        "refusals": [item._asdict() for item in report.refusals],
        "seconds": round(report.seconds, 3),
        "questions_a_second": round(report.rate, 2),
    }


@contextmanager
def _progress(rows: int, *, quiet: bool) -> Iterator[OnProgress]:
    """A bar with questions a second and the time left; on no terminal, a line now and then."""
    if quiet:
        yield lambda read, done: None
    elif not sys.stderr.isatty():
        yield _lines(rows)
    else:
        texts = (TextColumn("{task.completed:,.0f} of {task.total:,.0f}"), TextColumn("{task.fields[rate]}"))
        columns = (TextColumn("questions"), BarColumn(), *texts, TimeElapsedColumn(), TextColumn("ETA"))
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
            yield _bar(bars, rows)


def _bar(bars: Progress, rows: int) -> OnProgress:
    task, rate = bars.add_task("questions", total=rows, rate=""), Rate()

    def show(read: int, done: int) -> None:
        speed = rate.after(done)
        if speed:
            bars.update(task, completed=read, rate=f"{speed:,.1f}/s")
        else:  # what earlier calls did must not count for the time left
            bars.reset(task, total=rows, completed=read, rate="")

    return show


def _lines(rows: int) -> OnProgress:
    rate, last = Rate(), time.perf_counter()

    def show(read: int, done: int) -> None:
        nonlocal last
        speed = rate.after(done)
        if speed and time.perf_counter() - last >= _LINE_SECONDS:
            last = time.perf_counter()
            left = (rows - read) / speed
            note(f"{read:,} of {rows:,} questions, {speed:,.1f} a second, {left:,.0f} s left")

    return show


class Rate:
    """Questions a second since the first report, which counts those of earlier calls."""

    def __init__(self) -> None:
        self._first, self._started = -1, 0.0

    def after(self, done: int) -> float:
        """The rate when so many are done; 0 at the first report."""
        now = time.perf_counter()
        if self._first < 0:
            self._first, self._started = done, now
        return (done - self._first) / (now - self._started) if done > self._first else 0.0


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does, while the run is written."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
