"""The lines of an extraction log: one checked JSON line a record, keyed by the passage's text.

    {"crc":"1c2d3e4f","key":"<content key of title, newline, text>","record":{…}}

A record holds passage_id, error, entities, triples and drops; a failure also its attempt, and outage when the extractor
could not be reached; a model's reply its tokens [prompt, cached, completion].

crc is the CRC-32 of the line's bytes behind the crc field (from "key" on, without the line break). Lines are ASCII:
lone surrogates survive as escapes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.errors import ExtractionError
from hippogpu.types import NO_TOKENS, Drop, Record, Triple, Usage

_HEAD = b'{"crc":"'
_BODY_AT = len(_HEAD) + 8 + 2  # eight hex digits, a quote, a comma


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
    """The lines of a log in order; a damaged one as text that says where and why."""
    for number, line in enumerate(_raw_lines(path), start=1):
        found = fault(line)
        if found is not None:
            yield f"{path}:{number}: {found}"
            continue
        value = json.loads(b"{" + line[_BODY_AT:])
        yield Line(value["key"], value["record"])


def _raw_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
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
