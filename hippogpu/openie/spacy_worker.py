"""The process that reads passages with spaCy: a line of JSON in, a line of JSON out, until its input ends.

Its one argument is the model: ["source", "name", "version", "language"].
It says null when the model is loaded, then answers [[id, title, text], …] with [[id, triples, entities, error], …].
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hippogpu.openie.spacy_model import Model
from hippogpu.openie.spacy_reader import SpacyReader
from hippogpu.types import Passage, Record, Triple


def encode_passages(passages: Iterable[Passage]) -> bytes:
    """The line that asks for these passages."""
    return _line([[passage.id, passage.title, passage.text] for passage in passages])


def decode_passages(line: bytes) -> list[Passage]:
    return [Passage(*fields) for fields in json.loads(line)]


def encode_records(records: Iterable[Record]) -> bytes:
    """The line that answers with these records (which spaCy's reader gives no drops)."""
    return _line([[record.passage_id, record.triples, record.entities, record.error] for record in records])


def decode_records(line: bytes) -> list[Record]:
    return [
        Record(passage_id, tuple(Triple(*triple) for triple in triples), tuple(entities), error=error)
        for passage_id, triples, entities, error in json.loads(line)
    ]


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def main() -> None:
    """Reads with the model of the command line."""
    serve(lambda: SpacyReader(Model(*json.loads(sys.argv[1]))).read)


def serve(load: Callable[[], Callable[[Sequence[Passage]], list[Record]]]) -> None:
    """Serves standard input until it ends. What libraries print goes to standard error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0) as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        read = load()
        answers.write(_line(None))
        for line in sys.stdin.buffer:
            _write_all(answers.fileno(), encode_records(read(decode_passages(line))))


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
