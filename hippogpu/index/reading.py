"""Passages to records: what the logs of an index know, and what an extractor has to read now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hippogpu.config import ExtractConfig
from hippogpu.errors import ConfigError
from hippogpu.index.forcing import Forced, begin_forced, finish_forced
from hippogpu.index.logs import Logs, log_path, note_use, used_extractors
from hippogpu.index.records import NOWHERE, Records
from hippogpu.index.recovering import recovered
from hippogpu.openie import (
    ExtractionLog,
    ExtractionProgress,
    ExtractionReport,
    Extractor,
    NoExtractor,
    extract_missing,
)
from hippogpu.openie.missing import never
from hippogpu.openie.places import Keys, Places, packed_keys
from hippogpu.store import Passages, Snapshot
from hippogpu.types import Longs, Record

OnExtracted = Callable[[ExtractionProgress, int], None]


class Reading(NamedTuple):
    """Passages with the extractor that read each ("" for none), and the record of each.

    damage    : lines of the extraction logs that were passed over, "FILE:LINE: reason"
    recovered : records that the logs have lost, taken from the stored generation
    """

    passages: Passages
    records: Records
    damage: tuple[str, ...]
    recovered: int = 0


@dataclass(frozen=True, slots=True)
class Reader:
    """How passages are read. extractor None takes the logs alone.

    quarantine_after, retry_failed, stop : see openie.extract_missing
    forced      : read every passage again, whoever has read it; a forced reading that was cut short goes on
    on_progress : called with what is done so far and the number of ids to read
    """

    extractor: Extractor | None
    quarantine_after: int = ExtractConfig().quarantine_after
    retry_failed: bool = False
    forced: bool = False
    stop: Callable[[], bool] = never
    on_progress: OnExtracted | None = None


def extract(
    root: Path, passages: Passages, keys: Sequence[str], reader: Reader, logs: Logs | None = None
) -> ExtractionReport:
    """Reads every passage that no log has a success for, and tells who has read which.

    keys : one a passage, the content key under which its record is logged
    A passage keeps the record it has, whoever read it. What a log has lost since is read again where there is an
    extractor. ConfigError when one is needed and there is none.
    """
    logs = logs or Logs(root)
    if reader.forced:
        return _read_again(root, passages, reader)
    used = used_extractors(root)
    newest = reader.extractor.name if reader.extractor is not None else (used or [""])[-1]
    passages = reopened(passages, newest)
    asked = [newest] if newest and reader.extractor is None else []
    said = {name: logs.of(name) for name in [*asked, *_others(passages, used, newest)]}
    names = _owners(passages, _held(said, packed_keys(keys)), newest=newest)
    kept = Counter(names[row] for row in passages.rows if names[row] in said)
    if reader.extractor is not None:
        report = _extracted(root, passages, names, reader.extractor, reader, logs=logs)
        records = kept + Counter({newest: report.done + report.reused})
    else:
        report = ExtractionReport(failed=_failures(passages, names, keys, newest, said.get(newest)))
        records = kept
    damage = (*(line for log in said.values() for line in log.damage), *report.damage)
    return report._replace(reused=report.reused + kept.total(), records=dict(records), damage=damage)


def collect(
    root: Path,
    passages: Passages,
    keys: Sequence[str],
    newest: str,
    *,
    logs: Logs | None = None,
    forced: Forced | None = None,
    stored: Snapshot | None = None,
) -> Reading:
    """The record of each passage: from the log it was read from, else the newest extractor's, else any that has one.

    forced : a reading whose records come before all others
    stored : the generation that speaks where all logs have lost a record it was made of
    """
    logs, packed = logs or Logs(root), packed_keys(keys)
    passages = reopened(passages, newest)
    if forced is not None:
        places = logs.of(forced.extractor)
        rows = places.rows(packed)
        again = (rows >= 0) & (_at(places.line, rows) >= forced.lines)
        own = [forced.extractor if anew else name for name, anew in zip(passages.extractors, again, strict=True)]
        passages = replace(passages, extractors=own)
    others = _others(passages, used_extractors(root), newest)
    said = {name: logs.of(name) for name in dict.fromkeys([newest, *others]) if name}
    names = _owners(passages, _held(said, packed), newest=newest)
    owned = zip(passages.extractors, names, keys, strict=True)
    lost = [key for own, name, key in owned if own and not name]
    found = recovered(stored, lost) if stored is not None and lost else {}
    elsewhere = {row: found[key] for row, key in enumerate(keys) if key in found} if found else {}
    records = _records(root, packed, names, said, elsewhere)
    names = [passages.extractors[row] if row in elsewhere else name for row, name in enumerate(names)]
    damage = tuple(line for log in said.values() for line in log.damage)
    return Reading(replace(passages, extractors=names), records, damage, len(found))


def _records(
    root: Path, keys: Keys, names: Sequence[str], said: Mapping[str, Places], elsewhere: Mapping[int, Record]
) -> Records:
    """The records of passages of these keys, each from the log of the extractor that is named for it."""
    number = {name: place for place, name in enumerate(said)}
    log = np.fromiter((number.get(name, NOWHERE) for name in names), np.int16, len(names))
    begin, end, crc = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64), np.zeros(len(names), np.uint32)
    for name, place in number.items():
        here = np.flatnonzero(log == place)
        rows = said[name].rows(keys[here])
        begin[here], end[here], crc[here] = said[name].begin[rows], said[name].end[rows], said[name].crc[rows]
    return Records(keys, [log_path(root, name) for name in said], log, begin, end, crc, elsewhere)


def _held(said: Mapping[str, Places], keys: Keys) -> dict[str, list[bool]]:
    """By extractor, of each text whether its log has a success."""
    return {name: (places.rows(keys) >= 0).tolist() for name, places in said.items()}


def _at(column: Longs, rows: Longs) -> Longs:
    """The values of these rows, −1 for the row −1."""
    values = np.full(len(rows), -1, np.int64)
    values[rows >= 0] = column[rows[rows >= 0]]
    return values


def reopened(passages: Passages, newest: str) -> Passages:
    """The passages as an extractor of that name finds them: what NoExtractor passed over is unread for any other."""
    if newest in ("", NoExtractor.name) or NoExtractor.name not in passages.extractors:
        return passages
    return replace(passages, extractors=["" if name == NoExtractor.name else name for name in passages.extractors])


def _others(passages: Passages, used: Sequence[str], newest: str) -> list[str]:
    """The extractors beside the newest whose logs may have a record: owners of passages, and those used before."""
    names = [*used[::-1], *sorted(set(passages.extractors))]
    return [name for name in dict.fromkeys(names) if name not in ("", newest, NoExtractor.name)]


def _owners(passages: Passages, held: Mapping[str, Sequence[bool]], *, newest: str) -> list[str]:
    """Whose record each passage has: its own extractor's, else the newest's, else that of the first that has one.

    held : by extractor, of each passage whether it has a success of it. A name that is not in it is taken at its word.
    """
    order = [name for name in (newest, *held) if name in held]

    def owner(row: int, own: str) -> str:
        if own and (own not in held or held[own][row]):
            return own
        return next((name for name in order if held[name][row]), "")

    return [owner(row, own) for row, own in enumerate(passages.extractors)]


def _read_again(root: Path, passages: Passages, reader: Reader) -> ExtractionReport:
    """A forced reading of all passages."""
    if reader.extractor is None:
        raise ConfigError(
            "Reading passages again needs an extractor. Open the index with one; on the command line name it: "
            "--extractor, or --url and --model, or --openie FILE."
        )
    path = log_path(root, reader.extractor.name)
    # Lines are counted when the log has mended what a crash had torn.
    with ExtractionLog(path):
        forced = begin_forced(root, reader.extractor, path)
    report = _extracted(root, passages, [""] * len(passages), reader.extractor, reader, since=forced.lines)
    if not report.untouched:
        finish_forced(root, forced)
    return report._replace(records={reader.extractor.name: report.done + report.reused}, forced=forced.begun)


def _extracted(
    root: Path,
    passages: Passages,
    names: Sequence[str],
    extractor: Extractor,
    reader: Reader,
    *,
    since: int = 0,
    logs: Logs | None = None,
) -> ExtractionReport:
    """A run of the extractor over what the other logs do not know.

    since : see openie.extract_missing · logs: what they say, where all their lines count
    """
    wanted = [number for number, row in enumerate(passages.rows) if names[row] in ("", extractor.name)]

    def progress(so_far: ExtractionProgress) -> None:
        if so_far.done == 1:
            note_use(root, extractor.name)
        if reader.on_progress is not None:
            reader.on_progress(so_far, len(wanted))

    if reader.on_progress is not None:
        reader.on_progress(ExtractionProgress(0, 0, 0), len(wanted))
    with ExtractionLog(log_path(root, extractor.name)) as log:
        report = extract_missing(
            map(passages.named, wanted),
            extractor,
            log,
            quarantine_after=reader.quarantine_after,
            retry_failed=reader.retry_failed,
            since=since,
            before=logs.of(extractor.name).outcomes() if logs is not None else None,
            stop=reader.stop,
            on_progress=progress,
        )
    if report.done + report.reused:
        note_use(root, extractor.name)
    return report


def _failures(
    passages: Passages, names: Sequence[str], keys: Sequence[str], newest: str, log: Places | None
) -> tuple[tuple[str, str], ...]:
    """Id and reason of each passage without a record, by the last extractor's log; ConfigError for one never tried.

    One whose record the logs have lost is none of them: the stored generation has it.
    """
    unread = [not (name or own) for name, own in zip(names, passages.extractors, strict=True)]
    open_ids = [(id_, keys[row]) for id_, row in zip(passages.ids, passages.rows, strict=True) if unread[row]]
    tried = log.failed if log is not None else {}
    untried = len({key for _, key in open_ids if key not in tried})
    if untried:
        reader = f", and '{newest}', which has read here so far, is not at hand" if newest else ""
        raise ConfigError(
            f"{untried} texts have no record yet{reader}. Open the index with an extractor; on the command line "
            "name the model again (--url and --model, or [llm] of --config), the stored extractions (--openie FILE), "
            "or --extractor spacy."
        )
    return tuple((id_, tried[key].reason) for id_, key in open_ids)
