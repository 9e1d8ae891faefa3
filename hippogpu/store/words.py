"""Words on disk: all arrays are there, or, in an index that was written before there were any, none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hippogpu.store.columns import Columns
from hippogpu.store.files import Entry, write_array, write_table
from hippogpu.store.generations import files_folder
from hippogpu.text_columns import texts_array
from hippogpu.types import COUNT_TYPES, Ragged, WordCounts

WORDS = pa.schema([("text", pa.large_string())])
COUNTS = "word_counts"
WORD_ARRAYS: Mapping[str, tuple[str, int]] = {
    "word_indptr": ("<i8", 1),
    "word_passages": ("<i4", 1),
    COUNTS: ("|u1", 1),
    "word_lengths": ("<i4", 1),
    "title_words_indptr": ("<i8", 1),
    "title_words": ("<i4", 1),
}
"""Type and number of axes of each; counts may be of any of COUNT_DTYPES."""

COUNT_DTYPES = tuple(np.dtype(kind).str for kind in COUNT_TYPES)
WORD_ROLES = ("words", *WORD_ARRAYS)


def write_words(root: Path, words: WordCounts) -> dict[str, Entry]:
    folder = files_folder(root)
    arrays: tuple[NDArray[Any], ...] = (
        words.passages.indptr,
        words.passages.values,
        words.counts,
        words.lengths,
        words.titles.indptr,
        words.titles.values,
    )
    texts = pa.table([texts_array(words.words)], schema=WORDS)
    return {
        "words": write_table(folder, "words", texts),
        **{role: write_array(folder, role, array) for role, array in zip(WORD_ARRAYS, arrays, strict=True)},
    }


def read_words(table: Callable[[str], Columns], array: Callable[[str], NDArray[Any]]) -> WordCounts:
    """The words from the files of an index, by role."""
    indptr, passages, counts, lengths, title_indptr, titles = map(array, WORD_ARRAYS)
    return WordCounts(
        table("words").texts["text"], Ragged(indptr, passages), counts, lengths, Ragged(title_indptr, titles)
    )


def word_agreements(words: WordCounts, passages: int) -> dict[str, tuple[int, int]]:
    """Counts that must be equal."""
    return {
        "rows of passages of words": (len(words.passages), len(words.words)),
        "counts of words": (len(words.counts), len(words.passages.values)),
        "lengths in words": (len(words.lengths), passages),
        "rows of words of titles": (len(words.titles), passages),
    }
