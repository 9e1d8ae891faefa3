"""The one graph: fact, synonym, mention and user edges under both edge rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from hippogpu.config import EdgeRule, IndexConfig
from hippogpu.graph import assemble, phrase_graph
from hippogpu.tables import tabulate
from hippogpu.types import Csr, Edges, Record, Tables, Triple, UserEdge

RULES: tuple[EdgeRule, ...] = ("max", "parallel")


def synonyms(*edges: tuple[int, int, float]) -> Edges:
    source, target, weight = zip(*edges, strict=True) if edges else ((), (), ())
    return Edges(np.array(source, np.int32), np.array(target, np.int32), np.array(weight, np.float32))


def own(*edges: tuple[str, str, float]) -> list[UserEdge]:
    """User edges by their ends and weight: a digit is a passage, a letter a phrase."""
    return [
        UserEdge(
            tuple(end for end in ends if end.isdigit()), tuple(end for end in ends if end.isalpha()), "link", weight
        )
        for *ends, weight in edges
    ]


def graph(*rows: str, edges: Edges | None = None, rule: EdgeRule = "max", user_edges: Sequence[UserEdge] = ()) -> Csr:
    """One passage a text of two-letter facts: "ab ba" states (a, p, b) and (b, p, a)."""
    records = [
        Record(str(i), tuple(Triple(f[0], f"p{n}", f[1]) for n, f in enumerate(row.split())))
        for i, row in enumerate(rows)
    ]
    passages = {str(i): [i] for i in range(len(rows))}
    tables = tabulate(records, IndexConfig(), edges=user_edges, rows=passages).tables.check()
    return assemble(tables, edges or synonyms(), rule).check()


def dense(made: Csr) -> np.ndarray:
    return csr_array((made.weights, made.indices, made.indptr), shape=(made.nodes, made.nodes)).toarray()


def between_phrases(made: Csr, passages: int) -> list[list[float]]:
    return dense(made)[passages:, passages:].tolist()


@pytest.mark.parametrize("rule", RULES)
def test_passages_come_first_and_each_mention_weighs_one(rule: EdgeRule) -> None:
    made = dense(graph("ab ba ab", "bc", rule=rule))
    assert made[:2].tolist() == [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]


@pytest.mark.parametrize(("rule", "weight"), [("max", 3), ("parallel", 6)])
def test_a_pair_weighs_its_statements_twice_as_much_under_parallel(rule: EdgeRule, weight: float) -> None:
    assert between_phrases(graph("ab ba", "ab", rule=rule), 2) == [[0, weight], [weight, 0]]


@pytest.mark.parametrize("rule", RULES)
def test_a_self_loop_makes_no_edge_but_a_mention(rule: EdgeRule) -> None:
    assert dense(graph("aa", rule=rule)).tolist() == [[0, 1], [1, 0]]


def test_under_max_a_synonym_found_from_either_end_is_one_edge_of_its_cosine() -> None:
    one = graph("aa", "bb", edges=synonyms((0, 1, 0.875)))
    other = graph("aa", "bb", edges=synonyms((0, 1, 0.875), (1, 0, 0.875)))
    assert between_phrases(one, 2) == between_phrases(other, 2) == [[0, 0.875], [0.875, 0]]


def test_under_max_the_greater_of_statements_and_cosine_counts() -> None:
    assert between_phrases(graph("ab", edges=synonyms((0, 1, 0.875))), 1)[0][1] == 1


def test_under_parallel_a_synonym_found_from_both_ends_adds_up() -> None:
    both = graph("aa", "bb", edges=synonyms((0, 1, 0.875), (1, 0, 0.75)), rule="parallel")
    assert between_phrases(both, 2)[0][1] == 1.625


def test_under_parallel_a_one_sided_synonym_counts_once() -> None:
    one = graph("aa", "bb", edges=synonyms((1, 0, 0.875)), rule="parallel")
    assert between_phrases(one, 2)[0][1] == 0.875


@pytest.mark.parametrize("edge", [(0, 1, 0.875), (1, 0, 0.875)])
def test_under_parallel_a_cosine_replaces_the_statements_of_its_own_direction(edge: tuple[int, int, float]) -> None:
    made = graph("ab ba ab", edges=synonyms(edge), rule="parallel")
    assert between_phrases(made, 1)[0][1] == 3 + 0.875


def test_under_parallel_cosines_of_both_directions_replace_all_statements() -> None:
    made = graph("ab ba ab", edges=synonyms((0, 1, 0.875), (1, 0, 0.875)), rule="parallel")
    assert between_phrases(made, 1)[0][1] == 1.75


@pytest.mark.parametrize("rule", RULES)
def test_passages_without_facts_are_nodes_without_edges(rule: EdgeRule) -> None:
    assert np.diff(graph("", "ab", "", rule=rule).indptr).tolist() == [0, 2, 0, 2, 2]


@pytest.mark.parametrize("rule", RULES)
def test_a_corpus_without_facts_is_a_graph_without_edges(rule: EdgeRule) -> None:
    made = graph("", "", rule=rule)
    assert (made.nodes, made.nonzeros) == (2, 0)


def test_the_arrays_have_the_promised_types() -> None:
    made = graph("ab")
    assert (made.indptr.dtype, made.indices.dtype, made.weights.dtype) == (np.int64, np.int32, np.float32)


@pytest.mark.parametrize("rule", RULES)
def test_a_user_edge_joins_its_two_ends_with_its_weight(rule: EdgeRule) -> None:
    made = dense(graph("", "", rule=rule, user_edges=own(("0", "1", 2), ("1", "a", 3), ("a", "b", 4))))
    assert made.tolist() == [[0, 2, 0, 0], [2, 0, 3, 0], [0, 3, 0, 4], [0, 0, 4, 0]]


@pytest.mark.parametrize(("rule", "weight"), [("max", 5), ("parallel", 12)])
@pytest.mark.parametrize("ends", [("0", "1"), ("1", "a"), ("a", "b")])
def test_user_edges_of_one_pair_give_the_greatest_or_add_up(
    rule: EdgeRule, weight: float, ends: tuple[str, str]
) -> None:
    made = graph("", "", rule=rule, user_edges=own((*ends, 4), (*ends, 5), (*ends[::-1], 3)))
    assert sorted(made.weights) == [weight, weight]


@pytest.mark.parametrize(("rule", "given", "weight"), [("max", 0.5, 1), ("max", 3, 3), ("parallel", 0.5, 1.5)])
def test_a_stated_mention_weighs_one_and_its_user_edge(rule: EdgeRule, given: float, weight: float) -> None:
    assert dense(graph("ab", rule=rule, user_edges=own(("0", "a", given)))).tolist()[0] == [0, weight, 1]


@pytest.mark.parametrize(
    ("rule", "given", "weight"), [("max", 0.5, 2), ("max", 3, 3), ("parallel", 0.5, 2 + 0.875 + 0.5)]
)
def test_between_phrases_a_user_edge_combines_with_statements_and_cosine(
    rule: EdgeRule, given: float, weight: float
) -> None:
    made = graph("ab ba", edges=synonyms((0, 1, 0.875)), rule=rule, user_edges=own(("a", "b", given)))
    assert between_phrases(made, 1)[0][1] == weight


@pytest.mark.parametrize("rule", RULES)
def test_user_edges_elsewhere_leave_the_weights_of_facts_and_mentions(rule: EdgeRule) -> None:
    plain = graph("ab ba", "bc", rule=rule)
    more = graph("ab ba", "bc", rule=rule, user_edges=own(("0", "1", 2), ("1", "x", 3)))
    assert np.array_equal(dense(more)[:5, :5] - dense(plain), np.eye(5)[[1, 0, 2, 3, 4]] * [[2], [2], [0], [0], [0]])


FACTS = st.lists(st.text("abcd", min_size=2, max_size=2), max_size=4)
ENDS = st.lists(st.sampled_from("012abcd"), min_size=2, max_size=2, unique=True)
OWN = st.lists(st.tuples(ENDS, st.sampled_from([0.25, 1.5, 4.0])).map(lambda edge: (*edge[0], edge[1])), max_size=8)


@given(rows=st.lists(FACTS, min_size=3, max_size=3), edges=OWN, rule=st.sampled_from(RULES))
def test_the_graph_is_that_of_dictionaries_and_loops(
    rows: list[list[str]], edges: list[tuple[str, str, float]], rule: EdgeRule
) -> None:
    given_weights: dict[frozenset[str], list[float]] = {}
    stated = [fact for row in rows for fact in row if len({*fact}) == 2]
    for number, row in enumerate(rows):
        for phrase in {*"".join(row)}:
            given_weights[frozenset((str(number), phrase))] = [1.0]
    for pair in {frozenset(fact) for fact in stated}:
        given_weights[pair] = [sum(frozenset(fact) == pair for fact in stated) * (2 if rule == "parallel" else 1)]
    for *ends, weight in edges:
        given_weights.setdefault(frozenset(ends), []).append(weight)
    names = [*"012", *sorted({end for pair in given_weights for end in pair if end.isalpha()})]
    made = graph(*(" ".join(row) for row in rows), rule=rule, user_edges=own(*edges))
    found = {frozenset((names[i], names[j])): weight for (i, j), weight in np.ndenumerate(dense(made)) if weight}
    assert found == {pair: max(weights) if rule == "max" else sum(weights) for pair, weights in given_weights.items()}


COSINES = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda ends: ends[0] != ends[1]),
    st.sampled_from([0.8125, 0.875, 1.0]),
)


def four_phrases(rows: list[list[str]], edges: list[tuple[str, str, float]]) -> Tables:
    """Three passages, the last of which also states all of a, b, c and d."""
    records = [Record(str(i), tuple(Triple(f[0], "p", f[1]) for f in row)) for i, row in enumerate(rows)]
    records[2] = replace(records[2], triples=(*records[2].triples, Triple("a", "p", "b"), Triple("c", "p", "d")))
    return tabulate(records, IndexConfig(), edges=own(*edges), rows={str(i): [i] for i in range(3)}).tables


def dense_phrases(tables: Tables, cosines: dict[tuple[int, int], float], rule: EdgeRule) -> np.ndarray:
    """What joins each two phrases, of dense matrices."""
    facts, stated, found = tables.facts, np.zeros((4, 4)), np.zeros((4, 4))
    np.add.at(stated, (facts.subject[tables.statements.values], facts.object[tables.statements.values]), 1)
    stated = (stated + stated.T) * (1 - np.eye(4))
    for ends, cosine in cosines.items():
        found[ends] = cosine
    joined = np.maximum.reduce([stated, found, found.T])
    if rule == "parallel":
        one_way = np.where(found > 0, found, stated)
        joined = one_way + one_way.T
    for source, target, weight in zip(*tables.user_edges, strict=True):
        ends = source - 3, target - 3
        if source >= 3:
            joined[ends] = max(joined[ends], weight) if rule == "max" else joined[ends] + weight
            joined[ends[::-1]] = joined[ends]
    return joined


@given(
    rows=st.lists(FACTS, min_size=3, max_size=3),
    edges=OWN,
    cosines=COSINES,
    rule=st.sampled_from(RULES),
    budget=st.sampled_from([1, 40, 2**20]),
)
def test_phrases_are_joined_as_dense_matrices_say_whatever_the_budget(
    rows: list[list[str]],
    edges: list[tuple[str, str, float]],
    cosines: dict[tuple[int, int], float],
    rule: EdgeRule,
    budget: int,
) -> None:
    tables = four_phrases(rows, edges)
    found = synonyms(*((*ends, cosine) for ends, cosine in cosines.items()))
    made = assemble(tables, found, rule, budget_bytes=budget).check()
    alone = phrase_graph(tables, found, rule, budget_bytes=budget).check()
    expected = dense_phrases(tables, cosines, rule).tolist()
    assert between_phrases(made, 3) == dense(alone).tolist() == expected


@pytest.mark.parametrize("rule", RULES)
def test_a_block_a_phrase_gives_the_arrays_of_one_block(rule: EdgeRule) -> None:
    records = [Record(str(i), (Triple(f"x{i}", "p", f"x{i * 7 % 31}"), Triple("hub", "p", f"x{i}"))) for i in range(33)]
    tables = tabulate(records, IndexConfig()).tables
    near = synonyms(*((i, (i + 5) % 32, 0.875) for i in range(32)))
    whole, blocks = assemble(tables, near, rule).check(), assemble(tables, near, rule, budget_bytes=1)
    assert all(np.array_equal(getattr(whole, name), getattr(blocks, name)) for name in ("indptr", "indices", "weights"))


def test_progress_counts_the_rows_of_phrases() -> None:
    seen: list[tuple[int, int]] = []
    tables = tabulate([Record("0", (Triple("a", "p", "b"), Triple("b", "p", "c")))], IndexConfig()).tables
    assemble(tables, synonyms(), "max", budget_bytes=8, on_progress=lambda done, whole: seen.append((done, whole)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
