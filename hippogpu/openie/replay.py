"""Stored extractions as an extractor: nothing is computed, every passage gets what a file says of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from hippogpu.errors import ExtractionError
from hippogpu.openie.parse import parse_entities, parse_triples
from hippogpu.openie.replay_lines import Place, StoredLines
from hippogpu.text import content_key, identity
from hippogpu.types import Passage, Record, Refusal

_NAME_DIGITS = 8


class _Stored(NamedTuple):
    """One row of a file: the keys it can be found by, and the row itself."""

    id: str | None
    identity_key: str | None
    row: dict[str, object]


class ReplayExtractor:
    """An extractor that answers from a file of stored extractions, looked through when it is opened.

    The file holds either JSON lines {"_id", "entities", "triples"[, "texts"]}, or one object {"docs": [{"passage",
    "extracted_entities", "extracted_triples"}, …]} as HippoRAG writes it; .gz and .xz are unpacked. A row is found by
    its _id, or by its passage text (title, newline, text). A passage without one gives a Record with error set.
    Of a row its key and place are held, some 200 bytes; what it says is read again when it is asked for.
    ExtractionError when the file cannot be read or holds no extraction.

    refusals : the rows that were not taken, and why
    unused   : rows that no passage has asked for so far
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(path)
        self.refusals: list[Refusal] = []
        self._lines = StoredLines(self._path)
        self._by_id: dict[str, int] = {}
        self._by_identity: dict[str, int] = {}
        self._begins, self._ends, self._numbers = array("q"), array("q"), array("q")
        self._name = "replay-" + self._lines.digest[:_NAME_DIGITS]
        for number, place in self._lines.places():
            self._store(number, place)
        self._used = bytearray(len(self._begins))
        if not self._begins:
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
        return len(self._used) - sum(self._used)

    def __len__(self) -> int:
        return len(self._begins)

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        """The stored record of each passage in order, under the passage's id."""
        for passage in passages:
            row = self._find(passage)
            if row is None:
                error = f"no stored extraction for passage '{passage.id}' in '{self._path.name}'"
                yield Record(passage.id, (), error=error)
            else:
                self._used[row] = True
                yield replace(self._record(row), passage_id=passage.id)

    def _find(self, passage: Passage) -> int | None:
        row = self._by_id.get(passage.id)
        if row is None and self._by_identity:
            row = self._by_identity.get(content_key(identity(passage.title, passage.text)))
        return row

    def _record(self, row: int) -> Record:
        place = Place(self._begins[row], self._ends[row])
        found = _stored("", self._lines.row(place))
        if isinstance(found, Refusal):
            where = self._lines.where(self._numbers[row])
            raise ExtractionError(f"{where} was altered while it was read ({found.reason}). Run again.")
        return _recorded(found.row)

    def _store(self, number: int, place: Place) -> None:
        """Files a row under its keys; a key again with the same content is nothing new, with other content refused."""
        where = self._lines.where(number)
        row = _stored(where, self._lines.row(place))
        if isinstance(row, Refusal):
            self.refusals.append(row)
            return
        index, key = (self._by_identity, row.identity_key) if row.id is None else (self._by_id, row.id)
        known = index.setdefault(cast("str", key), len(self._begins))
        if known == len(self._begins):
            self._begins.append(place.begin)
            self._ends.append(place.end)
            self._numbers.append(number)
        elif self._record(known) != _recorded(row.row):
            what = "this passage" if row.id is None else f"_id '{row.id}'"
            self.refusals.append(Refusal(where, f"{what} came before with other content; the first was kept"))


def _stored(where: str, row: object) -> _Stored | Refusal:
    """A row with its keys, or why it is none."""
    if isinstance(row, Refusal):
        return Refusal(where, row.reason)
    if not isinstance(row, dict):
        return Refusal(where, "not an object")
    ours = "_id" in row
    triples = "triples" if ours else "extracted_triples"
    if not isinstance(row.get(triples), list):
        return Refusal(where, f"no list '{triples}'")
    id_, key = (_id(row["_id"]), None) if ours else (None, _identity_key(row))
    if id_ is None and key is None:
        return Refusal(where, "'_id' is no text or number" if ours else "neither '_id' nor 'passage'")
    return _Stored(id_, key, row)


def _recorded(row: dict[str, object]) -> Record:
    """What a row says, under no passage's id."""
    ours = "_id" in row
    triples, entities = ("triples", "entities") if ours else ("extracted_triples", "extracted_entities")
    kept, drops = parse_triples(cast("list[object]", row[triples]), texts=row.get("texts"))
    names, name_drops = parse_entities(row.get(entities, []))
    return Record("", kept, names, drops + name_drops)


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
