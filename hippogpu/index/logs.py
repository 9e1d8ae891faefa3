"""The extraction logs of an index folder: where each lies, what it says, and who has read last."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hippogpu.disk import read_plain, write_atomically
from hippogpu.errors import ExtractionError
from hippogpu.openie import ExtractionLog
from hippogpu.openie.places import Places, read_places
from hippogpu.store import logs_folder
from hippogpu.text import content_key

_USED = "extractors.json"
_NAME_BYTES, _USED_BYTES = 100, 1 << 20


def log_path(root: Path, extractor: str) -> Path:
    """Where an extractor's log lies: its name; a digest tells names apart that no file can be called by."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in extractor)
    safe = safe.encode()[:_NAME_BYTES].decode(errors="ignore")
    name = safe if safe == extractor else f"{safe}-{content_key(extractor)[:8]}"
    return logs_folder(root) / f"{name}.jsonl"


def used_extractors(root: Path) -> list[str]:
    """The names of the extractors that have read passages of this folder, the last one at the end."""
    path = logs_folder(root) / _USED
    try:
        names = json.loads(read_plain(path, most_bytes=_USED_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise ExtractionError(f"'{path}' cannot be read ({error}). Remove it: only the order is lost.") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ExtractionError(f"'{path}' is no list of names. Remove it: only the order is lost.")
    return names


def note_use(root: Path, name: str) -> None:
    """Puts the extractor at the end of those used."""
    used = used_extractors(root)
    if used[-1:] == [name]:
        return
    path = logs_folder(root) / _USED
    try:
        write_atomically(path, json.dumps([*(other for other in used if other != name), name]).encode("ascii"))
    except OSError as error:
        raise ExtractionError(f"'{path}' cannot be written ({error}). Make room, then run again.") from error


class Logs:
    """What the logs of an index folder say, each line read once while its writer is open."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, Places] = {}

    def of(self, name: str) -> Places:
        """What the log of an extractor says by now; a log that is not there is not made."""
        path = log_path(self._root, name)
        if not os.path.lexists(path):
            return Places()
        # Opening mends a last line that a crash has torn.
        with ExtractionLog(path):
            size = path.stat().st_size
        known = self._known.get(name)
        self._known[name] = read_places(path, known if known is not None and known.size <= size else None)
        return self._known[name]
