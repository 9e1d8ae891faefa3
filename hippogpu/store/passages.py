"""Passages as an index holds them: every id with what is its own, every distinct text once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.errors import IndexDamagedError
from hippogpu.store.columns import Columns
from hippogpu.store.files import Entry, write_table
from hippogpu.store.generations import files_folder
from hippogpu.text import identity
from hippogpu.types import Ints, Passage

_TEXT: pa.DataType = pa.large_string()
IDS = pa.schema([("id", _TEXT), ("title", _TEXT), ("meta", _TEXT), ("row", pa.int32())])
PASSAGES = pa.schema([("whole", _TEXT), ("extractor", _TEXT)])
IDS_1 = pa.schema([("id", _TEXT), ("meta", _TEXT), ("row", pa.int32())])
PASSAGES_1 = pa.schema([("title", _TEXT), ("text", _TEXT), ("extractor", _TEXT)])
"""Columns of format 1, where an id had the title of the first id of its text."""


@dataclass(frozen=True, slots=True)
class Passages:
    """P distinct passages, and every id that names one, in the order the ids came.

    ids, titles, metas, rows : one an id; the row is the passage it names, meta its JSON text. Ids of one passage may
                               split it into title and text in different places
    wholes                   : one a passage; its identity (title, line break, text), which is what is encoded
    extractors               : one a passage; whose log holds its record, "" when none does yet
    first                    : one a passage; the number of its first id
    """

    ids: Sequence[str]
    titles: Sequence[str]
    metas: Sequence[str]
    rows: Ints
    wholes: Sequence[str]
    extractors: Sequence[str]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.wholes)

    def first_titles(self) -> Iterator[str]:
        """The title of each passage, that of the first of its ids."""
        return (self.titles[number] for number in self.first.tolist())

    def passage(self, row: int) -> Passage:
        """A passage under the first of its ids."""
        return self.named(int(self.first[row]))

    def named(self, number: int) -> Passage:
        """The passage under the id of that number."""
        whole, title = self.wholes[int(self.rows[number])], self.titles[number]
        if title and not whole.startswith(f"{title}\n"):
            raise IndexDamagedError(
                f"The passage of the id '{self.ids[number]}' does not begin with its title: the index is damaged. "
                "Find the file: hippogpu verify DIR --full"
            )
        text = whole[len(title) + 1 :] if title else whole
        return Passage(self.ids[number], title, text, self._meta(number))

    def _meta(self, number: int) -> dict[str, Any]:
        try:
            meta: dict[str, Any] = json.loads(self.metas[number])
        except (ValueError, RecursionError) as error:
            raise IndexDamagedError(
                f"The meta of passage '{self.ids[number]}' is no JSON ({error}). Index the corpus again."
            ) from error
        if not isinstance(meta, dict):
            raise IndexDamagedError(f"The meta of passage '{self.ids[number]}' is no object. Index the corpus again.")
        return meta


def passages_of(
    ids: Sequence[str],
    titles: Sequence[str],
    metas: Sequence[str],
    rows: Ints,
    *,
    wholes: Sequence[str],
    extractors: Sequence[str],
) -> Passages:
    """Passages, with the number of the first id of each worked out."""
    if len(rows) and (rows.min() < 0 or rows.max() >= len(wholes)):
        raise IndexDamagedError(f"An id names a passage outside [0, {len(wholes)}). Index the corpus again.")
    first = np.full(len(wholes), -1, np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    if len(first) and first.min() < 0:
        raise IndexDamagedError(f"Passage {int(np.argmin(first))} has no id. Index the corpus again.")
    return Passages(ids, titles, metas, rows, wholes, extractors, first)


def write_passages(root: Path, passages: Passages) -> dict[str, Entry]:
    """The files of passages and ids."""
    columns = [pa.array(values, _TEXT) for values in (passages.ids, passages.titles, passages.metas)]
    ids = pa.table([*columns, pa.array(passages.rows)], schema=IDS)
    texts = pa.table([pa.array(values, _TEXT) for values in (passages.wholes, passages.extractors)], schema=PASSAGES)
    folder = files_folder(root)
    return {"ids": write_table(folder, "ids", ids), "passages": write_table(folder, "passages", texts)}


def passage_tables(format_: int) -> dict[str, pa.Schema]:
    """The columns of ids and passages in an index of the format."""
    return {"ids": IDS_1, "passages": PASSAGES_1} if format_ == 1 else {"ids": IDS, "passages": PASSAGES}


def read_passages(table: Callable[[str], Columns], *, format_: int) -> Passages:
    """Passages from the tables of an index of the format, by role."""
    ids, texts = table("ids"), table("passages")
    if format_ == 1:
        return _of_format_1(ids, texts)
    return passages_of(
        ids.texts["id"],
        ids.texts["title"],
        ids.texts["meta"],
        ids.numbers["row"],
        wholes=texts.texts["whole"],
        extractors=texts.texts["extractor"],
    )


def _of_format_1(ids: Columns, texts: Columns) -> Passages:
    titles, rows = list(texts.texts["title"]), ids.numbers["row"]
    passages = passages_of(
        ids.texts["id"],
        (),
        ids.texts["meta"],
        rows,
        wholes=[identity(*pair) for pair in zip(titles, texts.texts["text"], strict=True)],
        extractors=texts.texts["extractor"],
    )
    own = [titles[row] for row in rows]
    return Passages(passages.ids, own, passages.metas, rows, passages.wholes, passages.extractors, passages.first)
