"""One run: questions in, a file of rankings out, a durable batch at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.corpus import Query
from hippogpu.disk import sync_folder, write_atomically
from hippogpu.errors import CorpusError, UsageError
from hippogpu.runs.formats import Answer, Format, Sink, format_of
from hippogpu.runs.identity import Identity, differences
from hippogpu.runs.state import State, clear, held, read_state, remove, write_state
from hippogpu.types import Ranking, Refusal

LISTED_REFUSALS = 1000
Rank = Callable[[Sequence[str]], Sequence[Ranking]]


class Report(NamedTuple):
    """What a call did. questions were answered in all, earlier of them by calls before; seconds are this call's.

    refused counts every row and question that is not in the file, refusals lists the first 1,000 that this call met.
    """

    output: Path
    questions: int
    earlier: int
    refused: int
    refusals: tuple[Refusal, ...]
    seconds: float

    @property
    def rate(self) -> float:
        """Questions a second of this call, 0 when it answered none."""
        return (self.questions - self.earlier) / self.seconds if self.seconds else 0.0


def partial_folder(output: Path) -> Path:
    """Where a run lies until it is whole."""
    return output.with_name(f"{output.name}.partial")


def record_path(output: Path) -> Path:
    """What a finished run leaves beside its output: its identity, its counts and its size."""
    return output.with_name(f"{output.name}.record")


def write_run(
    output: Path,
    questions: Iterable[Query | Refusal],
    rank: Rank,
    identity: Identity,
    *,
    batch: int,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Writes the rankings of all questions to the output and says what was done; a call after a kill goes on.

    The output appears when it is whole. Until then a run lies in '<output>.partial', whose state names the questions
    done; what was written after the last state is cut off and made again. A finished run of the same identity is
    left alone. UsageError when the output or the state is of another run, unless force starts again; CorpusError
    when there was no question at all.

    questions    every question of the run from the first on, each time; a batch of them is held
    on_progress  called with the rows read and the questions done, after the earlier ones and after each batch
    """
    format_, folder = format_of(output), partial_folder(output)
    _check_place(output)
    if not force and _finished(output, identity):
        return _report_of(output)
    if not force and output.exists() and read_state(folder) is None:
        raise _exists(output, identity)
    with held(folder):
        if force:
            clear(folder)
        state = _state(folder, identity)
        sink = format_.open(folder, state.position)
        try:
            report = _Course(output, folder, format_, sink, rank, batch, on_progress).run(questions, state)
        finally:
            sink.close()
        remove(folder)
    return report


