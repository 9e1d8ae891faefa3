"""Laws of the triple parser over any JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hippogpu.openie import parse_entities, parse_triples
from hippogpu.openie.parse import DROP_CHARACTERS
from hippogpu.types import Triple

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
GOOD = st.tuples(st.text(), st.text(), st.text())
BAD = JSON.filter(lambda item: not parse_triples([item]).kept)


@given(items=JSON, texts=JSON)
def test_any_json_gives_triples_of_text_and_bounded_drops(items: object, texts: object) -> None:
    kept, drops = parse_triples(items, texts=texts)
    assert all(isinstance(field, str) for triple in kept for field in triple[:3])
    assert all(drop.reason and len(drop.value) <= DROP_CHARACTERS for drop in drops)


@given(items=st.lists(JSON))
def test_every_item_is_kept_or_dropped(items: list[object]) -> None:
    kept, drops = parse_triples(items)
    items_dropped = [drop for drop in drops if drop.reason != "a triple's text is no text"]
    assert len(kept) + len(items_dropped) == len(items)


@given(good=st.lists(GOOD, unique=True), bad=st.lists(BAD), order=st.randoms())
def test_bad_triples_never_cost_their_neighbours(good: list[tuple[str, str, str]], bad: list[object], order) -> None:
    items = [*map(list, good), *bad]
    order.shuffle(items)
    kept = parse_triples(items).kept
    assert sorted(kept) == sorted(Triple(*fields) for fields in good)


@given(good=st.lists(GOOD))
def test_parsing_what_was_kept_changes_nothing(good: list[tuple[str, str, str]]) -> None:
    kept = parse_triples(good).kept
    assert parse_triples(json.loads(json.dumps([triple[:3] for triple in kept]))) == (kept, ())


@given(items=JSON)
def test_any_json_gives_distinct_entities_of_text(items: object) -> None:
    kept, drops = parse_entities(items)
    assert all(isinstance(name, str) and name.strip() for name in kept)
    assert len(set(kept)) == len(kept)
    assert all(len(drop.value) <= DROP_CHARACTERS for drop in drops)
