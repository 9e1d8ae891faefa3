"""The append-only log of what an extractor said: one checked JSON line a record, keyed by the passage's text.

    {"crc":"1c2d3e4f","key":"<content key of title, newline, text>","record":{…}}

A record holds passage_id, error, entities, triples and drops; a failure also its attempt, and outage when the extractor
could not be reached; a model's reply its tokens [prompt, cached, completion].

crc is the CRC-32 of the line's bytes behind the crc field (from "key" on, without the line break). Lines are ASCII:
lone surrogates survive as escapes.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from hippogpu.errors import ExtractionError, UsageError
from hippogpu.types import NO_TOKENS, Drop, Record, Triple, Usage

_HEAD = b'{"crc":"'
_BODY_AT = len(_HEAD) + 8 + 2  # eight hex digits, a quote, a comma
_BLOCK = 1 << 16


class Torn(NamedTuple):
    """A last line that a crash cut short: how many bytes were taken out of the log, and where they lie now."""

    moved_bytes: int
    moved_to: Path


class Failed(NamedTuple):
    """A text that has no success: in how many runs it was tried, and why the last one failed."""

    attempts: int
    reason: str


class Outcomes(NamedTuple):
    """The content keys that have a success, what became of the others, and the damaged lines that were passed over."""

    finished: set[str]
    failed: dict[str, Failed]
    damage: tuple[str, ...] = ()


class Logged(NamedTuple):
    """What a log says, by content key.

    records  : the last success of each key, else its last failure
    attempts : in how many runs each key that has no success was tried
    damage   : one "FILE:LINE: reason" for each line that was passed over as damaged
    """

    records: dict[str, Record]
    attempts: dict[str, int]
    damage: tuple[str, ...]


class ExtractionLog:
    """The log at a path, open for appending; made with its folder when there is none.

    append hands each line to the system at once, so a killed process loses nothing. The disk is waited for (fsync)
    at most every sync_every_s seconds of appending and on close, so a power cut loses that much at most.
    A last line without its line break is whole (it gets one) or torn: then it is moved to "<name>.torn" beside the
    log, and .torn says so. One writer at a time; ExtractionError when the file cannot be opened or written.
    """

    def __init__(self, path: Path, *, sync_every_s: float = 5.0) -> None:
        self.path = Path(path)
        self._sync_every_s = sync_every_s
        self._synced_at = time.monotonic()
        self._file = -1
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            self.torn = _mend_tail(self.path, self._file)
            os.fsync(self._file)
            _sync_folder(self.path.parent)
        except OSError as error:
            self._let_go()
            raise self._unwritable(error) from error

    def append(self, key: str, record: Record, *, attempt: int = 1) -> None:
        """Adds one line; a line that could not be written whole is taken back before the error goes out.

        Where it cannot be taken back either the log is closed, so that nothing is written behind it; opened again,
        it mends itself.
        attempt : how often this text was tried and failed, this time included unless it is an outage
        """
        if self._file < 0:
            raise UsageError(f"The extraction log '{self.path}' is closed. Open it again to append.")
        line = encode_line(key, record, attempt=attempt)
        before = self._size()
        try:
            _write_all(self._file, line)
            if time.monotonic() - self._synced_at >= self._sync_every_s:
                self._sync()
        except OSError as error:
            self._take_back(before)
            raise self._unwritable(error) from error

    def load(self) -> Logged:
        """Everything the log says so far."""
        records: dict[str, Record] = {}
        attempts: dict[str, int] = {}
        damage: list[str] = []
        for line in _read_lines(self.path):
            if isinstance(line, str):
                damage.append(line)
                continue
            key, record = line.key, decode_record(line.record)
            if record.error is None:
                records[key] = record
                attempts.pop(key, None)
            elif key not in records or key in attempts:
                records[key] = record
                attempts[key] = _attempt(line, attempts.get(key, 0))
        return Logged(records, attempts, tuple(damage))

    def outcomes(self) -> Outcomes:
        """What was tried and how it ended, without holding the records."""
        finished: set[str] = set()
        failed: dict[str, Failed] = {}
        damage: list[str] = []
        for line in _read_lines(self.path):
            if isinstance(line, str):
                damage.append(line)
                continue
            reason = line.record["error"]
            if reason is None:
                finished.add(line.key)
                failed.pop(line.key, None)
            elif line.key not in finished:
                before = failed[line.key].attempts if line.key in failed else 0
                failed[line.key] = Failed(_attempt(line, before), reason)
        return Outcomes(finished, failed, tuple(damage))

    def close(self) -> None:
        """Waits for the disk and lets the file go, even if that fails; a second close does nothing."""
        if self._file < 0:
            return
        try:
            self._sync()
        except OSError as failed:
            raise self._unwritable(failed) from failed
        finally:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ExtractionError as failed:
            if error is None:
                raise
            error.add_note(str(failed))

    def _size(self) -> int:
        try:
            return os.fstat(self._file).st_size
        except OSError as error:
            raise self._unwritable(error) from error

    def _take_back(self, size: int) -> None:
        """Cuts the log to what it was; closes it when that fails."""
        try:
            os.ftruncate(self._file, size)
        except OSError:
            self._let_go()

    def _let_go(self) -> None:
        """Closes the file if it is open; what closing says of writes that failed, the wait for the disk said before."""
        if self._file >= 0:
            file, self._file = self._file, -1
            with suppress(OSError):
                os.close(file)

    def _sync(self) -> None:
        os.fsync(self._file)
        self._synced_at = time.monotonic()

    def _unwritable(self, error: OSError) -> ExtractionError:
        return ExtractionError(
            f"The extraction log '{self.path}' cannot be written ({error}). "
            "Make room or set its permissions, then run again: finished passages are kept."
        )


def verify_log(path: Path) -> list[str]:
    """One "FILE:LINE: reason" for each damaged line of a log, the torn last one too; changes nothing."""
    path = Path(path)
    if not path.is_file():
        return [f"{path}: missing"]
    return [line for line in _read_lines(path) if isinstance(line, str)]


def encode_line(key: str, record: Record, *, attempt: int = 1) -> bytes:
    """The log line of a record, line break included."""
    value = _record_value(record, attempt)
    body = json.dumps({"key": key, "record": value}, separators=(",", ":"))[1:].encode("ascii")
    return b'%b%08x",%b\n' % (_HEAD, zlib.crc32(body), body)


def _record_value(record: Record, attempt: int) -> dict[str, Any]:
    value: dict[str, Any] = {
        "passage_id": record.passage_id,
        "error": record.error,
        "entities": record.entities,
        "triples": [triple if triple.text is not None else triple[:3] for triple in record.triples],
        "drops": record.drops,
    }
    if record.error is not None:
        value["attempt"] = attempt
    if record.outage:
        value["outage"] = True
    if record.usage != NO_TOKENS:
        value["tokens"] = record.usage
    return value


def decode_record(value: dict[str, Any]) -> Record:
    """The record of a log line's "record"."""
    return Record(
        value["passage_id"],
        tuple(Triple(*triple) for triple in value["triples"]),
        tuple(value["entities"]),
        tuple(Drop(*drop) for drop in value["drops"]),
        value["error"],
        Usage(*value.get("tokens", ())),
        value.get("outage", False),
    )


