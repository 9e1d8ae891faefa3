"""Extraction of what a log does not have yet: resumable, and each text once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from hippogpu.errors import ExtractionError, UsageError
from hippogpu.openie.extractor import Extractor
from hippogpu.openie.log import ExtractionLog
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Record


class ExtractionReport(NamedTuple):
    """What a run did, counted in passages.

    done   : extracted in this run
    reused : the same text had a success in the log, or under another id in this run
    failed : id and error of each passage that has no success; the next run tries it again
    drops  : what the records of this run dropped, by reason
    """

    done: int
    reused: int
    failed: tuple[tuple[str, str], ...]
    drops: Mapping[str, int]


class ExtractionProgress(NamedTuple):
    """Passages so far: extracted, reused, and texts whose last attempt failed."""

    done: int
    reused: int
    failed: int


def extract_missing(
    passages: Iterable[Passage],
    extractor: Extractor,
    log: ExtractionLog,
    *,
    on_progress: Callable[[ExtractionProgress], None] | None = None,
) -> ExtractionReport:
    """Extracts every passage whose text has no success in the log, appending each record as it is finished.

    Text that several ids share is extracted once; when it fails under the first id, the next id is tried (stored
    extractions may know only one of them). Passage ids must be distinct (see corpus.distinct), else UsageError.
    on_progress is called after each record.
    """
    run = _Run(log.finished())
    waiting = _fresh(passages, run)
    while True:
        for record in extractor.extract(waiting):
            _note(record, run, log)
            if on_progress is not None:
                on_progress(ExtractionProgress(run.done, run.reused, len(run.errors)))
        _fail_unanswered(run, extractor, log)
        again = _next_ids(run)
        if not again:
            return _report(run)
        waiting = _sent(again, run)


class _Run:
    """What is held open while extracting: ids sent and not yet answered, other ids of one text, errors by key."""

    def __init__(self, finished: set[str]) -> None:
        self.finished = finished
        self.ids: set[str] = set()
        self.first: dict[str, str] = {}
        self.others: dict[str, list[Passage]] = {}
        self.sent: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.untried: dict[str, list[Passage]] = {}
        self.done = 0
        self.reused = 0
        self.drops: Counter[str] = Counter()


def _fresh(passages: Iterable[Passage], run: _Run) -> Iterator[Passage]:
    """The first passage of each text that has no success yet."""
    for passage in passages:
        if passage.id in run.ids:
            raise UsageError(f"Passage id '{passage.id}' came twice. Pass the passages through corpus.distinct first.")
        run.ids.add(passage.id)
        key = _key(passage)
        if key in run.first:
            run.others.setdefault(key, []).append(passage)
        elif key in run.finished:
            run.reused += 1
        else:
            run.first[key] = passage.id
            run.sent[passage.id] = key
            yield passage


def _key(passage: Passage) -> str:
    return content_key(identity(passage.title, passage.text))


def _sent(passages: Iterable[Passage], run: _Run) -> Iterator[Passage]:
    for passage in passages:
        run.sent[passage.id] = _key(passage)
        yield passage


def _note(record: Record, run: _Run, log: ExtractionLog) -> None:
    """Logs one record under the key of the passage it answers."""
    key = run.sent.pop(record.passage_id, None)
    if key is None:
        raise ExtractionError(
            f"The extractor gave a record for passage '{record.passage_id}', which was not waiting for one. "
            "An extractor must yield one Record a passage, under the passage's id."
        )
    log.append(key, record)
    run.drops.update(drop.reason for drop in record.drops)
    if record.error is None:
        run.done += 1
        run.errors.pop(key, None)
        run.finished.add(key)
    else:
        run.errors[key] = record.error


def _fail_unanswered(run: _Run, extractor: Extractor, log: ExtractionLog) -> None:
    """A failure for each passage that the extractor took and gave no record for."""
    for passage_id in list(run.sent):
        _note(Record(passage_id, (), error=f"the extractor '{extractor.name}' gave no record"), run, log)


def _next_ids(run: _Run) -> list[Passage]:
    """One more id to try for each failed text that has an untried one."""
    for key in run.errors:
        run.untried.setdefault(key, list(run.others.get(key, ())))
    return [run.untried[key].pop(0) for key in run.errors if run.untried[key]]


def _report(run: _Run) -> ExtractionReport:
    failed: list[tuple[str, str]] = []
    reused = run.reused
    for key, first in run.first.items():
        others = [passage.id for passage in run.others.get(key, ())]
        if key in run.errors:
            failed.extend((id_, run.errors[key]) for id_ in (first, *others))
        else:
            reused += len(others)
    return ExtractionReport(run.done, reused, tuple(failed), dict(run.drops))
