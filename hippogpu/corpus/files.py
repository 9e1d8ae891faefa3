"""Bytes of an input file, whatever it was compressed with, and its rows of JSON."""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, NoReturn, cast

from hippogpu.errors import CorpusError
from hippogpu.types import Refusal

_BLOCK = 1 << 16
_BOM = codecs.BOM_UTF8
_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_AND_COMMA = re.compile(r"[ \t\r\n]*(,?)[ \t\r\n]*")


class Found(NamedTuple):
    """A decoded row and where it stood: file and line, item or row, all counted from 1."""

    where: str
    value: object


Rows = Iterator[Found | Refusal]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked when its name ends in .gz or .xz; CorpusError when it cannot be read or is damaged."""
    try:
        with _open(path) as handle:
            yield handle
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise CorpusError(f"'{path}' is cut short or damaged ({error}). Fetch or compress it again.") from error
    except OSError as error:
        raise CorpusError(f"'{path}' cannot be read ({error}). Check the path and its permissions.") from error


def _open(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return lzma.open(path, "rb") if suffix == ".xz" else path.open("rb")


def format_of(path: Path) -> str:
    """The suffix that says the format, lower-case, without .gz or .xz: ".jsonl" for "a.jsonl.gz"."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in (".gz", ".xz") else suffix


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1, as bytes without a byte-order mark."""
    with opened(path) as handle:
        for number, line in enumerate(handle, start=1):
            bare = (line.removeprefix(_BOM) if number == 1 else line).strip()
            if bare:
                yield number, bare


def json_line_rows(path: Path) -> Rows:
    """One row a line; a line that is not UTF-8 or not JSON is refused and the next one read."""
    for number, line in lines(path):
        where = f"{path}:{number}"
        try:
            yield Found(where, decode_json(line.decode("utf-8")))
        except UnicodeDecodeError as error:
            yield Refusal(where, f"not UTF-8 (byte {error.start + 1} of the line)")
        except (ValueError, RecursionError) as error:
            yield Refusal(where, f"not JSON ({error})")


def decode_json(text: str) -> object:
    """The decoded value; ValueError when it is not JSON (NaN and Infinity are not), RecursionError when too deep."""
    return _DECODER.decode(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def json_rows(path: Path) -> Rows:
    """The items of a JSON array, or JSON lines when the file does not begin with a bracket."""
    with opened(path) as handle:
        head = handle.read(_BLOCK).removeprefix(_BOM).lstrip()
    return _json_array_rows(path) if head.startswith(b"[") else json_line_rows(path)


def _json_array_rows(path: Path) -> Rows:
    """The items one by one, holding one at a time; where the array breaks, the rest of the file is refused."""
    number = 1
    try:
        with opened(path) as handle:
            for value in _array_items(handle):
                yield Found(f"{path}: item {number}", value)
                number += 1
    except (ValueError, RecursionError) as error:
        yield Refusal(f"{path}: item {number}", f"not JSON ({error}); the rest of the file was not read")


def _array_items(handle: IO[bytes]) -> Iterator[object]:
    """The decoded items of one array. Bytes that are not UTF-8 become lone surrogates, which no row may hold."""
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    text, ended = decode(handle.read(_BLOCK).removeprefix(_BOM)), False
    at = text.index("[") + 1
    while True:
        at = cast("re.Match[str]", _SPACE.match(text, at)).end()
        item = _item(text, at, ended=ended)
        if item is not None:
            value, at = item
            if value is _CLOSED:
                return
            yield value
            continue
        # Reading as much again as is held keeps the cost linear in an item's length.
        block = handle.read(max(_BLOCK, len(text) - at))
        ended = not block
        text, at = text[at:] + decode(block, ended), 0


_CLOSED = object()


def _item(text: str, at: int, *, ended: bool) -> tuple[object, int] | None:
    """The value at a position and where the next begins; None when more text is needed to tell."""
    if text.startswith("]", at):
        return _CLOSED, at + 1
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        if ended:
            raise
        return None
    separator = cast("re.Match[str]", _SPACE_AND_COMMA.match(text, end))
    if separator.group(1) or text.startswith("]", separator.end()):
        return value, separator.end()
    if ended or separator.end() < len(text):
        raise ValueError("expected a comma or a closing bracket after the item")
    return None