class _Line(NamedTuple):
    key: str
    record: dict[str, Any]


def _attempt(line: _Line, before: int) -> int:
    """Which try a failure was, as it says itself; else one more than those before."""
    return int(line.record.get("attempt", before + 1))


def _read_lines(path: Path) -> Iterator[_Line | str]:
    """The lines of a log in order; a damaged one as text that says where and why."""
    for number, line in enumerate(_raw_lines(path), start=1):
        fault = _fault(line)
        if fault is not None:
            yield f"{path}:{number}: {fault}"
            continue
        value = json.loads(b"{" + line[_BODY_AT:])
        yield _Line(value["key"], value["record"])


def _raw_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise ExtractionError(
            f"The extraction log '{path}' cannot be read ({error}). Set its permissions or mend the disk."
        ) from error


def _fault(line: bytes) -> str | None:
    """Why a line cannot be trusted, None when its bytes are those that were written."""
    if not line.endswith(b"\n"):
        return "cut short (no line break)"
    if not line.startswith(_HEAD) or line[_BODY_AT - 2 : _BODY_AT] != b'",':
        return "no checksum at its start"
    written = line[len(_HEAD) : _BODY_AT - 2]
    real = b"%08x" % zlib.crc32(line[_BODY_AT:-1])
    return None if written == real else f"altered (checksum {real.decode()}, written as {written!r})"


def _mend_tail(path: Path, file: int) -> Torn | None:
    """Makes the log end with a line break: what follows the last one is completed when whole, else moved aside."""
    size = os.fstat(file).st_size
    start = _last_line_at(file, size)
    tail = os.pread(file, size - start, start)
    if not tail:
        return None
    if _fault(tail + b"\n") is None:
        _write_all(file, b"\n")
        return None
    aside = path.with_name(path.name + ".torn")
    with aside.open("ab") as torn:
        torn.write(tail + b"\n")
        torn.flush()
        os.fsync(torn.fileno())
    os.ftruncate(file, start)
    return Torn(len(tail), aside)


def _last_line_at(file: int, size: int) -> int:
    """The offset behind the last line break."""
    at = size
    while at > 0:
        start = max(0, at - _BLOCK)
        found = os.pread(file, at - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
