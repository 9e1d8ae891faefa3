"""The phrases that a question names: longest first, no word twice, words that tell, scripts without spaces."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from method_cases import loaded
from small_index import index_of, stating

from hippogpu.methods import Loaded
from hippogpu.methods.derived import Derived
from hippogpu.methods.hippo.names import named_phrases
from hippogpu.text import TextRule, normalise


def holding(phrases: Mapping[str, int], *, passages: int = 100, rule: TextRule = "unicode") -> Loaded:
    """As much of an index as names are read from: phrases with the number of passages that mention them."""
    manifest = SimpleNamespace(config=SimpleNamespace(text_rule=rule))
    tables = SimpleNamespace(phrases=sorted(phrases))
    snapshot = SimpleNamespace(manifest=manifest, tables=tables, passages=range(passages))
    counts = np.array([phrases[phrase] for phrase in sorted(phrases)], np.int32)
    return cast(Loaded, SimpleNamespace(snapshot=snapshot, mention_counts=counts, derived=Derived()))


def named(here: Loaded, question: str) -> list[str]:
    (found,) = named_phrases(here, [question])
    return [here.snapshot.tables.phrases[number] for number in found]


def test_the_longest_names_come_first_and_use_up_their_words() -> None:
    here = holding({"new york": 3, "york": 2, "new york city": 1, "city": 1, "ada": 1})
    assert named(here, "Is Ada in New York City?") == ["new york city", "ada"]


def test_of_two_names_that_share_a_word_the_left_one_is_taken() -> None:
    assert named(holding({"ada king": 1, "king of spain": 1, "of": 1}), "Ada King of") == ["ada king"]
    assert named(holding({"ada king": 1, "king lear": 1}), "Ada King Lear") == ["ada king"]


def test_a_word_that_a_longer_name_leaves_over_is_named_again() -> None:
    assert named(holding({"ada king": 1, "ada": 1}), "Ada King and Ada") == ["ada king", "ada"]


def test_a_name_that_is_said_twice_is_one() -> None:
    assert named(holding({"ada": 1}), "Ada, Ada!") == ["ada"]


@pytest.mark.parametrize(("word", "counts"), [("ada", True), ("ad", False), ("a", False)])
def test_a_single_word_needs_three_letters(word: str, counts: bool) -> None:
    assert named(holding({word: 1}), f"who is {word}") == [word] * counts


def test_short_words_count_in_a_longer_name() -> None:
    assert named(holding({"u 2": 1}), "who sang in U-2?") == ["u 2"]


@pytest.mark.parametrize(
    ("mentioned", "passages", "counts"),
    [(10, 20, True), (11, 20, False), (11, 1099, False), (11, 1100, True), (12, 1199, False)],
)
def test_a_single_word_is_a_name_up_to_ten_passages_or_one_percent(mentioned: int, passages: int, counts: bool) -> None:
    assert named(holding({"war": mentioned}, passages=passages), "the war") == ["war"] * counts


def test_several_words_are_a_name_however_many_passages_mention_them() -> None:
    assert named(holding({"world war": 90}), "the World War") == ["world war"]


def test_names_have_eight_words_at_most() -> None:
    here = holding({"a b c d e f g h": 1, "z b c d e f g h i": 1})
    assert named(here, "a b c d e f g h") == ["a b c d e f g h"]
    assert named(here, "z b c d e f g h i") == []


@pytest.mark.parametrize(
    ("phrase", "question"),
    [
        ("鲁迅", "作家鲁迅的故乡在哪里？"),
        ("夏目漱石", "夏目漱石はどこで生まれましたか"),
        ("ภูเก็ต", "โรงแรมในภูเก็ตอยู่ที่ไหน"),
    ],
)
def test_a_name_is_found_inside_a_script_without_spaces(phrase: str, question: str) -> None:
    assert named(holding({phrase: 1}), question) == [phrase]


def test_a_single_character_of_a_script_without_spaces_is_no_name() -> None:
    assert named(holding({"水": 1}), "水は何ですか") == []


def test_a_name_may_mix_scripts() -> None:
    assert named(holding({"abc社": 1}), "ABC社の社長は") == ["abc社"]


def test_spelling_makes_no_difference_that_makes_none_for_phrases() -> None:
    assert named(holding({"café müller": 1}), "Where is “CAFE\u0301-Müller”?") == ["café müller"]


def test_under_the_rule_ascii_a_name_keeps_the_spaces_that_stand_for_its_dots() -> None:
    here = holding({normalise("St. Louis", "ascii"): 1, "missouri": 1}, rule="ascii")
    assert named(here, "Where is St. Louis, Missouri?") == ["st  louis", "missouri"]


def test_phrases_on_disk_are_named_as_those_in_memory(tmp_path: Path) -> None:
    index_of(tmp_path / "n.hippo", [stating("p", "Ada King|met|鲁迅;Bob|was|in O'Neil")])
    assert named(loaded(tmp_path / "n.hippo"), "Did Bob meet Ada King, O'Neil, 鲁迅 or Zoe?") == [
        *("ada king", "鲁迅", "bob")
    ]


def test_nothing_is_named_in_an_index_without_phrases_or_by_a_question_without_words() -> None:
    assert named_phrases(holding({}), ["who is Ada?"]) == [[]]
    assert named_phrases(holding({"ada": 1}), ["?!", "ada"]) == [[], [0]]


@pytest.mark.parametrize("text", ["word and Ada King ", "鲁迅"])
def test_a_question_of_100_kilobytes_is_read_within_seconds(text: str) -> None:
    question = (text * 100_000).encode()[:100_000].decode(errors="ignore") + " Ada King"
    started = time.perf_counter()
    assert named(holding({"ada king": 1}), question) == ["ada king"]
    assert time.perf_counter() - started < 5.0
