"""A file of answers that grows a batch at a time and is gone on with after a kill."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.disk import open_plain, read_plain, sync_folder, write_all, write_atomically
from hippogpu.errors import UsageError
from hippogpu.runs.identity import Identity, differences

_MOST_IDENTITY_BYTES = 2**20


class Line(NamedTuple):
    """What of an answer's line is held: the question's id, its exact match and F1, None where no answer is known."""

    query_id: str
    em: float | None
    f1: float | None


class AnswerFile:
    """Answers of one run, a line each. done holds what the file had when it was opened."""

    def __init__(self, path: Path, handle: int, done: Mapping[str, Line]) -> None:
        self.path, self.done, self._handle = path, done, handle

    def add(self, values: Sequence[Mapping[str, Any]]) -> None:
        """Adds the lines of a batch; they are on disk when this returns."""
        lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
        write_all(self._handle, lines.encode("utf-8", "backslashreplace"))
        os.fsync(self._handle)


@contextmanager
def opened_answers(path: Path, identity: Identity, *, force: bool) -> Iterator[AnswerFile]:
    """The file of answers of the run with that identity: a new one, or one that is gone on with.

    Beside it lies '<name>.identity', by which a later call knows its own. A last line that a kill has cut is removed.
    UsageError when the file is of another run, unless force empties it; or while another process writes it.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"'{path}' cannot be a file of answers. Name a file in a folder that is there for --output.")
    handle = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        _lock(handle, path)
        if force or not os.fstat(handle).st_size:
            os.ftruncate(handle, 0)
            write_atomically(identity_path(path), (json.dumps(dict(identity), indent=1) + "\n").encode())
            sync_folder(path.parent)
        _check_identity(path, identity)
        yield AnswerFile(path, handle, _whole_lines(path, handle))
    finally:
        os.close(handle)


def identity_path(path: Path) -> Path:
    """Where what the answers are answers of is told."""
    return path.with_name(f"{path.name}.identity")


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Another process writes '{path}'. Wait for it, or name another --output.") from error


def _check_identity(path: Path, identity: Identity) -> None:
    try:
        then = dict(json.loads(read_plain(identity_path(path), most_bytes=_MOST_IDENTITY_BYTES)))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"'{path}' exists, and '{identity_path(path).name}' beside it cannot be read ({error}). Name another "
            "--output, or replace it with --force."
        ) from error
    changed = differences(then, identity)
    if changed:
        raise UsageError(
            f"'{path}' holds answers of another run ({'; '.join(changed)}). Use the settings of then to go on, name "
            "another --output, or replace it with --force."
        )


def _whole_lines(path: Path, handle: int) -> dict[str, Line]:
    """The lines of the file by question; what stands behind the last line break is cut off."""
    done: dict[str, Line] = {}
    end = 0
    with open(handle, "rb", closefd=False) as file:
        file.seek(0)
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                break
            line = _line(path, number, raw)
            done[line.query_id] = line
            end += len(raw)
    os.ftruncate(handle, end)
    return done


def _line(path: Path, number: int, raw: bytes) -> Line:
    try:
        value = json.loads(raw)
        return Line(str(value["query_id"]), value.get("em"), value.get("f1"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"'{path}' line {number} is no answer ({error}). Name another --output, or replace it with --force."
        ) from error
