"""Replies that were paid for once, in an SQLite file, so that the same request is not paid for again."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from hippogpu.errors import IndexFormatError, StoredIndexError, UsageError
from hippogpu.llm.values import Reply, Request
from hippogpu.types import Usage

T = TypeVar("T")
_FORMAT = 1
_BUSY_TIMEOUT_S = 30.0
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
    request BLOB PRIMARY KEY, text BLOB NOT NULL, finish TEXT NOT NULL,
    prompt INTEGER NOT NULL, cached INTEGER NOT NULL, completion INTEGER NOT NULL
) WITHOUT ROWID
"""


class ReplyCache:
    """Replies by all that was asked: endpoint, model, messages, schema, max_tokens, temperature and seed.

    Of the request only a digest of 32 bytes is kept: its text, mostly the passage and the same instructions over and
    over, would triple the file and lies in the index already. Failures are never kept.
    Each reply is committed when it is put: a killed process loses none, a power cut the last few (no fsync).
    Several processes may use one file. A damaged file is moved to "<name>.damaged" and a new one begun; notes says so.
    IndexFormatError when a newer hippogpu wrote it, StoredIndexError when it cannot be used (full disk, no right),
    UsageError once it is closed.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.notes: tuple[str, ...] = ()
        self._lock = Lock()
        self._closed = False
        self._database: sqlite3.Connection | None = None
        self._tried(lambda: None)

    def get(self, request: Request, *, model: str, endpoint: str) -> Reply | None:
        """The remembered reply, with the tokens that it once took; None when there is none."""
        key = request_key(request, model=model, endpoint=endpoint)
        find = "SELECT text, finish, prompt, cached, completion FROM replies WHERE request = ?"
        row = self._tried(lambda: self._open().execute(find, (key,)).fetchone())
        if row is None:
            return None
        text, finish, *tokens = row
        return Reply(request, text.decode("utf-8", "surrogatepass"), finish, Usage(*tokens), tries=0, remembered=True)

    def put(self, reply: Reply, *, model: str, endpoint: str) -> None:
        """Keeps a reply, in place of an earlier one; a failure is not kept."""
        if reply.finish == "failed":
            return
        key = request_key(reply.request, model=model, endpoint=endpoint)
        row = (key, reply.text.encode("utf-8", "surrogatepass"), reply.finish, *reply.usage)
        self._tried(lambda: self._open().execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", row))

    def forget(self, request: Request, *, model: str, endpoint: str) -> None:
        """Lets the reply to a request go, so that it is asked again."""
        key = request_key(request, model=model, endpoint=endpoint)
        self._tried(lambda: self._open().execute("DELETE FROM replies WHERE request = ?", (key,)))

    def clear(self) -> None:
        """Lets every reply go."""
        self._tried(lambda: self._open().execute("DELETE FROM replies"))

    def __len__(self) -> int:
        """How many replies there are."""
        return int(self._tried(lambda: self._open().execute("SELECT count(*) FROM replies").fetchone()[0]))

    def close(self) -> None:
        """Closes the file for good; a second close does nothing."""
        with self._lock:
            self._closed = True
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_symlink():
                raise OSError(errno.ELOOP, "a link, which is not followed", str(self.path))
            self._database = sqlite3.connect(
                self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self._prepare(self._database)
        return self._database

    def _prepare(self, database: sqlite3.Connection) -> None:
        # The file may come with an index from someone else.
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        found = database.execute("PRAGMA user_version").fetchone()[0]
        if found > _FORMAT:
            raise IndexFormatError(
                f"The reply cache '{self.path}' has format {found}; this hippogpu reads up to {_FORMAT}. Update "
                "hippogpu, or delete the file."
            )
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TABLE)
        database.execute(f"PRAGMA user_version = {_FORMAT}")

    def _tried(self, work: Callable[[], T]) -> T:
        """What the work gives; on a new file when the old one is damaged."""
        with self._lock:
            if self._closed:
                raise UsageError(f"The reply cache '{self.path}' is closed. Make a new one.")
            try:
                return self._mended(work)
            except (sqlite3.Error, OSError) as error:
                self._let_go()
                raise StoredIndexError(
                    f"The reply cache '{self.path}' cannot be used: {error}. Make room or give the right to write, or "
                    "set 'remember = false' under [llm]."
                ) from error

    def _mended(self, work: Callable[[], T]) -> T:
        for reopened in (False, True):
            try:
                self._open()
                return work()
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF not in _DAMAGED:
                    raise
                # Another process may have begun a new file meanwhile: what lies there now is tried first.
                self._let_go()
                if reopened:
                    self._set_aside(error)
        self._open()
        return work()

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        os.replace(self.path, aside)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        note = (
            f"The reply cache '{self.path}' was damaged ({error}): it lies at '{aside.name}' now, a new one was begun."
        )
        self.notes = (*self.notes, note)

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def request_key(request: Request, *, model: str, endpoint: str) -> bytes:
    """32 bytes that stand for all that is asked (BLAKE2b of its JSON with sorted keys); the tag is no part of it."""
    asked = [
        *(endpoint, model, request.messages, request.schema),
        *(request.max_tokens, float(request.temperature), request.seed),
    ]
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=32).digest()
