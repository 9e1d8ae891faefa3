"""The one graph: fact, synonym and mention edges under both edge rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from hippogpu.config import EdgeRule, IndexConfig
from hippogpu.graph import assemble
from hippogpu.tables import tabulate
from hippogpu.types import Csr, Edges, Record, Triple

RULES: tuple[EdgeRule, ...] = ("max", "parallel")


def synonyms(*edges: tuple[int, int, float]) -> Edges:
    source, target, weight = zip(*edges, strict=True) if edges else ((), (), ())
    return Edges(np.array(source, np.int32), np.array(target, np.int32), np.array(weight, np.float32))


def graph(*rows: str, edges: Edges | None = None, rule: EdgeRule = "max") -> Csr:
    """One passage a text of two-letter facts: "ab ba" states (a, p, b) and (b, p, a)."""
    records = [
        Record(str(i), tuple(Triple(f[0], f"p{n}", f[1]) for n, f in enumerate(row.split())))
        for i, row in enumerate(rows)
    ]
    tables = tabulate(records, IndexConfig()).tables
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
