"""A forced reading: every passage again, though a log has its record; a run that was cut short goes on.

openie/forced.json says who is reading and how many lines its log had before. Successes behind those are the new ones.
"""

from __future__ import annotations

import json
from pathlib import Path

from hippogpu.errors import ExtractionError
from hippogpu.openie import Extractor
from hippogpu.openie.extractor import Remembering
from hippogpu.store import logs_folder
from hippogpu.store.files import read_plain, write_atomically

_MARK, _MARK_BYTES = "forced.json", 10_000


def begin_forced(root: Path, extractor: Extractor, log: Path) -> int:
    """The number of lines of the log that do not count: those before the forced reading, begun now or earlier."""
    path, lines = logs_folder(root) / _MARK, _lines(log)
    before = _marked(path, extractor.name)
    if before is not None and before <= lines:
        return before
    if isinstance(extractor, Remembering):
        extractor.forget()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"extractor": extractor.name, "lines": lines}).encode("ascii"))
    except OSError as error:
        raise ExtractionError(f"'{path}' cannot be written ({error}). Make room, then run again.") from error
    return lines


def end_forced(root: Path) -> None:
    """Forgets the forced reading; for after an index was made of it."""
    path = logs_folder(root) / _MARK
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ExtractionError(
            f"'{path}' cannot be removed ({error}), though the index is made. Remove it: the next forced run would "
            "take these readings for its own."
        ) from error


def _marked(path: Path, name: str) -> int | None:
    """The lines that the mark says, None where there is none of that extractor."""
    try:
        value = json.loads(read_plain(path, most_bytes=_MARK_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ExtractionError(
            f"'{path}' cannot be read ({error}). Remove it: a forced run then begins anew."
        ) from error
    if not isinstance(value, dict) or type(value.get("lines")) is not int:
        raise ExtractionError(f"'{path}' is no mark of a forced run. Remove it: a forced run then begins anew.")
    return value["lines"] if value.get("extractor") == name else None


def _lines(log: Path) -> int:
    if not log.is_file():
        return 0
    with log.open("rb") as file:
        return sum(1 for _ in file)
