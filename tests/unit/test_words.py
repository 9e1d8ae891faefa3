"""Words: which a text has, and their counts, however they are blocked, against counting in plain words."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hippogpu.errors import IndexDamagedError, StoredIndexError
from hippogpu.types import Ragged, WordCounts
from hippogpu.words import count_words, words_of
from hippogpu.words.spool import Spool

TITLES = ["", "Ada Lovelace", "東京tower", "", "Ada", "…"]
TEXTS = [
    "the cat, the CAT",
    "Ada Lovelace\nwrote notes on ada",
    "東京tower\n東京大学",
    "!!!",
    "Ada\nÉcole and e\u0301cole",
    "…\nnothing",
]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("O'Neil's U.S. café", ["o", "neil", "s", "u", "s", "café"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("北京大学", ["北京", "京大", "大学"]),
        ("東", ["東"]),
        ("the 東京tower 2", ["the", "東京", "tower", "2"]),
        ("…", []),
    ],
)
def test_words_are_those_of_normalised_text(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def told(counts: WordCounts) -> dict[str, dict[int, int]]:
    """How often each passage has each word."""
    rows, indptr = counts.passages, counts.passages.indptr
    return {
        word: dict(zip(rows.row(i).tolist(), counts.counts[indptr[i] : indptr[i + 1]].tolist(), strict=True))
        for i, word in enumerate(counts.words)
    }


def counted(texts: Sequence[str]) -> dict[str, dict[int, int]]:
    """The same in plain words."""
    found: dict[str, dict[int, int]] = {}
    for row, text in enumerate(texts):
        for word, count in Counter(words_of(text)).items():
            found.setdefault(word, {})[row] = count
    return dict(sorted(found.items()))


def test_every_passage_of_a_word_is_there_with_how_often_it_has_it() -> None:
    made = count_words(TEXTS, TITLES).check()
    assert told(made) == counted(TEXTS)
    assert list(made.words) == sorted(made.words)
    assert made.lengths.tolist() == [len(words_of(text)) for text in TEXTS]
    assert (made.counts.dtype, made.passages.values.dtype, made.lengths.dtype) == (np.uint8, np.int32, np.int32)


def test_the_words_of_titles_are_each_there_once_and_ascend() -> None:
    made = count_words(TEXTS, TITLES)
    assert [[made.words[i] for i in made.titles.row(row).tolist()] for row in range(len(TEXTS))] == [
        sorted(set(words_of(title))) for title in TITLES
    ]


def arrays(counts: WordCounts) -> list[object]:
    held = (counts.passages.indptr, counts.passages.values, counts.counts, counts.lengths)
    return [list(counts.words), *(array.tolist() for array in (*held, counts.titles.indptr, counts.titles.values))]


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("budget", [1, 20_000, 2**30])
def test_the_budget_and_where_blocks_wait_make_no_difference(tmp_path: Path, budget: int, on_disk: bool) -> None:
    drawn = random.Random(3)
    texts = [" ".join(f"w{drawn.randrange(90)}" for _ in range(drawn.randrange(33))) for _ in range(333)]
    titles = [text.split(" ")[0] for text in texts]
    scratch = tmp_path if on_disk else None
    made = count_words(texts, titles, budget_bytes=budget, scratch=scratch)
    assert arrays(made) == arrays(count_words(texts, titles))
    assert told(made) == counted(texts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("times", "dtype"), [(255, "uint8"), (256, "uint16"), (65536, "int32")])
def test_counts_are_exact_however_often_a_passage_has_a_word(times: int, dtype: str) -> None:
    made = count_words(["a b", "a " * times], ["", ""])
    assert (told(made)["a"], made.counts.dtype.name) == ({0: 1, 1: times}, dtype)


@pytest.mark.parametrize("texts", [[], [""], ["!!!", "?"]])
def test_passages_without_words_have_none(texts: list[str]) -> None:
    made = count_words(texts, [""] * len(texts)).check()
    assert (len(made.words), len(made.passages), len(made.titles)) == (0, 0, len(texts))
    assert made.lengths.tolist() == [0] * len(texts)


def test_progress_ends_at_all_passages() -> None:
    seen: list[tuple[int, int]] = []
    count_words(["a"] * 2500, [""] * 2500, on_progress=lambda done, whole: seen.append((done, whole)))
    assert seen == [(1024, 2500), (2048, 2500), (2500, 2500)]


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoredIndexError, match="nowhere"):
        count_words(["some words"] * 9, [""] * 9, budget_bytes=1, scratch=tmp_path / "nowhere")


def test_a_spool_gives_back_what_it_was_given_in_any_order(tmp_path: Path) -> None:
    given = [np.arange(n, dtype=kind) for n, kind in ((0, np.int64), (33, np.int32), (1000, np.uint8))]
    with Spool(tmp_path, most_bytes=64) as spool:
        places = [spool.put(array) for array in given]
        for array, place in reversed([*zip(given, places, strict=True)]):
            assert spool.get(place).tolist() == array.tolist()


def damaged(counts: WordCounts, what: str) -> WordCounts:
    passages, titles, lengths = counts.passages, counts.titles, counts.lengths
    if what == "indptr":
        passages = Ragged(passages.indptr[::-1].copy(), passages.values)
    elif what == "passages":
        passages = Ragged(passages.indptr, passages.values - 1)
    elif what == "titles":
        titles = Ragged(titles.indptr, titles.values + len(counts.words))
    else:
        lengths = lengths - 100
    return WordCounts(counts.words, passages, counts.counts, lengths, titles)


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("indptr", "word_passages"),
        ("passages", "word_passages"),
        ("titles", "title_words"),
        ("lengths", "word_lengths"),
    ],
)
def test_counts_that_point_outside_are_refused(what: str, named: str) -> None:
    with pytest.raises(IndexDamagedError, match=named):
        damaged(count_words(TEXTS, TITLES), what).check()
