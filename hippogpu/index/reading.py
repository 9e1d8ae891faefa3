"""Passages to records: what the logs of an index know, and what an extractor has to read now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from hippogpu.config import ExtractConfig
from hippogpu.errors import ConfigError, ExtractionError
from hippogpu.openie import (
    ExtractionLog,
    ExtractionProgress,
    ExtractionReport,
    Extractor,
    Logged,
    NoExtractor,
    extract_missing,
)
from hippogpu.openie.missing import never
from hippogpu.store import Passages, logs_folder
from hippogpu.store.files import write_atomically
from hippogpu.text import content_key
from hippogpu.types import Record

OnExtracted = Callable[[ExtractionProgress, int], None]
_LAST = "LAST"


class Reading(NamedTuple):
    """Passages with the extractor that read each ("" for none), the record of each, and how extraction went.

    damage : lines of the extraction logs that were passed over, "FILE:LINE: reason"
    """

    passages: Passages
    records: tuple[Record | None, ...]
    report: ExtractionReport
    damage: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """How passages are read. extractor None takes the logs alone, with that of the extractor used last.

    quarantine_after, retry_failed, stop : see openie.extract_missing
    on_progress : called with what is done so far and the number of ids to read
    """

    extractor: Extractor | None
    quarantine_after: int = ExtractConfig().quarantine_after
    retry_failed: bool = False
    stop: Callable[[], bool] = never
    on_progress: OnExtracted | None = None


def read(root: Path, passages: Passages, keys: Sequence[str], reader: Reader) -> Reading:
    """The record of each passage: from the log it was read from, else from the extractor's log, else extracted now.

    keys : one a passage, the content key under which its record is logged
    What a log has lost since is extracted again. ConfigError when an extractor is needed and there is none.
    """
    newest = reader.extractor.name if reader.extractor is not None else last_extractor(root)
    passages = reopened(passages, newest)
    logs = {name: _logged(root, name) for name in sorted(set(passages.extractors) - {"", newest})}
    records, report = _held(logs, keys, passages.extractors), ExtractionReport()
    names = [name if record else "" for name, record in zip(passages.extractors, records, strict=True)]
    if reader.extractor is not None:
        logs[newest], report = _extracted(root, passages, names, reader.extractor, reader)
    elif newest:
        logs[newest] = _logged(root, newest)
        report = _report_of(passages, names, keys, logs[newest])
    names = [name or newest for name in names]
    records = _held(logs, keys, names)
    names = [name if record else "" for name, record in zip(names, records, strict=True)]
    if reader.extractor is None:
        _require_tried(names, keys, logs.get(newest))
    damage = tuple(line for log in logs.values() for line in log.damage)
    return Reading(replace(passages, extractors=names), records, report, damage)


def log_path(root: Path, extractor: str) -> Path:
    """Where an extractor's log lies: its name; a digest tells names apart that no file can be called by."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in extractor)[:100]
    name = safe if safe == extractor else f"{safe}-{content_key(extractor)[:8]}"
    return logs_folder(root) / f"{name}.jsonl"


def last_extractor(root: Path) -> str:
    """The name of the extractor that was used last in this folder, "" when there was none."""
    path = logs_folder(root) / _LAST
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ExtractionError(f"'{path}' cannot be read ({error}). Set its permissions, or remove it.") from error


def reopened(passages: Passages, newest: str) -> Passages:
    """The passages as an extractor of that name finds them: what NoExtractor passed over is unread for any other."""
    if newest in ("", NoExtractor.name) or NoExtractor.name not in passages.extractors:
        return passages
    return replace(passages, extractors=["" if name == NoExtractor.name else name for name in passages.extractors])


def _extracted(
    root: Path, passages: Passages, names: Sequence[str], extractor: Extractor, reader: Reader
) -> tuple[Logged, ExtractionReport]:
    """The extractor's log after a run over what the other logs do not know."""
    wanted = [number for number, row in enumerate(passages.rows) if names[row] in ("", extractor.name)]
    tell = reader.on_progress

    def progress(so_far: ExtractionProgress) -> None:
        if tell is not None:
            tell(so_far, len(wanted))

    with ExtractionLog(log_path(root, extractor.name)) as log:
        if last_extractor(root) != extractor.name:
            write_atomically(logs_folder(root) / _LAST, extractor.name.encode("utf-8", "replace"))
        report = extract_missing(
            map(passages.named, wanted),
            extractor,
            log,
            quarantine_after=reader.quarantine_after,
            retry_failed=reader.retry_failed,
            stop=reader.stop,
            on_progress=progress,
        )
        return log.load(), report


def _report_of(passages: Passages, names: Sequence[str], keys: Sequence[str], log: Logged) -> ExtractionReport:
    """What a log says of the passages that no other log knows: how many it has, and which failed."""
    reused, failed = 0, []
    for id_, row in zip(passages.ids, passages.rows, strict=True):
        record = None if names[row] else log.records.get(keys[row])
        if record is not None and record.error is not None:
            failed.append((id_, record.error))
        reused += record is not None and record.error is None
    return ExtractionReport(reused=reused, failed=tuple(failed))


def _require_tried(names: Sequence[str], keys: Sequence[str], log: Logged | None) -> None:
    """ConfigError when a passage has no record and was never tried."""
    untried = sum(not name and (log is None or key not in log.records) for name, key in zip(names, keys, strict=True))
    if untried:
        raise ConfigError(
            f"{untried} passages have no extraction yet, or their log has lost it. Open the index with "
            "an extractor (on the command line: --extractor NAME, or --openie FILE)."
        )


def _logged(root: Path, name: str) -> Logged:
    with ExtractionLog(log_path(root, name)) as log:
        return log.load()


def _held(logs: Mapping[str, Logged], keys: Sequence[str], names: Sequence[str]) -> tuple[Record | None, ...]:
    """The success that each passage's own log has for it."""
    records = (logs[name].records.get(key) if name in logs else None for key, name in zip(keys, names, strict=True))
    return tuple(record if record is not None and record.error is None else None for record in records)
