"""The rows of a file of stored extractions as lines that can be read again, none of them held."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from hippogpu.errors import ExtractionError
from hippogpu.types import Refusal

_BOM = b"\xef\xbb\xbf"
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


class Place(NamedTuple):
    """The bytes of a row's line."""

    begin: int
    end: int


class StoredLines:
    """The rows of a file in either form, which ReplayExtractor describes. digest : SHA-256 of the file, in hex.

    A packed file, and one that is a single JSON object, is laid out as lines in a temporary file without a name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                self.digest = hashlib.file_digest(file, "sha256").hexdigest()
            lines = self._lines(path)
        except OSError as error:
            raise ExtractionError(f"'{path}' cannot be read ({error}). Pass a file of stored extractions.") from error
        self._handle = lines
        weakref.finalize(self, os.close, lines)

    def places(self) -> Iterator[tuple[int, Place]]:
        """The number of each row, from 1, and where it is, in order."""
        begin = 0
        with open(os.dup(self._handle), "rb") as file:
            file.seek(0)
            for number, line in enumerate(file, start=1):
                end, skipped = begin + len(line), len(_BOM) if not begin and line.startswith(_BOM) else 0
                if line[skipped:].strip():
                    yield number, Place(begin + skipped, end)
                begin = end

    def where(self, number: int) -> str:
        """What the row of a number, from 1, is called."""
        return f"{self._path}: docs item {number}" if self._docs else f"{self._path}:{number}"

    def row(self, place: Place) -> object:
        """The row there; a line that is no JSON comes as a Refusal that does not say where."""
        line = os.pread(self._handle, place.end - place.begin, place.begin)
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            return Refusal("", f"not JSON ({error})")

    def _lines(self, path: Path) -> int:
        """A handle of the file, or of the temporary one in its place."""
        with ExitStack() as opened:
            lines: IO[bytes] = opened.enter_context(path.open("rb"))
            opener = _OPENERS.get(path.suffix.lower())
            if opener is not None:
                lines = opened.enter_context(tempfile.TemporaryFile())
                _unpack(path, opener, lines)
            docs = None if ".jsonl" in path.suffixes else _docs(lines.read())
            self._docs = docs is not None
            if docs is not None:
                lines = opened.enter_context(tempfile.TemporaryFile())
                lines.writelines(json.dumps(item).encode("ascii") + b"\n" for item in docs)
                lines.flush()
            return os.dup(lines.fileno())


def _unpack(path: Path, opener: Any, into: IO[bytes]) -> None:
    try:
        with opener(path, "rb") as packed:
            shutil.copyfileobj(packed, into, 1 << 20)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ExtractionError(f"'{path}' is cut short or damaged ({error}). Fetch or compress it again.") from error
    into.flush()
    into.seek(0)


def _docs(content: bytes) -> list[object] | None:
    """The items under "docs" when the file is one JSON object that has them, or of one JSON array; else None."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return None
    docs = whole.get("docs") if isinstance(whole, dict) else whole
    return docs if isinstance(docs, list) else None
