"""Stored extractions as an extractor: nothing is computed, every passage gets what a file says of it."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

from hippogpu.errors import ExtractionError
from hippogpu.openie.parse import parse_entities, parse_triples
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Record, Refusal

_NAME_DIGITS = 8


class _Stored(NamedTuple):
    """One row of a file: the keys it can be found by, and its record (whose passage id is the row's own)."""

    id: str | None
    identity_key: str | None
    record: Record


class ReplayExtractor:
    """An extractor that answers from a file of stored extractions, read whole when it is opened.

    The file holds either JSON lines {"_id", "entities", "triples"[, "texts"]}, or one object {"docs": [{"passage",
    "extracted_entities", "extracted_triples"}, …]} as HippoRAG writes it; .gz and .xz are unpacked. A row is found by
    its _id, or by its passage text (title, newline, text). A passage without one gives a Record with error set.
    ExtractionError when the file cannot be read or holds no extraction.

    refusals : the rows that were not taken, and why
    unused   : rows that no passage has asked for so far
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(path)
        self.refusals: list[Refusal] = []
        self._by_id: dict[str, Record] = {}
        self._by_identity: dict[str, Record] = {}
        self._used: set[int] = set()
        packed = _read(self._path)
        self._name = "replay-" + hashlib.sha256(packed).hexdigest()[:_NAME_DIGITS]
        for where, row in _rows(self._path, _unpacked(self._path, packed)):
            self._store(where, _stored(where, row))
        self._rows = len(self._by_id) + len(self._by_identity)
        if not self._rows:
            first = f" ({len(self.refusals)} rows refused, the first: {self.refusals[0]})" if self.refusals else ""
            raise ExtractionError(f"'{self._path}' holds no stored extraction{first}. See the forms in docs/corpus.md.")

    @property
    def name(self) -> str:
        return self._name

    @property
    def answers_by_id(self) -> bool:
        """Whether rows are found by id, so that one id of a text may have a row where another has none."""
        return bool(self._by_id)

    @property
    def unused(self) -> int:
        return self._rows - len(self._used)

    def __len__(self) -> int:
        return self._rows

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """The stored record of each passage in order, under the passage's id."""
        for passage in passages:
            found = self._find(passage)
            if found is None:
                error = f"no stored extraction for passage '{passage.id}' in '{self._path.name}'"
                yield Record(passage.id, (), error=error)
            else:
                self._used.add(id(found))
                yield Record(passage.id, found.triples, found.entities, found.drops)

    def _find(self, passage: Passage) -> Record | None:
        record = self._by_id.get(passage.id)
        if record is None and self._by_identity:
            record = self._by_identity.get(content_key(identity(passage.title, passage.text)))
        return record

    def _store(self, where: str, row: _Stored | Refusal) -> None:
        """Files a row under its keys; a key again with the same content is nothing new, with other content refused."""
        if isinstance(row, Refusal):
            self.refusals.append(row)
            return
        index, key = (self._by_identity, row.identity_key) if row.id is None else (self._by_id, row.id)
        known = index.setdefault(cast("str", key), row.record)
        if known != row.record:
            what = "this passage" if row.id is None else f"_id '{row.id}'"
            self.refusals.append(Refusal(where, f"{what} came before with other content; the first was kept"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExtractionError(f"'{path}' cannot be read ({error}). Pass a file of stored extractions.") from error


def _unpacked(path: Path, packed: bytes) -> bytes:
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix.lower())
    try:
        return unpack(packed) if unpack else packed
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ExtractionError(f"'{path}' is cut short or damaged ({error}). Fetch or compress it again.") from error


def _rows(path: Path, content: bytes) -> Iterator[tuple[str, object]]:
    """The rows of either form and where each stood; a line that is not JSON comes as a Refusal."""
    docs = None if ".jsonl" in path.suffixes else _docs(content)
    if docs is not None:
        yield from ((f"{path}: docs item {number}", row) for number, row in enumerate(docs, start=1))
        return
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield f"{path}:{number}", _decoded(f"{path}:{number}", line)


def _docs(content: bytes) -> list[object] | None:
    """The items under "docs" when the file is one JSON object that has them, or of one JSON array; else None."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return None
    docs = whole.get("docs") if isinstance(whole, dict) else whole
    return docs if isinstance(docs, list) else None


def _decoded(where: str, line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return Refusal(where, f"not JSON ({error})")


def _stored(where: str, row: object) -> _Stored | Refusal:
    """A row with its keys and record, or why it is none."""
    if isinstance(row, Refusal):
        return row
    if not isinstance(row, dict):
        return Refusal(where, "not an object")
    ours = "_id" in row
    triples, entities = ("triples", "entities") if ours else ("extracted_triples", "extracted_entities")
    if not isinstance(row.get(triples), list):
        return Refusal(where, f"no list '{triples}'")
    id_, key = (_id(row["_id"]), None) if ours else (None, _identity_key(row))
    if id_ is None and key is None:
        return Refusal(where, "'_id' is no text or number" if ours else "neither '_id' nor 'passage'")
    kept, drops = parse_triples(row[triples], texts=row.get("texts"))
    names, name_drops = parse_entities(row.get(entities, []))
    return _Stored(id_, key, Record(id_ or "", kept, names, drops + name_drops))


def _id(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value) or None


def _identity_key(row: dict[str, object]) -> str | None:
    """The key of the passage text: "passage" as it is (without the line break of an empty title), else title and text.

    HippoRAG's "idx" is a hash of that text, or a row number in its first form, so it adds nothing to find a row by.
    """
    passage, title, text = row.get("passage"), row.get("title"), row.get("text")
    if isinstance(passage, str):
        return content_key(passage.removeprefix("\n"))
    if isinstance(text, str):
        return content_key(identity(title if isinstance(title, str) else "", text))
    return None
