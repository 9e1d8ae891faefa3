"""The records that extractors left in the logs of an index, carried along: in the logs' own lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.errors import CorpusError
from hippogpu.exchange.parquet_tables import Declared, unfit
from hippogpu.exchange.values import OnProgress
from hippogpu.index.logs import log_path, note_use, used_extractors
from hippogpu.openie import ExtractionLog
from hippogpu.openie.log_lines import attempt_of, decode_record, encode_line, read_lines
from hippogpu.store import Snapshot
from hippogpu.store.mapped import sha256_of
from hippogpu.text import content_key
from hippogpu.types import Record

PLAIN_NAME = re.compile(r"records-[0-9]{4}\.jsonl")
_LONGEST_NAME = 1000


class RecordFile(NamedTuple):
    """The records of one extractor, in the order in which extractors were used."""

    extractor: str
    file: str
    bytes: int
    sha256: str
    records: int

    @property
    def declared(self) -> Declared:
        return Declared(self.bytes, self.sha256, self.records)


def write_records(
    root: Path, snapshot: Snapshot, folder: Path, on_progress: OnProgress
) -> tuple[list[RecordFile], tuple[str, ...]]:
    """A file an extractor with what its log says of the passages of the snapshot, and notes on what was not there."""
    wanted = {content_key(whole) for whole in snapshot.passages.wholes}
    owners = sorted(set(snapshot.passages.extractors) - {""})
    used = used_extractors(root)
    names = [*(name for name in owners if name not in used), *used]
    files: list[RecordFile] = []
    notes: list[str] = []
    for done, name in enumerate(names):
        on_progress("records", done, len(names))
        log = log_path(root, name)
        if not log.is_file():
            notes.append(f"The log of '{name}' is not there ('{log}'), so its records are not in the export.")
            continue
        path, damaged = folder / f"records-{len(files):04}.jsonl", list[str]()
        with path.open("wb") as out:
            lines = _last_words(log, wanted, damaged)
            for key, (record, attempt) in lines.items():
                out.write(encode_line(key, record, attempt=attempt))
        files.append(RecordFile(name, path.name, path.stat().st_size, sha256_of(path), len(lines)))
        notes.extend(f"A damaged line was left out of the export: {line}" for line in damaged)
    on_progress("records", len(names), len(names))
    return files, tuple(notes)


def _last_words(log: Path, wanted: Collection[str], damaged: list[str]) -> dict[str, tuple[Record, int]]:
    """Of each wanted key the last success, else the last failure and which try it was."""
    found: dict[str, tuple[Record, int]] = {}
    for line in read_lines(log):
        if isinstance(line, str):
            damaged.append(line)
        elif line.key in wanted:
            record = decode_record(line.record)
            before = found.get(line.key)
            if record.error is None:
                found[line.key] = (record, 1)
            elif before is None or before[0].error is not None:
                found[line.key] = (record, attempt_of(line, before[1] if before else 0))
    return found


def read_records(root: Path, folder: Path, files: list[RecordFile], wanted: Collection[str]) -> int:
    """Fills the logs of an index folder from the files of an export; how many records there are.

    CorpusError, naming the file, for a damaged line, a record of another shape, or one of a text that is not wanted.
    """
    count = 0
    for one in files:
        with ExtractionLog(log_path(root, one.extractor)) as log:
            for key, record, attempt in _checked(folder / one.file, one, wanted):
                log.append(key, record, attempt=attempt)
                count += 1
        note_use(root, one.extractor)
    return count


def record_file(value: dict[str, Any]) -> RecordFile:
    """What the head says of a file of records; ValueError when it cannot be."""
    found = RecordFile(*(value[name] for name in RecordFile._fields))
    if not isinstance(found.file, str) or not PLAIN_NAME.fullmatch(found.file):
        raise ValueError(f"{found.file!r} is no name of a file of records")
    if not isinstance(found.extractor, str) or not 0 < len(found.extractor) <= _LONGEST_NAME:
        raise ValueError(f"{found.extractor!r:.60} is no name of an extractor")
    return found


def _checked(path: Path, one: RecordFile, wanted: Collection[str]) -> Iterator[tuple[str, Record, int]]:
    seen: set[str] = set()
    for line in read_lines(path):
        if isinstance(line, str):
            raise CorpusError(f"{line}. Export the index again.")
        if line.key not in wanted or line.key in seen:
            raise unfit(path, f"it holds a record of a text that the export has not, or two of one ({line.key!r:.40})")
        seen.add(line.key)
        yield line.key, decode_record(line.record), attempt_of(line, 0)
    if len(seen) != one.records:
        raise unfit(path, f"it holds {len(seen)} records, not {one.records}")
