"""What the triple parser keeps and drops: replies that broke other programs."""

from __future__ import annotations

import pytest

from hippogpu.openie import parse_entities, parse_triples
from hippogpu.types import Triple

GOOD = ["Ada", "wrote", "notes"]


def reasons(items: object, texts: object = None) -> list[str]:
    return [drop.reason for drop in parse_triples(items, texts=texts).drops]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (["Ada", "wrote"], "2 fields, not 3"),
        (["Ada", "wrote", "notes", "1843"], "4 fields, not 3"),
        ([], "0 fields, not 3"),
        (["Ada", None, "notes"], "a field is null"),
        (["Ada", "is", True], "a field is a boolean"),
        (["Ada", "wrote", ["notes"]], "a field is nested"),
        (["Ada", "wrote", {"x": 1}], "a field is nested"),
        (["Ada", "weighs", float("nan")], "a field is no finite number"),
        ("abc", "text, not a triple"),
        (None, "null, not a triple"),
        (3, "a number, not a triple"),
        ({"a", "b", "c"}, "nested, not a triple"),
        (["Ada", "wrote", ...], "a field is nested"),
        (["Ada", ..., {"a"}], "a field is nested"),
        ({"subject": "Ada", "object": "notes"}, "an object without a 'predicate'"),
        ({"subject": "Ada", "predicate": None, "object": "notes"}, "a field is null"),
        ({1: "Ada"}, "an object without a 'subject'"),
        (GOOD, "repeated triple"),
    ],
)
def test_a_bad_triple_is_dropped_with_its_reason_and_its_neighbours_kept(bad: object, reason: str) -> None:
    kept, drops = parse_triples([GOOD, bad, ["Ada", "met", "Babbage"]])
    assert kept == (Triple(*GOOD), Triple("Ada", "met", "Babbage"))
    assert [drop.reason for drop in drops] == [reason]


@pytest.mark.parametrize(
    "keys",
    [
        ("subject", "predicate", "object"),
        ("Subject", "RELATION", " Object "),
        ("head", "relationship", "tail"),
        ("s", "p", "o"),
        ("source", "rel", "target"),
        ("head", "verb", "object"),
    ],
)
def test_an_object_is_mapped_by_its_keys(keys: tuple[str, str, str]) -> None:
    item = dict(zip(reversed(keys), reversed(GOOD), strict=True))
    assert parse_triples([item]).kept == (Triple(*GOOD),)


def test_an_object_never_becomes_the_names_of_its_keys() -> None:
    assert parse_triples([{"subject": "a", "predicate": "b", "object": "c"}]).kept == (Triple("a", "b", "c"),)


def test_numbers_are_cast_to_text() -> None:
    assert parse_triples([["Ada", 1843, 2.5]]).kept == (Triple("Ada", "1843", "2.5"),)


def test_fields_stay_as_they_were_written() -> None:
    fields = (" Zürich\n", r"\frac{a}{b} } {", "")
    assert parse_triples([fields]).kept == (Triple(*fields),)


def test_expressions_in_a_reply_stay_text() -> None:
    fields = ("__import__('os').abort()", "exec('1/0')", "${x}")
    assert parse_triples([list(fields)]).kept == (Triple(*fields),)


def test_a_field_of_100_kilobytes_is_kept_and_its_drop_is_short() -> None:
    long = "x" * 100_000
    kept, drops = parse_triples([[long, "is", "long"], [long, "is"], long])
    assert kept[0].subject == long
    assert [len(drop.value) <= 200 for drop in drops] == [True, True]


def test_a_deeply_nested_value_is_dropped() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert reasons([deep, ["a", "b", deep]]) == ["1 fields, not 3", "a field is nested"]


@pytest.mark.parametrize("items", [None, "abc", 3, {"triples": [GOOD]}])
def test_what_is_no_list_of_triples_is_dropped_as_a_whole(items: object) -> None:
    assert (parse_triples(items).kept, reasons(items)) == ((), ["the triples are no list"])


def test_a_fact_text_comes_from_the_object_or_the_parallel_list() -> None:
    own = {"subject": "a", "predicate": "b", "object": "c", "text": "own"}
    kept = parse_triples([GOOD, own, ["d", "e", "f"]], texts=["first", "second", None]).kept
    assert [triple.text for triple in kept] == ["first", "own", None]


def test_a_fact_text_that_is_no_text_is_dropped_and_the_triple_kept() -> None:
    assert parse_triples([GOOD], texts=[5]).kept == (Triple(*GOOD),)
    assert reasons([GOOD], [5]) == ["a triple's text is no text"]


@pytest.mark.parametrize("texts", ["x", [], ["a", "b"]])
def test_fact_texts_that_are_not_parallel_are_dropped_as_a_whole(texts: object) -> None:
    assert parse_triples([GOOD], texts=texts).kept == (Triple(*GOOD),)
    assert reasons([GOOD], texts) == ["the texts are no list as long as the triples"]


def test_entities_with_a_number_or_null_keep_their_neighbours() -> None:
    kept, drops = parse_entities(["Ada", None, 1843, True, ["x"], " ", "Ada", "Babbage"])
    assert kept == ("Ada", "1843", "Babbage")
    assert [drop.reason for drop in drops] == [
        "an entity is null",
        "an entity is a boolean",
        "an entity is nested",
        "an entity is empty",
        "repeated entity",
    ]
