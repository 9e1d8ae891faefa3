"""Normalisation of phrases, and the identity of passages."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hippogpu.text import alphanumerics, content_key, identity, normalise, readable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Oliver  Badman!", "oliver badman"),
        ("  a-b_c\t d\n", "a b c d"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("İstanbul", "i\u0307stanbul"),
        ("\uab70\uab71", "\u13a0\u13a1"),
        ("हिन्दी", "हिन्दी"),
        ("北京", "北京"),
        ("Москва", "москва"),
        ("Győr, 1999", "győr 1999"),
        ("x² ½ Ⅷ", "x² ½ ⅷ"),
        ("!!!", ""),
        ("—", ""),
        ("🙂", ""),
        ("", ""),
        ("a\ud800b", "a b"),
    ],
)
def test_the_unicode_rule_keeps_letters_marks_and_numbers_case_folded(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_composed_and_decomposed_spellings_are_one_phrase() -> None:
    composed, decomposed = unicodedata.normalize("NFC", "CAFÉ"), unicodedata.normalize("NFD", "café")
    assert normalise(composed) == normalise(decomposed) == "café"


def test_capital_and_small_cherokee_are_one_phrase() -> None:
    assert normalise("\uab70\uab7b") == normalise("\u13a0\u13ab")


def test_names_in_other_scripts_stay_distinct() -> None:
    names = ["北京", "上海", "Москва", "Киев", "Győr", "Gyór", "हिन्दी", "हन्द"]
    assert len({normalise(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Oliver-Badman (1999)", "oliver badman  1999"),
        ("a  b", "a  b"),
        ("café", "caf"),
        ("北京", ""),
        ("\u212aelvin", "kelvin"),
        ("İx", "i x"),
        ("a\tb", "a b"),
    ],
)
def test_the_ascii_rule_blanks_all_else_and_keeps_runs(text: str, expected: str) -> None:
    assert normalise(text, "ascii") == expected


@given(st.text(st.characters()))
@example("\u1fbc\u0345\u0301")
@example("ŉ\u0323")
def test_normalising_twice_changes_nothing(text: str) -> None:
    for rule in ("unicode", "ascii"):
        once = normalise(text, rule)
        assert normalise(once, rule) == once


@given(st.text(st.characters()))
@example("\u0345\u0301")
def test_a_normalised_text_has_nothing_but_words_and_single_spaces(text: str) -> None:
    words = normalise(text).split(" ")
    assert words == [""] or all(words)
    assert all(unicodedata.category(c)[0] in "LMN" for word in words for c in word)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_canonically_equal_texts_are_one_phrase(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(("text", "count"), [("AB", 2), ("X1", 2), ("北京", 2), ("北京市", 3), ("a b c", 3), ("", 0)])
def test_letters_marks_and_numbers_are_counted_without_spaces(text: str, count: int) -> None:
    assert alphanumerics(text) == count


def test_the_ascii_rule_counts_ascii_letters_and_digits_only() -> None:
    assert alphanumerics("abé北1", "ascii") == 3


def test_a_passage_without_a_title_is_its_text() -> None:
    assert (identity("", "text"), identity("Title", "text")) == ("text", "Title\ntext")


def test_content_keys_tell_lone_surrogates_apart() -> None:
    assert len({content_key("\ud800"), content_key("\ud801"), content_key("\ufffd"), content_key("")}) == 4


def test_half_characters_become_replacement_characters() -> None:
    assert readable("a\ud800b🙂") == "a\ufffdb🙂"
