"""The lines of an extraction log: one checked JSON line a record, keyed by the passage's text.

    {"crc":"1c2d3e4f","key":"<content key of title, newline, text>","record":{…}}

A record holds passage_id, error, entities, triples and drops; a failure also its attempt, and outage when the extractor
could not be reached; a model's reply its tokens [prompt, cached, completion].

crc is the CRC-32 of the line's bytes behind the crc field (from "key" on, without the line break). Lines are ASCII:
lone surrogates survive as escapes.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from hippogpu.disk import open_plain
from hippogpu.errors import ExtractionError
from hippogpu.types import NO_TOKENS, Drop, Record, Triple, Usage

_HEAD = b'{"crc":"'
_BODY_AT = len(_HEAD) + 8 + 2  # eight hex digits, a quote, a comma
_MOST_LINE_BYTES = 64 << 20
_MOST_COUNT = 1 << 53


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


class Line(NamedTuple):
    key: str
    record: dict[str, Any]


def attempt_of(line: Line, before: int) -> int:
    """Which try a failure was, as it says itself; else one more than those before."""
    return int(line.record.get("attempt", before + 1))


def read_lines(path: Path) -> Iterator[Line | str]:
    """The lines of a log in order; one that is damaged, or no record of ours, as text that says where and why."""
    for number, line in enumerate(raw_lines(path), start=1):
        found = read_line(line)
        yield found if isinstance(found, Line) else f"{path}:{number}: {found}"


def read_line(line: bytes) -> Line | str:
    """What a line says, or why it is damaged or no record of ours."""
    return fault(line) or _read(line[_BODY_AT:])


def checksum_of(line: bytes) -> int:
    """The checksum that a line without fault bears."""
    return int(line[len(_HEAD) : _BODY_AT - 2], 16)


def _read(body: bytes) -> Line | str:
    """The line of a body whose checksum is right, or why it is no record: anyone can reckon a checksum."""
    try:
        value = json.loads(b"{" + body)
    except (ValueError, RecursionError) as error:
        return f"no JSON, under a right checksum ({error})"
    key, record = value.get("key"), value.get("record")
    if not isinstance(key, str) or not isinstance(record, dict):
        return "no key and record, under a right checksum"
    wrong = next((name for name, fits in _fits(record).items() if not fits), None)
    return Line(key, record) if wrong is None else f"no '{wrong}' as a record has it, under a right checksum"


def _fits(record: dict[str, Any]) -> dict[str, bool]:
    """By field of a record, whether it is there as encode_line writes it."""
    tokens = record.get("tokens", [])
    return {
        "passage_id": isinstance(record.get("passage_id"), str),
        "error": "error" in record and isinstance(record["error"], str | None),
        "entities": _are_texts(record.get("entities")),
        "triples": isinstance(record.get("triples"), list) and all(map(_is_triple, record["triples"])),
        "drops": isinstance(record.get("drops"), list) and all(map(_is_drop, record["drops"])),
        "attempt": _is_count(record.get("attempt", 0)),
        "outage": isinstance(record.get("outage", False), bool),
        "tokens": isinstance(tokens, list) and len(tokens) <= len(Usage._fields) and all(map(_is_count, tokens)),
    }


def _are_texts(value: object) -> TypeGuard[list[str]]:
    # What JSON gives is of the type itself, and a set of types is told in a third of the time of a loop.
    return type(value) is list and {str}.issuperset(map(type, value))


def _is_triple(value: object) -> bool:
    return type(value) is list and len(value) in (3, 4) and {str}.issuperset(map(type, value))


def _is_drop(value: object) -> bool:
    return _are_texts(value) and len(value) == len(Drop._fields)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST_COUNT


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a plain file; of one that is longer than any record, its beginning."""
    return (line for _, _, line in placed_lines(path))


def placed_lines(path: Path, *, begin: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """As raw_lines, from a line's first byte on, with the bytes of the file where each line begins and ends."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            file.seek(begin)
            while line := file.readline(_MOST_LINE_BYTES):
                end, rest = begin + len(line), line
                while len(rest) == _MOST_LINE_BYTES and not rest.endswith(b"\n"):
                    rest = file.readline(_MOST_LINE_BYTES)
                    end += len(rest)
                yield begin, end, line
                begin = end
    except OSError as error:
        raise ExtractionError(
            f"The extraction log '{path}' cannot be read ({error}). Set its permissions or mend the disk."
        ) from error


def fault(line: bytes) -> str | None:
    """Why a line cannot be trusted, None when its bytes are those that were written."""
    if not line.endswith(b"\n"):
        return "cut short (no line break)"
    if not line.startswith(_HEAD) or line[_BODY_AT - 2 : _BODY_AT] != b'",':
        return "no checksum at its start"
    written = line[len(_HEAD) : _BODY_AT - 2]
    real = b"%08x" % zlib.crc32(line[_BODY_AT:-1])
    return None if written == real else f"altered (checksum {real.decode()}, written as {written!r})"
