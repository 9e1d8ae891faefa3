"""Which extractor says what of each passage: from the logs where they know it, else asked now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hippogpu.errors import ConfigError
from hippogpu.openie import ExtractionLog, ExtractionProgress, ExtractionReport, Extractor, Logged, extract_missing
from hippogpu.store import Passages, logs_folder
from hippogpu.text import content_key
from hippogpu.types import Record

Count = Callable[[int, int], None]


class Reading(NamedTuple):
    """Passages with the extractor that read each ("" for none), the record of each, and how extraction went.

    damage : lines of the extraction logs that were passed over, "FILE:LINE: reason"
    """

    passages: Passages
    records: tuple[Record | None, ...]
    report: ExtractionReport
    damage: tuple[str, ...]


def read(
    root: Path, passages: Passages, keys: Sequence[str], *, extractor: Extractor | None, on_progress: Count
) -> Reading:
    """The record of each passage: from the log it was read from, else from the extractor's log, else extracted now.

    keys : one a passage, the content key under which its record is logged
    What a log has lost since is extracted again. ConfigError when an extractor is needed and there is none.
    """
    newest = extractor.name if extractor is not None else ""
    logs = {name: _logged(root, name) for name in sorted(set(passages.extractors) - {"", newest})}
    records, report = _held(logs, keys, passages.extractors), ExtractionReport(0, 0, (), {})
    names = [name if record else "" for name, record in zip(passages.extractors, records, strict=True)]
    if extractor is not None:
        logs[newest], report = _extracted(root, passages, names, extractor=extractor, on_progress=on_progress)
        names = [name or newest for name in names]
        records = _held(logs, keys, names)
    names = [name if record else "" for name, record in zip(names, records, strict=True)]
    if extractor is None and "" in names:
        raise ConfigError(
            f"{names.count('')} passages have no extraction yet, or their log has lost it. Open the index with "
            "an extractor (on the command line: --openie FILE)."
        )
    damage = tuple(line for log in logs.values() for line in log.damage)
    return Reading(replace(passages, extractors=names), records, report, damage)


def log_path(root: Path, extractor: str) -> Path:
    """Where an extractor's log lies: its name; a digest tells names apart that no file can be called by."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in extractor)[:100]
    name = safe if safe == extractor else f"{safe}-{content_key(extractor)[:8]}"
    return logs_folder(root) / f"{name}.jsonl"


def _extracted(
    root: Path, passages: Passages, names: Sequence[str], *, extractor: Extractor, on_progress: Count
) -> tuple[Logged, ExtractionReport]:
    """The extractor's log after a run over what the other logs do not know."""
    wanted = [number for number, row in enumerate(passages.rows) if names[row] in ("", extractor.name)]

    def progress(so_far: ExtractionProgress) -> None:
        on_progress(so_far.done + so_far.reused + so_far.failed, len(wanted))

    with ExtractionLog(log_path(root, extractor.name)) as log:
        report = extract_missing(map(passages.named, wanted), extractor, log, on_progress=progress)
        return log.load(), report


def _logged(root: Path, name: str) -> Logged:
    with ExtractionLog(log_path(root, name)) as log:
        return log.load()


def _held(logs: Mapping[str, Logged], keys: Sequence[str], names: Sequence[str]) -> tuple[Record | None, ...]:
    """The success that each passage's own log has for it."""
    records = (logs[name].records.get(key) if name in logs else None for key, name in zip(keys, names, strict=True))
    return tuple(record if record is not None and record.error is None else None for record in records)
