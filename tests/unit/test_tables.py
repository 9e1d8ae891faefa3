"""Records to phrases, facts, mentions and statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippogpu.config import PROFILES, IndexConfig
from hippogpu.errors import IndexDamagedError
from hippogpu.tables import fact_pairs, mention_counts, stated_mentions, tabulate, user_pairs
from hippogpu.types import Edges, Record, Tables, Triple, UserEdge

DEFAULT, ORACLE = PROFILES["default"], PROFILES["oracle"]
WORD = st.sampled_from(["a", "B", "b", "c!", "C", "—"])
TRIPLES = st.lists(st.builds(Triple, WORD, WORD, WORD, st.none()), max_size=4)


def record(*triples: tuple[str, str, str] | Triple) -> Record:
    return Record("p", tuple(Triple(*triple) for triple in triples))


def tables(*records: Record | None, config: IndexConfig = DEFAULT) -> Tables:
    return tabulate(records, config).tables.check()


def keys(made: Tables) -> list[tuple[str, str, str]]:
    facts, phrases = made.facts, made.phrases
    ends = zip(facts.subject, facts.predicate, facts.object, strict=True)
    return [(phrases[subject], predicate, phrases[object_]) for subject, predicate, object_ in ends]


def test_spellings_of_one_phrase_are_one_row() -> None:
    made = tables(record(("Ada", "knew", "Bob"), ("ADA!", "met", "bob ")))
    assert made.phrases == ("ada", "bob")
    assert keys(made) == [("ada", "knew", "bob"), ("ada", "met", "bob")]


def test_phrases_and_facts_are_sorted_by_code_point() -> None:
    made = tables(record(("z", "p", "é"), ("北", "p", "a")), record(("a", "b", "z"), ("a", "a", "z")))
    assert list(made.phrases) == sorted(made.phrases)
    assert keys(made) == sorted(keys(made))


@given(st.lists(TRIPLES, max_size=4), st.randoms())
def test_phrases_and_facts_do_not_depend_on_the_order_of_passages(rows: Sequence[list[Triple]], random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = (tables(*(record(*row) for row in some)) for some in (rows, shuffled))
    assert (one.phrases, keys(one), one.facts.text) == (other.phrases, keys(other), other.facts.text)


@given(st.lists(TRIPLES, max_size=4))
def test_each_statement_is_the_normalised_triple_in_the_extractors_order(rows: Sequence[list[Triple]]) -> None:
    made = tables(*(record(*row) for row in rows), config=ORACLE)
    for number, row in enumerate(rows):
        said = [keys(made)[fact] for fact in made.statements.row(number)]
        assert [key[1] for key in said] == [{"B": "b", "c!": "c", "C": "c", "—": ""}.get(t[1], t[1]) for t in row]


def test_a_passage_mentions_each_of_its_phrases_once_in_ascending_order() -> None:
    made = tables(record(("b", "p", "a"), ("b", "q", "c"), ("b", "p", "b")), record(("c", "p", "d")))
    assert [made.mentions.row(i).tolist() for i in range(2)] == [[0, 1, 2], [2, 3]]
    assert mention_counts(made).tolist() == [1, 1, 2, 1]


def test_passages_without_facts_or_record_keep_their_empty_rows() -> None:
    made = tables(None, record(), record(("a", "p", "b")), None)
    assert np.diff(made.mentions.indptr).tolist() == [0, 0, 2, 0]


def test_no_passages_make_empty_tables() -> None:
    made = tables()
    assert (len(made.mentions), len(made.phrases), len(made.facts)) == (0, 0, 0)
    assert len(mention_counts(made)) == 0


def test_triples_that_normalise_to_nothing_are_dropped_and_counted() -> None:
    made = tabulate([record(("!!!", "p", "b"), ("a", "p", "—"), ("a", "—", "b"))], DEFAULT)
    assert keys(made.tables) == [("a", "", "b")]
    assert list(made.dropped.values()) == [2]


def test_the_oracle_profile_keeps_all_empty_phrases_as_one() -> None:
    made = tabulate([record(("!!!", "p", "b"), ("北京", "p", "—"))], ORACLE)
    assert (made.tables.phrases, made.dropped) == (("", "b"), {})
    assert keys(made.tables) == [("", "p", ""), ("", "p", "b")]


def test_a_self_loop_is_a_fact_and_a_mention_but_no_pair() -> None:
    made = tables(record(("Steam", "is", "steam!")))
    assert (len(made.facts), made.mentions.values.tolist()) == (1, [0])
    assert len(fact_pairs(made)[0]) == 0


def test_two_spellings_of_a_triple_in_one_passage_count_twice() -> None:
    low, high, count = fact_pairs(tables(record(("Ada", "knew", "Bob"), ("ada", "knew", "bob!"))))
    assert (low.tolist(), high.tolist(), count.tolist()) == ([0], [1], [2])


def test_statements_in_either_order_by_any_predicate_count_for_one_pair() -> None:
    made = tables(record(("a", "p", "b"), ("b", "q", "a")), record(("a", "r", "b")), record(("b", "p", "c")))
    low, high, count = fact_pairs(made)
    assert (low.tolist(), high.tolist(), count.tolist()) == ([0, 1], [1, 2], [3, 1])


def test_a_fact_is_encoded_as_its_three_fields() -> None:
    assert tables(record(("Ada", "knew!", "Bob"))).facts.text == ("ada knew bob",)


def test_the_oracle_profile_encodes_the_text_of_the_tuple() -> None:
    made = tables(record(("Ada", "knew", "O'Neill")), config=ORACLE)
    assert made.facts.text == ("('ada', 'knew', 'o neill')",)


def test_a_text_from_the_extractor_is_encoded_instead_the_first_one_kept() -> None:
    one, other = Triple("a", "p", "b", "A. First."), Triple("A", "p", "b", "B. Second.")
    assert tables(record(one), record(other)).facts.text == ("A. First.",)


def test_half_characters_in_a_facts_text_are_replaced() -> None:
    assert tables(record(Triple("a", "p", "b", "x\ud800"))).facts.text == ("x\ufffd",)


EDGES = (UserEdge(("p", "q"), (), "link", 2.0), UserEdge(("q",), ("tag",)), UserEdge((), ("tag", "a"), "x", 0.5))


def with_edges(*edges: UserEdge, **rows: Sequence[int]) -> Tables:
    """Two passages, p and q, the first of which states (a, p, b)."""
    records = [record(("a", "p", "b")), None]
    return tabulate(records, DEFAULT, edges=edges, rows={"p": [0], "q": [1], **rows}).tables.check()


def test_phrases_are_those_of_facts_and_of_user_edges() -> None:
    assert with_edges(*EDGES).phrases == ("a", "b", "tag")


def test_user_edges_are_pairs_of_nodes_with_passages_first_by_what_they_join() -> None:
    families = user_pairs(with_edges(*EDGES).user_edges, 2)
    joined = [(pairs.low.tolist(), pairs.high.tolist(), pairs.weight.tolist()) for pairs in families]
    assert joined == [([0], [1], [2.0]), ([1], [2], [1.0]), ([0], [2], [0.5])]


@given(st.permutations([*EDGES, replace(EDGES[0], kind="tag"), replace(EDGES[0], weight=3.0)]))
def test_user_edges_in_any_order_make_the_same_pairs(edges: Sequence[UserEdge]) -> None:
    once, other = with_edges(*sorted(edges, key=str)).user_edges, with_edges(*edges).user_edges
    assert all(np.array_equal(*columns) for columns in zip(once, other, strict=True))


def test_a_phrase_that_a_user_edge_gives_a_passage_is_mentioned_but_not_stated() -> None:
    made = with_edges(*EDGES, UserEdge(("p",), ("b",)))
    assert [made.mentions.row(i).tolist() for i in range(2)] == [[0, 1], [2]]
    assert stated_mentions(made).tolist() == [True, True, False]
    assert mention_counts(made).tolist() == [1, 1, 1]


def test_an_id_that_stands_for_many_passages_joins_each_of_them_once_and_none_with_itself() -> None:
    made = with_edges(UserEdge(("all", "q")), UserEdge(("all",), ("b",)), all=[0, 1])
    assert list(zip(made.user_edges.source.tolist(), made.user_edges.target.tolist(), strict=True)) == [
        *[(0, 1), (0, 3), (1, 3)]
    ]


@pytest.mark.parametrize("edge", [(0, 9, 1.0), (-1, 1, 1.0), (1, 1, 1.0), (1, 0, 1.0), (0, 1, 0.0), (0, 1, np.inf)])
def test_a_user_edge_that_is_none_is_damage(edge: tuple[int, int, float]) -> None:
    columns = (np.array([value], kind) for value, kind in zip(edge, (np.int32, np.int32, np.float32), strict=True))
    with pytest.raises(IndexDamagedError, match="user_edges"):
        replace(with_edges(), user_edges=Edges(*columns)).check()
