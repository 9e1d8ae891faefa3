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
from hippogpu.openie.extractor import AnswersById, Extractor
from hippogpu.openie.log import ExtractionLog, Outcomes, Torn
from hippogpu.openie.statistics import ByLength, LengthRow, word_count
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
    by_length   : what the records of this run hold, by the passages' length
    records     : how many passages have their record from which extractor, those of other runs too (an index fills it)
    torn        : a last line of the log that a crash had cut short, and that was moved aside
    damage      : lines of the log that were passed over, "FILE:LINE: reason"
    forced      : when a forced reading was begun that this run belongs to, "" for any other (an index fills it)
    """

    done: int = 0
    reused: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    drops: Mapping[str, int] = MappingProxyType({})
    quarantined: tuple[tuple[str, str], ...] = ()
    untouched: int = 0
    usage: Usage = NO_TOKENS
    seconds: float = 0.0
    by_length: tuple[LengthRow, ...] = ()
    records: Mapping[str, int] = MappingProxyType({})
    torn: Torn | None = None
    damage: tuple[str, ...] = ()
    forced: str = ""


class ExtractionProgress(NamedTuple):
    """So far: passages extracted, reused, failed or left alone; tokens of language models."""

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
    since: int = 0,
    before: Outcomes | None = None,
    stop: Callable[[], bool] = never,
    on_progress: Callable[[ExtractionProgress], None] | None = None,
) -> ExtractionReport:
    """Extracts every passage whose text has no success in the log, appending each record as it is finished.

    Text that several ids share is extracted once (see AnswersById for what happens when it fails). Passage ids must be
    distinct (see corpus.distinct), else UsageError.
    quarantine_after : a text with so many failures in the log is left alone, unless retry_failed
    since            : lines of the log that do not count, from its beginning: what they say is asked again
    before           : what the log says, for one who knows it already
    stop             : once it says so no passage is begun; those that are under way are finished
    on_progress      : called after each record
    """
    run = _Run(before or log.outcomes(since=since), stop, sys.maxsize if retry_failed else quarantine_after)
    waiting = _fresh(passages, run)
    while True:
        for record in extractor.extract(waiting):
            _note(record, run, log)
            if on_progress is not None:
                on_progress(run.progress())
        _fail_unanswered(run, extractor, log)
        by_id = isinstance(extractor, AnswersById) and extractor.answers_by_id
        again = _next_ids(run) if by_id and not stop() else []
        if not again:
            return _report(run, log)
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
        self.sent: dict[str, _Sent] = {}
        self.errors: dict[str, str] = {}
        self.untried: dict[str, list[Passage]] = {}
        self.quarantined: list[tuple[str, str]] = []
        self.done = 0
        self.reused = 0
        self.untouched = 0
        self.usage = NO_TOKENS
        self.drops: Counter[str] = Counter()
        self.by_length = ByLength()
        self.damage = before.damage
        self.shared = 0
        self.shared_failures = 0

    def progress(self) -> ExtractionProgress:
        failed = len(self.errors) + self.shared_failures + len(self.quarantined)
        return ExtractionProgress(self.done, self.reused + self.shared, failed, self.usage)

    def share(self, key: str, ids: int) -> None:
        """So many more ids have a text whose outcome is known."""
        if key in self.errors:
            self.shared_failures += ids
        elif key in self.finished:
            self.shared += ids


class _Sent(NamedTuple):
    """A passage on its way: the key of its text, and its words."""

    key: str
    words: int


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
            run.share(key, 1)
        elif key in run.finished:
            run.reused += 1
        elif before is not None and before.attempts >= run.quarantine_after:
            run.quarantined.append((passage.id, f"{before.reason} ({before.attempts} failed runs)"))
        elif run.stop():
            run.untouched += 1
        else:
            run.first[key] = passage.id
            run.sent[passage.id] = _Sent(key, word_count(passage.text))
            yield passage


def _key(passage: Passage) -> str:
    return content_key(identity(passage.title, passage.text))


def _sent(passages: Iterable[Passage], run: _Run) -> Iterator[Passage]:
    for passage in passages:
        run.sent[passage.id] = _Sent(_key(passage), word_count(passage.text))
        yield passage


def _note(record: Record, run: _Run, log: ExtractionLog) -> None:
    """Logs one record under the key of the passage it answers."""
    sent = run.sent.pop(record.passage_id, None)
    if sent is None:
        raise ExtractionError(
            f"The extractor gave a record for passage '{record.passage_id}', which was not waiting for one. "
            "An extractor must yield one Record a passage, under the passage's id."
        )
    key, before = sent.key, run.before.get(sent.key)
    attempts = before.attempts if before else 0
    log.append(key, record, attempt=attempts + (not record.outage))
    run.drops.update(drop.reason for drop in record.drops)
    run.usage = run.usage.plus(record.usage)
    run.by_length.add(sent.words, record)
    others = len(run.others.get(key, ()))
    if key in run.errors:
        run.shared_failures -= others
    if record.error is None:
        run.done += 1
        run.errors.pop(key, None)
        run.finished.add(key)
    else:
        run.errors[key] = record.error
    run.share(key, others)


def _fail_unanswered(run: _Run, extractor: Extractor, log: ExtractionLog) -> None:
    """A failure for each passage that the extractor took and gave no record for."""
    for passage_id in list(run.sent):
        _note(Record(passage_id, (), error=f"the extractor '{extractor.name}' gave no record"), run, log)


def _next_ids(run: _Run) -> list[Passage]:
    """One more id to try for each failed text that has an untried one."""
    for key in run.errors:
        run.untried.setdefault(key, list(run.others.get(key, ())))
    return [run.untried[key].pop(0) for key in run.errors if run.untried[key]]


def _report(run: _Run, log: ExtractionLog) -> ExtractionReport:
    failed: list[tuple[str, str]] = []
    reused = run.reused
    for key, first in run.first.items():
        others = [passage.id for passage in run.others.get(key, ())]
        if key in run.errors:
            failed.extend((id_, run.errors[key]) for id_ in (first, *others))
        else:
            reused += len(others)
    return ExtractionReport(
        run.done,
        reused,
        tuple(failed),
        dict(run.drops),
        tuple(run.quarantined),
        run.untouched,
        run.usage,
        time.monotonic() - run.started,
        run.by_length.rows(),
        torn=log.torn,
        damage=run.damage,
    )
