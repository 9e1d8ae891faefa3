"""What was extracted from passages of different lengths."""

from __future__ import annotations

import pytest

from hippogpu.openie.statistics import LENGTHS, by_length
from hippogpu.types import Drop, Record, Triple

TRIPLE = Triple("Ada", "wrote", "notes")
READ = Record("a", (TRIPLE, TRIPLE), ("Ada",), (Drop("2 fields, not 3", "[]"),))


def words(count: int) -> str:
    return " ".join(["word"] * count)


@pytest.mark.parametrize(("count", "row"), [(0, 0), (50, 0), (51, 1), (100, 1), (800, 4), (801, 5), (9_000, 5)])
def test_a_passage_counts_in_the_row_of_its_length(count: int, row: int) -> None:
    rows = by_length([words(count)], [READ])
    assert [r.passages for r in rows] == [int(number == row) for number in range(len(LENGTHS) + 1)]


def test_sums_and_rates_are_over_the_passages_that_were_read() -> None:
    row = by_length(
        [words(20), words(30), words(40), words(1)], [READ, Record("b", ()), Record("c", (), error="down"), None]
    )[0]
    assert row == (50, 4, 1, 2, 50, 2, 1, 1)
    assert (row.triples_a_passage, row.entities_a_passage, row.triples_a_100_words) == (1.0, 0.5, 4.0)


def test_ranges_without_passages_have_rates_of_zero() -> None:
    row = by_length([], [])[-1]
    assert (row.most_words, row.triples_a_passage, row.triples_a_100_words) == (None, 0.0, 0.0)


def test_texts_and_records_may_be_read_only_once() -> None:
    assert by_length(iter([words(60)]), iter([READ]))[1].triples == 2


def test_a_record_too_few_is_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        by_length([words(1), words(2)], [READ])
