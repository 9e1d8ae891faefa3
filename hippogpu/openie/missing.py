"""Extraction of what a log does not have yet: resumable, and each text once."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from hippogpu.config import ExtractConfig
from hippogpu.errors import ExtractionError, UsageError
from hippogpu.openie.extractor import Extractor
from hippogpu.openie.log import ExtractionLog, Outcomes
from hippogpu.text import content_key, identity
from hippogpu.types import NO_TOKENS, Passage, Record, Usage


class ExtractionReport(NamedTuple):
    """What a run did, counted in passages.

    done        : extracted in this run
    reused      : the same text had a success in the log, or under another id in this run
    failed      : id and error of each passage that failed in this run; the next run tries it again
    drops       : what the records of this run dropped, by reason
    quarantined : id and last error of each passage that failed in so many runs that it was left alone
    untouched   : passages that were not begun because the run was told to stop
    usage       : tokens that a language model read and wrote in this run
    seconds     : how long the run took
    """

    done: int = 0
    reused: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    drops: Mapping[str, int] = MappingProxyType({})
    quarantined: tuple[tuple[str, str], ...] = ()
    untouched: int = 0
    usage: Usage = NO_TOKENS
    seconds: float = 0.0


class ExtractionProgress(NamedTuple):
    """So far: passages extracted, reused, texts whose last attempt failed or that are left alone; tokens of models."""

    done: int
    reused: int
    failed: int
    usage: Usage = NO_TOKENS

    @property
    def ids(self) -> int:
        """Passages that are done with for this run."""
        return self.done + self.reused + self.failed


def never() -> bool:
    """A run that is not told to stop."""
    return False


def extract_missing(
    passages: Iterable[Passage],
    extractor: Extractor,
    log: ExtractionLog,
    *,
    quarantine_after: int = ExtractConfig().quarantine_after,
    retry_failed: bool = False,
    stop: Callable[[], bool] = never,
    on_progress: Callable[[ExtractionProgress], None] | None = None,
) -> ExtractionReport:
    """Extracts every passage whose text has no success in the log, appending each record as it is finished.

    Text that several ids share is extracted once; when it fails under the first id, the next id is tried (stored
    extractions may know only one of them). Passage ids must be distinct (see corpus.distinct), else UsageError.
    quarantine_after : a text with so many failures in the log is left alone, unless retry_failed
    stop             : once it says so no passage is begun; those that are under way are finished
    on_progress      : called after each record
    """
    run = _Run(log.outcomes(), stop, sys.maxsize if retry_failed else quarantine_after)
    waiting = _fresh(passages, run)
    while True:
        for record in extractor.extract(waiting):
            _note(record, run, log)
            if on_progress is not None:
                failed = len(run.errors) + len(run.quarantined)
                on_progress(ExtractionProgress(run.done, run.reused, failed, run.usage))
        _fail_unanswered(run, extractor, log)
        again = [] if stop() else _next_ids(run)
        if not again:
            return _report(run)
        waiting = _sent(again, run)


class _Run:
    """What is held open while extracting: ids sent and not yet answered, other ids of one text, errors by key."""

    def __init__(self, before: Outcomes, stop: Callable[[], bool], quarantine_after: int) -> None:
        self.started = time.monotonic()
        self.finished = before.finished
        self.before = before.failed
        self.stop = stop
        self.quarantine_after = quarantine_after
        self.ids: set[str] = set()
        self.first: dict[str, str] = {}
        self.others: dict[str, list[Passage]] = {}
        self.sent: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.untried: dict[str, list[Passage]] = {}
        self.quarantined: list[tuple[str, str]] = []
        self.done = 0
        self.reused = 0
        self.untouched = 0
        self.usage = NO_TOKENS
        self.drops: Counter[str] = Counter()


def _fresh(passages: Iterable[Passage], run: _Run) -> Iterator[Passage]:
    """The first passage of each text that has no success yet and is not left alone."""
    for passage in passages:
        if passage.id in run.ids:
            raise UsageError(f"Passage id '{passage.id}' came twice. Pass the passages through corpus.distinct first.")
        run.ids.add(passage.id)
        key = _key(passage)
        before = run.before.get(key)
        if key in run.first:
            run.others.setdefault(key, []).append(passage)
        elif key in run.finished:
            run.reused += 1
        elif before is not None and before.attempts >= run.quarantine_after:
            run.quarantined.append((passage.id, f"{before.reason} ({before.attempts} failed runs)"))
        elif run.stop():
            run.untouched += 1
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
    before = run.before.get(key)
    log.append(key, record, attempt=before.attempts + 1 if before else 1)
    run.drops.update(drop.reason for drop in record.drops)
    run.usage = run.usage.plus(record.usage)
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
    seconds = time.monotonic() - run.started
    quarantined = tuple(run.quarantined)
    return ExtractionReport(
        run.done, reused, tuple(failed), dict(run.drops), quarantined, run.untouched, run.usage, seconds
    )
