"""Text files that are written in a stream, packed when their name ends in .gz."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast


@contextmanager
def text_file(path: Path) -> Iterator[TextIO]:
    """The file open for UTF-8 text with line breaks as they are written."""
    with path.open("wb") as raw:
        if path.suffix.lower() != ".gz":
            with io.TextIOWrapper(raw, "utf-8", newline="") as text:
                yield text
            return
        # No name and no time inside: the same graph packs to the same bytes.
        with (
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
            io.TextIOWrapper(cast("io.BufferedWriter", packed), "utf-8", newline="") as text,
        ):
            yield text


def begins_with(path: Path, heads: Sequence[str]) -> bool:
    """Whether a file, packed or plain, begins with one of these texts."""
    if not path.is_file():
        return False
    wanted = [head.encode() for head in heads]
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            start = file.read(max(map(len, wanted)))
    except (OSError, EOFError, zlib.error):
        return False
    return start.startswith(tuple(wanted))
