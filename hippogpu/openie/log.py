"""The append-only log of what an extractor said, keyed by the passage's text: see log_lines for its lines."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from hippogpu.disk import make_folder, open_plain, sync_folder, write_all
from hippogpu.errors import ExtractionError, UsageError
from hippogpu.openie.log_lines import attempt_of, decode_record, encode_line, fault, read_lines
from hippogpu.types import Record

_BLOCK = 1 << 16
_APPENDING = os.O_APPEND | os.O_CREAT


class Torn(NamedTuple):
    """A last line that a crash cut short: how many bytes were taken out of the log, and where they lie now."""

    moved_bytes: int
    moved_to: Path


class Failed(NamedTuple):
    """A text that has no success: in how many runs it was tried, and why the last one failed."""

    attempts: int
    reason: str


class KeySet(Protocol):
    """Content keys that can be asked for and added to."""

    def __contains__(self, key: object, /) -> bool: ...

    def add(self, key: str, /) -> None: ...


class Outcomes(NamedTuple):
    """The content keys that have a success, what became of the others, and the damaged lines that were passed over."""

    finished: KeySet
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
            if self.path.parent.is_symlink():
                raise OSError(errno.ELOOP, f"'{self.path.parent}' is a symbolic link")
            make_folder(self.path.parent)
            self._file = open_plain(self.path, os.O_RDWR | _APPENDING)
            self.torn = _mend_tail(self.path, self._file)
            os.fsync(self._file)
            sync_folder(self.path.parent)
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
            write_all(self._file, line)
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
        for line in read_lines(self.path):
            if isinstance(line, str):
                damage.append(line)
                continue
            key, record = line.key, decode_record(line.record)
            if record.error is None:
                records[key] = record
                attempts.pop(key, None)
            elif key not in records or key in attempts:
                records[key] = record
                attempts[key] = attempt_of(line, attempts.get(key, 0))
        return Logged(records, attempts, tuple(damage))

    def outcomes(self, *, since: int = 0) -> Outcomes:
        """What was tried and how it ended, without holding the records. since: lines passed over at the beginning."""
        finished: set[str] = set()
        failed: dict[str, Failed] = {}
        damage: list[str] = []
        for line in islice(read_lines(self.path), since, None):
            if isinstance(line, str):
                damage.append(line)
                continue
            reason = line.record["error"]
            if reason is None:
                finished.add(line.key)
                failed.pop(line.key, None)
            elif line.key not in finished:
                before = failed[line.key].attempts if line.key in failed else 0
                failed[line.key] = Failed(attempt_of(line, before), reason)
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
    return [line for line in read_lines(path) if isinstance(line, str)]


def _mend_tail(path: Path, file: int) -> Torn | None:
    """Makes the log end with a line break: what follows the last one is completed when whole, else moved aside."""
    size = os.fstat(file).st_size
    start = _last_line_at(file, size)
    tail = os.pread(file, size - start, start)
    if not tail:
        return None
    if fault(tail + b"\n") is None:
        write_all(file, b"\n")
        return None
    aside = path.with_name(path.name + ".torn")
    torn = open_plain(aside, os.O_WRONLY | _APPENDING)
    try:
        write_all(torn, tail + b"\n")
        os.fsync(torn)
    finally:
        os.close(torn)
    sync_folder(path.parent)
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
