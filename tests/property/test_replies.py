"""Laws of the reply parser over any text and any JSON."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hippogpu.openie import parse_entities, parse_triples
from hippogpu.openie.json_text import find_values
from hippogpu.openie.parse import DROP_CHARACTERS
from hippogpu.openie.replies import Wants, read_numbers, read_reply
from hippogpu.types import Triple

# Time is bounded in CPU seconds by the unit tests; wall time on a busy machine says nothing.
law = settings(deadline=None)

WANTS = st.sampled_from(["entities", "triples", "both"])
ANY_TEXT = st.text(st.characters())
PARTS = st.sampled_from([*"[]{}()\"',:\\ \n/*#0a-.", '["a","b","c"]', '"triples":', "null", "</think>"])
JSON_LIKE = st.lists(PARTS).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=20)
FIELDS = st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT)
# Neither a list of triples nor an object can be mistaken for the talk around it, whatever the talk is.
TALK = st.text(st.characters(exclude_characters="[]{}()<:=\ufeff\0"), max_size=40)


@law
@given(text=ANY_TEXT | JSON_LIKE, wants=WANTS)
@example(text='"\\', wants="both")
@example(text="{'", wants="triples")
def test_any_text_is_read_with_a_reason_for_what_is_missing(text: str, wants: Wants) -> None:
    reply = read_reply(text, wants=wants)
    assert all(isinstance(field, str) for triple in reply.triples for field in triple[:3])
    assert all(isinstance(name, str) and name.strip() for name in reply.entities)
    assert all(drop.reason and len(drop.value) <= DROP_CHARACTERS for drop in reply.drops)
    assert reply.fault is None or reply.fault.startswith("the reply")


@law
@given(text=ANY_TEXT | JSON_LIKE)
def test_any_text_gives_numbers_in_range_or_none(text: str) -> None:
    numbers = read_numbers(text, most=5)
    assert numbers is None or numbers <= {1, 2, 3, 4, 5}


@law
@given(items=st.lists(JSON))
def test_a_whole_list_under_its_key_is_read_as_parse_triples_reads_it(items: list[object]) -> None:
    flat = [item for item in items if not isinstance(item, list | dict)]
    reply = read_reply(json.dumps({"triples": flat}), wants="triples")
    assert (reply.triples, reply.drops) == parse_triples(json.loads(json.dumps(flat)))


@law
@given(good=st.lists(FIELDS, unique=True), before=TALK, after=TALK, ascii_=st.booleans())
def test_talk_around_the_json_changes_no_triple(
    good: list[tuple[str, str, str]], before: str, after: str, ascii_: bool
) -> None:
    text = json.dumps({"triples": good}, ensure_ascii=ascii_)
    reply = read_reply(f"{before}{text}{after}", wants="triples")
    assert reply.triples == tuple(Triple(*fields) for fields in good)


@law
@given(names=st.lists(ANY_TEXT))
def test_bare_names_are_read_as_parse_entities_reads_them(names: list[str]) -> None:
    reply = read_reply(json.dumps(names), wants="entities")
    assert (reply.entities, reply.drops) == parse_entities(names)


@law
@given(good=st.lists(FIELDS, unique=True, min_size=1), data=st.data())
def test_cutting_a_reply_keeps_a_head_of_its_triples(good: list[tuple[str, str, str]], data: st.DataObject) -> None:
    text = json.dumps({"triples": good})
    cut = data.draw(st.integers(1, len(text) - 1))
    kept = read_reply(text[:cut], wants="triples").triples
    assert kept == tuple(Triple(*fields) for fields in good[: len(kept)])
    assert len(kept) <= len(read_reply(text[: cut + 1], wants="triples").triples)


@law
@given(value=st.lists(JSON) | st.dictionaries(ANY_TEXT, JSON))
def test_json_is_found_as_json_reads_it(value: object) -> None:
    text = json.dumps(value)
    for reply in (text, f"```json\n{text}\n```"):
        assert find_values(reply) == ((("", json.loads(text)),), False, ())


@law
@given(fields=st.lists(FIELDS, unique=True))
def test_python_written_triples_are_read_without_evaluating_them(fields: list[tuple[str, str, str]]) -> None:
    plain = [triple for triple in fields if all(field.isprintable() for field in triple)]
    assert read_reply(repr([*plain, ...]), wants="triples").triples == tuple(Triple(*triple) for triple in plain)
