"""Texts are found among sorted ones, as they lie on disk and as Python holds them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hippogpu.store.columns import read_table
from hippogpu.store.files import write_table
from hippogpu.store.finding import places_of

TEXTS = sorted(["", "a", "ab", "abc", "b", "café", "cafe", "\ue000", "\U00010000", "東京", "東", "z z", "a\0b"])
ASKED = [*TEXTS, "aa", "abcd", "A", "zz", "\uffff", "\U0010ffff", "東京都", "\ud800"]


@pytest.mark.parametrize("rows", [0, 1, 2, len(TEXTS)])
def test_each_text_is_found_where_it_stands_and_no_other(tmp_path: Path, rows: int) -> None:
    column = pa.table({"text": pa.array(TEXTS[:rows], pa.large_string())})
    stored = read_table(tmp_path, write_table(tmp_path, "texts", column), column.schema).texts["text"]
    expected = [TEXTS[:rows].index(text) if text in TEXTS[:rows] else -1 for text in ASKED]
    assert places_of(stored, ASKED).tolist() == expected
    assert places_of(TEXTS[:rows], ASKED).tolist() == expected


def test_of_no_text_there_is_no_place() -> None:
    assert places_of(TEXTS, []).tolist() == []
