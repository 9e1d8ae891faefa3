"""Chunks of long passages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippogpu.corpus import chunk, parent_id
from hippogpu.corpus.headings import Outline
from hippogpu.corpus.sentences import sentence_ends
from hippogpu.errors import CorpusError, UsageError
from hippogpu.text import identity
from hippogpu.types import Passage


def words(texts: Sequence[str]) -> list[int]:
    """One token a word, and two special ones."""
    return [len(text.split()) + 2 for text in texts]


def characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def quarters(texts: Sequence[str]) -> list[int]:
    """A tokenizer whose counts do not add up: four characters a token, rounded up."""
    return [1 + -(-len(text) // 4) for text in texts]


def texts_of(chunks: Sequence[Passage]) -> list[str]:
    return [part.text for part in chunks]


def test_a_passage_that_fits_is_returned_as_it_is() -> None:
    passage = Passage("p", "T", "Short.", {"k": 1})
    assert chunk(passage, window_tokens=4, overlap_tokens=0, token_counts=words) == [passage]


def test_chunks_end_behind_sentences_and_keep_title_and_origin() -> None:
    text = "One two three. Four five six. Seven eight."
    chunks = chunk(Passage("p", "T", text, {"k": 1}), window_tokens=9, overlap_tokens=0, token_counts=words)
    assert texts_of(chunks) == ["One two three. Four five six.", "Seven eight."]
    assert [part.id for part in chunks] == ["p#0", "p#1"]
    assert chunks[1] == Passage(
        "p#1", "T", "Seven eight.", {"k": 1, "chunk_of": "p", "chunk_start": 30, "chunk_end": 42}
    )


def test_overlap_repeats_the_last_whole_sentences_that_it_holds() -> None:
    text = "One two three. Four five. Six seven. Eight nine."
    chunks = chunk(Passage("p", "", text), window_tokens=9, overlap_tokens=4, token_counts=words)
    assert texts_of(chunks) == ["One two three. Four five. Six seven.", "Four five. Six seven. Eight nine."]


def test_overlap_repeats_words_when_no_sentence_is_short_enough() -> None:
    text = "One two three four. Five six seven eight."
    chunks = chunk(Passage("p", "", text), window_tokens=8, overlap_tokens=2, token_counts=words)
    assert texts_of(chunks) == ["One two three four.", "three four. Five six seven eight."]


def test_a_sentence_longer_than_the_window_is_cut_at_words() -> None:
    chunks = chunk(Passage("p", "", "a b c d e f g h"), window_tokens=5, overlap_tokens=0, token_counts=words)
    assert texts_of(chunks) == ["a b c", "d e f", "g h"]


def test_a_word_longer_than_the_window_is_cut_at_characters() -> None:
    chunks = chunk(Passage("p", "T", "x" * 100), window_tokens=12, overlap_tokens=0, token_counts=characters)
    assert "".join(texts_of(chunks)) == "x" * 100
    assert max(characters(texts_of(chunks))) <= 10


def test_a_cut_inside_a_word_never_comes_before_a_combining_mark() -> None:
    text = "e\u0301" * 40
    chunks = chunk(Passage("p", "", text), window_tokens=7, overlap_tokens=0, token_counts=characters)
    assert all(part.text[0] == "e" for part in chunks)


def test_ideographs_are_cut_without_spaces() -> None:
    chunks = chunk(
        Passage("p", "", "北京是首都。上海是城市。"), window_tokens=6, overlap_tokens=0, token_counts=characters
    )
    assert texts_of(chunks) == ["北京是首都。", "上海是城市。"]


MARKDOWN = "# Guide\n\nOne two three four.\n\n## Setup\n\nFive six seven.\n```\n# no heading\n```\n# Use\n\nEight nine."


def test_chunks_of_markdown_carry_the_headings_they_begin_under_in_their_title() -> None:
    parts = chunk(Passage("p", "Guide", MARKDOWN), window_tokens=11, overlap_tokens=0, token_counts=words)
    assert [(part.title, part.text.split()[-1]) for part in parts] == [
        ("Guide", "Setup"),
        ("Guide › Setup", "```"),
        ("Guide › Setup", "Use"),
        ("Guide › Use", "nine."),
    ]


def test_headings_that_take_half_the_window_are_left_out() -> None:
    text = "# " + "long " * 8 + "\n\n" + "One two three four. " * 6
    parts = chunk(Passage("p", "T", text), window_tokens=14, overlap_tokens=0, token_counts=words)
    assert {part.title for part in parts} == {"T"}


def test_outer_headings_give_way_when_the_path_is_long() -> None:
    outline = Outline("T", f"# {'a' * 100}\n## {'b' * 50}\nText.", lambda title: True)
    assert outline.title_at(999) == f"T › {'b' * 50}"


def test_a_title_that_fills_the_window_is_an_error_that_names_the_passage() -> None:
    with pytest.raises(CorpusError, match="title of passage 'p'"):
        chunk(Passage("p", "T" * 20, "text " * 9), window_tokens=20, overlap_tokens=0, token_counts=characters)


@pytest.mark.parametrize(("window", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_a_window_without_room_beside_the_overlap_is_a_usage_error(window: int, overlap: int) -> None:
    with pytest.raises(UsageError):
        chunk(Passage("p", "", "a"), window_tokens=window, overlap_tokens=overlap, token_counts=words)


@pytest.mark.parametrize(
    ("id_", "parent"), [("p#0", "p"), ("a#b#12", "a#b"), ("p", "p"), ("p#", "p#"), ("p#0\n", "p#0\n")]
)
def test_a_chunk_id_leads_back_to_its_parent(id_: str, parent: str) -> None:
    assert parent_id(id_) == parent


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("J. R. Smith met Dr. Who. He left.", ["J. R. Smith met Dr. ", "Who. ", "He left."]),
        ("It cost 3.14 dollars, i.e. little! Really?", ["It cost 3.14 dollars, i.e. little! ", "Really?"]),
        ('He said "no." She left.', ['He said "no." ', "She left."]),
        ("यह है। वह है॥ अंत", ["यह है। ", "वह है॥ ", "अंत"]),
        ("هل؟ نعم.", ["هل؟ ", "نعم."]),
        ("你好！再见？是", ["你好！", "再见？", "是"]),
        ("one\n\ntwo", ["one\n\n", "two"]),
        ("", []),
    ],
)
def test_sentences_end_where_their_script_ends_them(text: str, sentences: list[str]) -> None:
    ends = list(sentence_ends(text))
    assert [text[start:end] for start, end in zip([0, *ends], ends, strict=False)] == sentences


LONG = st.text(st.sampled_from("ab c.\n!。é\u0301北 "), max_size=300)


@given(text=LONG, title=st.text("ab ", max_size=4), window=st.integers(12, 40), overlap=st.integers(0, 11))
@pytest.mark.parametrize("counts", [words, characters, quarters])
def test_chunks_cover_the_text_in_order_within_the_window(
    counts, text: str, title: str, window: int, overlap: int
) -> None:
    chunks = chunk(Passage("p", title, text), window_tokens=window, overlap_tokens=overlap, token_counts=counts)
    assert max(counts([identity(part.title, part.text) for part in chunks])) <= window
    if len(chunks) == 1 and chunks[0].id == "p":
        return
    covered, last = 0, -1
    for part in chunks:
        start, end = part.meta["chunk_start"], part.meta["chunk_end"]
        assert (text[start:end], start > last, end > covered) == (part.text, True, True)
        assert not text[covered:start].strip()
        covered, last = end, start
    assert not text[covered:].strip()


@given(text=LONG, window=st.integers(12, 40), overlap=st.integers(0, 11))
@pytest.mark.parametrize("counts", [words, characters])
def test_neighbours_share_at_most_the_overlap(counts, text: str, window: int, overlap: int) -> None:
    chunks = chunk(Passage("p", "", text), window_tokens=window, overlap_tokens=overlap, token_counts=counts)
    special = counts([""])[0]
    for before, after in pairwise(chunks):
        shared = text[after.meta["chunk_start"] : before.meta["chunk_end"]]
        assert counts([shared])[0] - special <= overlap


def test_a_document_of_two_megabytes_is_cut_in_seconds() -> None:
    text = "Some words make a sentence here. " * 70_000
    chunks = chunk(Passage("p", "T", text), window_tokens=256, overlap_tokens=32, token_counts=words)
    assert all(part.text.endswith(".") for part in chunks)
