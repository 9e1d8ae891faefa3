"""Orders and layouts of the locality bench hold the same graph, and its page follows from the results alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from bench.locality_layouts import LAYOUTS, coded_step, gap_bits, weight_codes
from bench.locality_orders import ORDERS, by_first_passage
from bench.locality_page import PAGE, with_tables
from bench.locality_predictions import PREDICTIONS
from bench.ppr.synthetic import synthetic_graph
from hippogpu.graph.ordering import renumbered
from hippogpu.types import Csr, Floats

PASSAGES = 60
# Of a weight: rounding to 16 bits of a float16, or to 65,280 steps from 0.8 to 1.
HALF, FIXED = 5e-4, 2e-6


@pytest.fixture(scope="module")
def graph() -> Csr:
    return synthetic_graph(PASSAGES).graph


def wide_graph() -> Csr:
    """Few edges among 200,001 nodes, so that gaps need more than 16 bits, before the row's own number as after it."""
    half = random_array((200_001, 200_001), density=2e-8, random_state=np.random.default_rng(1), format="coo")
    both = csr_array(half + half.T)
    both.sort_indices()
    return Csr(both.indptr.astype(np.int64), both.indices.astype(np.int32), np.ones(both.nnz, np.float32))


def dense(graph: Csr) -> Floats:
    filled: Floats = csr_array((graph.weights, graph.indices, graph.indptr)).toarray()
    return filled


@pytest.mark.parametrize("name", [name for name in ORDERS if name != "Leiden"])
def test_an_order_only_numbers_the_nodes_anew(graph: Csr, name: str) -> None:
    order = ORDERS[name](graph, PASSAGES).order
    assert sorted(order.tolist()) == list(range(graph.nodes))
    np.testing.assert_array_equal(dense(renumbered(graph, order)), dense(graph)[np.ix_(order, order)])


def test_a_phrase_stands_behind_the_first_passage_that_mentions_it(graph: Csr) -> None:
    order = by_first_passage(graph, PASSAGES).order
    passage = int(graph.indices[graph.indptr[PASSAGES]])
    before = order[: order.tolist().index(PASSAGES)]
    assert before[before < PASSAGES][-1] == passage


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_a_layout_is_read_as_the_graph_it_was_made_of(graph: Csr, name: str) -> None:
    layout, room = LAYOUTS[name], graph.nonzeros
    given = np.zeros(room, np.int32), np.zeros(room, np.float32)
    columns, weights = layout.read(layout.code(graph, PASSAGES), graph.indptr, 0, graph.nodes, *given)
    np.testing.assert_array_equal(columns[:room], graph.indices)
    off = HALF if "float16" in name else FIXED if "weights" in name and "no weights" not in name else 0
    np.testing.assert_allclose(weights[:room], graph.weights, rtol=off)


@pytest.mark.parametrize("name", ["16-bit gaps", "varint gaps"])
def test_gaps_beyond_16_bits_are_read_again(name: str) -> None:
    graph, layout = wide_graph(), LAYOUTS[name]
    assert gap_bits(graph)["16 bits, escape"] > 30
    given = np.zeros(graph.nonzeros, np.int32), np.zeros(graph.nonzeros, np.float32)
    columns, _ = layout.read(layout.code(graph, 0), graph.indptr, 0, graph.nodes, *given)
    np.testing.assert_array_equal(columns[: graph.nonzeros], graph.indices)


@pytest.mark.parametrize("batch", [1, 8, 32])
def test_a_step_over_coded_edges_is_the_product(graph: Csr, batch: int) -> None:
    layout = LAYOUTS["run by run"]
    y = np.random.default_rng(0).random((graph.nodes, batch), np.float32)
    scale, out = np.full(graph.nodes, 0.5, np.float32), np.zeros_like(y)
    coded_step(layout.read, layout.code(graph, PASSAGES), graph.indptr, y, y, scale, out)
    np.testing.assert_allclose(out, 0.5 * (dense(graph).astype(np.float64) @ y + y), rtol=1e-5)


def test_columns_that_lie_side_by_side_take_the_least_bits() -> None:
    chain = Csr(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32), np.ones(4, np.float32))
    assert gap_bits(chain) == {
        "int32": 32.0, "16 bits, escape": 16.0, "varint": 8.0, "group varint": 10.0, "entropy": pytest.approx(1.5),
    }  # fmt: skip


def test_a_book_of_weights_that_does_not_suffice_is_refused() -> None:
    with pytest.raises(ValueError, match="Got 257"):
        weight_codes(np.arange(1, 258, dtype=np.float32))


def test_the_page_is_that_of_its_results() -> None:
    found = {"median": 2.0, "least": 1.0, "greatest": 3.0, "repeats": 3}
    timed = {"ms": found, "ratio": found, "gbs": {"lower": 1.0, "upper": 2.0}, "error": 0.0}
    steps = dict.fromkeys(("1", "8", "32"), timed)
    bits = {"16 bits, escape": 16.0, "varint": 8.0, "group varint": 10.0, "entropy": 3.0}
    order = {"order": "labels", "communities": 3, "found_s": 1.0, "applied_s": 2.0, "bits": bits, "push": timed}
    graph = {"synthetic": True, "passages": 5, "nodes": 50, "nonzeros": 100, "of_mentions": 10}
    machine = {"cpu": "a processor", "date": "2026-11-30", "load_before": 0.1}
    entry = {"graph": graph, "machine": machine, "orders": [{**order, "steps": steps}]}
    page = with_tables(PAGE.read_text(), {"graphs": {"five": entry}, "predicted": PREDICTIONS})
    assert "### five" in page
    assert "| labels | 3 | 1.0 + 2.0 | 2 | 2.00 (1.00–3.00) | 1–2 |" in page
