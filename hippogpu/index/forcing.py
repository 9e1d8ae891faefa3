"""A forced reading: every passage again, though a log has its record; a run that was cut short goes on.

openie/forced.json says who is reading, since when, how many lines its log had before, and whether all has been read.
Successes behind those lines are the new ones. It goes when an index has been made of them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hippogpu.disk import make_own_folder, read_plain, write_atomically
from hippogpu.errors import ExtractionError
from hippogpu.openie import Extractor
from hippogpu.openie.extractor import Remembering
from hippogpu.store import logs_folder

_MARK, _MARK_BYTES = "forced.json", 10_000


class Forced(NamedTuple):
    """A forced reading: by which extractor, behind how many lines of its log, begun when, and is all read?"""

    extractor: str
    lines: int
    begun: str
    finished: bool = False


def begin_forced(root: Path, extractor: Extractor, log: Path) -> Forced:
    """The forced reading that this extractor has begun and no index was made of, else a new one."""
    before, lines = forced_reading(root), _lines(log)
    if before is not None and before.extractor == extractor.name and before.lines <= lines:
        return before
    if isinstance(extractor, Remembering):
        extractor.forget()
    forced = Forced(extractor.name, lines, datetime.now(UTC).isoformat(timespec="seconds"))
    _write(root, forced)
    return forced


def finish_forced(root: Path, forced: Forced) -> None:
    """Notes that all has been read: the next commit builds of it."""
    if not forced.finished:
        _write(root, forced._replace(finished=True))


def end_forced(root: Path) -> None:
    """Forgets the forced reading; for after an index was made of it, or when it is given up."""
    path = logs_folder(root) / _MARK
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ExtractionError(
            f"'{path}' cannot be removed ({error}). Remove it: the next forced run would take what was read before "
            "for its own. The index is whole."
        ) from error


def forced_reading(root: Path) -> Forced | None:
    """The forced reading under way, None where there is none."""
    path = logs_folder(root) / _MARK
    try:
        value = json.loads(read_plain(path, most_bytes=_MARK_BYTES))
        forced = Forced(**value)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ExtractionError(f"'{path}' cannot be read ({error}). Remove it: forced runs then begin anew.") from error
    if [type(field) for field in forced] != [str, int, str, bool]:
        raise ExtractionError(f"'{path}' is no mark of a forced run. Remove it: forced runs then begin anew.")
    return forced


def _write(root: Path, forced: Forced) -> None:
    path = logs_folder(root) / _MARK
    try:
        make_own_folder(path.parent)
        write_atomically(path, json.dumps(forced._asdict()).encode("ascii"))
    except OSError as error:
        raise ExtractionError(f"'{path}' cannot be written ({error}). Make room, then run again.") from error


def _lines(log: Path) -> int:
    if not log.is_file():
        return 0
    with log.open("rb") as file:
        return sum(1 for _ in file)