class _Course:
    """A run while it is under way: the rows read and refused so far."""

    def __init__(
        self,
        output: Path,
        folder: Path,
        format_: Format,
        sink: Sink,
        rank: Rank,
        batch: int,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self._output, self._folder, self._format, self._sink, self._rank = output, folder, format_, sink, rank
        self._batch, self._on_progress = batch, on_progress
        self._rows, self._refused, self._refusals = 0, 0, list[Refusal]()

    def run(self, questions: Iterable[Query | Refusal], state: State) -> Report:
        earlier, started = state, time.perf_counter()
        accepted = self._accepted(questions)
        for _ in islice(accepted, state.questions):
            pass
        self._show(state)
        while (after := self._advance(accepted, state)) is not None:
            state = after
            self._show(state)
        if not state.questions:
            remove(self._folder)
            first = f" ({self._refused} rows refused, the first: {self._refusals[0]})" if self._refusals else ""
            raise CorpusError(f"There is no question to answer{first}. Give JSON lines with '_id' and 'question'.")
        report = Report(
            self._output,
            state.questions - state.unwritten,
            earlier.questions - earlier.unwritten,
            self._refused + earlier.unwritten,
            tuple(self._refusals),
            time.perf_counter() - started,
        )
        self._finish(report, state)
        return report

    def _advance(self, accepted: Iterator[Query], state: State) -> State | None:
        """Ranks and writes the next batch; None when there is none. Nothing of the batch outlives the call."""
        queries = list(islice(accepted, self._batch))
        if not queries:
            return None
        rankings = self._rank([query.text for query in queries])
        answers = [Answer(query.id, ranking) for query, ranking in zip(queries, rankings, strict=True)]
        kept = [answer for answer in answers if self._writable(answer)]
        self._sink.write(kept)
        after = state._replace(
            questions=state.questions + len(answers),
            unwritten=state.unwritten + len(answers) - len(kept),
            position=self._sink.position,
        )
        write_state(self._folder, after)
        return after

    def _accepted(self, questions: Iterable[Query | Refusal]) -> Iterator[Query]:
        for item in questions:
            self._rows += 1
            if isinstance(item, Refusal):
                self._refuse(item)
            elif not self._format.holds(item.id):
                self._refuse(Refusal(f"question '{item.id}'", f"its id {self._format.why_not}"))
            else:
                yield item

    def _writable(self, answer: Answer) -> bool:
        bad = [hit.passage.id for hit in answer.ranking.hits if not self._format.holds(hit.passage.id)]
        if bad:
            why = f"the id of its passage '{bad[0]}' {self._format.why_not}"
            self._refuse(Refusal(f"question '{answer.query_id}'", why))
        return not bad

    def _refuse(self, refusal: Refusal) -> None:
        self._refused += 1
        if len(self._refusals) < LISTED_REFUSALS:
            self._refusals.append(refusal)

    def _show(self, state: State) -> None:
        if self._on_progress:
            self._on_progress(self._rows, state.questions)

    def _finish(self, report: Report, state: State) -> None:
        """First an older output goes, then comes the record, then the output: so no record ever fits an older one."""
        whole = self._sink.finish()
        if self._output.exists():
            self._output.unlink()
            sync_folder(self._output.parent)
        value = {
            "identity": dict(state.identity),
            "questions": report.questions,
            "refused": report.refused,
            "bytes": whole.stat().st_size,
        }
        write_atomically(record_path(self._output), (json.dumps(value, indent=1) + "\n").encode())
        whole.replace(self._output)
        sync_folder(self._output.parent)


def _check_place(output: Path) -> None:
    if output.is_dir():
        raise UsageError(f"'{output}' is a folder. Name a file for --output.")
    if not output.parent.is_dir():
        raise UsageError(f"There is no folder '{output.parent}' for '{output.name}'. Make it first.")


def _state(folder: Path, identity: Identity) -> State:
    """The state to go on from, that of a new run when there is none; UsageError when it is of another run."""
    state = read_state(folder)
    if state is None:
        state = State(identity)
        write_state(folder, state)
    changed = differences(state.identity, identity)
    if changed:
        raise UsageError(
            f"'{folder}' holds {state.questions} questions of another run ({'; '.join(changed)}). Use the settings of "
            "then to go on, or --force to start again."
        )
    return state


def _record(output: Path) -> dict[str, Any] | None:
    """The record beside an output; None when there is none or it is no record."""
    try:
        value = json.loads(record_path(output).read_bytes())
        return {**value, "identity": dict(value["identity"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _finished(output: Path, identity: Identity) -> bool:
    """Whether the output is a whole run of the identity; what a kill left of its folder is removed then."""
    record = _record(output)
    if record is None or not output.is_file() or output.stat().st_size != record.get("bytes"):
        return False
    if differences(record["identity"], identity):
        return False
    folder = partial_folder(output)
    if folder.exists():
        with held(folder):
            remove(folder)
    return True


def _report_of(output: Path) -> Report:
    """Nothing was left to do."""
    record = _record(output) or {}
    return Report(output, record["questions"], record["questions"], record["refused"], (), 0.0)


def _exists(output: Path, identity: Identity) -> UsageError:
    record = _record(output)
    changed = "; ".join(differences(record["identity"], identity)) if record else ""
    why = f" ({changed})" if changed else "" if record else f" ('{record_path(output).name}' is not beside it)"
    return UsageError(f"'{output}' exists and is not this run{why}. Name another --output, or replace it with --force.")
