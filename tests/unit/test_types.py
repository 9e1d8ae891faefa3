"""The promises of arrays, and what is said when one is broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hippogpu.errors import HippoError, IndexDamagedError, UsageError
from hippogpu.types import Csr, Facts, Ragged, Tables


def ragged(*indptr: int, values: tuple[int, ...] = ()) -> Ragged:
    return Ragged(np.array(indptr, np.int64), np.array(values, np.int32))


def csr(indptr: list[int], indices: list[int], weights: list[float]) -> Csr:
    return Csr(np.array(indptr, np.int64), np.array(indices, np.int32), np.array(weights, np.float32))


PATH = csr([0, 1, 3, 4], [1, 0, 2, 1], [1, 1, 2, 2])
TABLES = Tables(
    ("a", "b"),
    Facts(np.array([0], np.int32), np.array([1], np.int32), ("p",), ("a p b",)),
    ragged(0, 2, values=(0, 1)),
    ragged(0, 1, values=(0,)),
)


def test_rows_are_what_lies_between_their_pointers() -> None:
    rows = ragged(0, 2, 2, 3, values=(4, 5, 6))
    assert (len(rows), [rows.row(i).tolist() for i in range(3)]) == (3, [[4, 5], [], [6]])


def test_no_rows_pass_the_check() -> None:
    assert len(ragged(0).check("x", below=0)) == 0


@pytest.mark.parametrize(
    "rows",
    [
        ragged(),
        ragged(1, 1, values=(0,)),
        ragged(0, 2, 1, values=(0,)),
        ragged(0, 2, values=(0,)),
        ragged(0, 0, values=(0,)),
    ],
)
def test_row_pointers_that_do_not_ascend_to_the_end_are_named(rows: Ragged) -> None:
    with pytest.raises(IndexDamagedError, match="row pointers of 'mentions'"):
        rows.check("mentions", below=9)


@pytest.mark.parametrize("value", [-1, 2, 2**31 - 1])
def test_a_value_outside_its_table_is_damage(value: int) -> None:
    with pytest.raises(IndexDamagedError, match=r"'mentions' points outside \[0, 2\)"):
        ragged(0, 1, values=(value,)).check("mentions", below=2)


def test_whole_tables_pass_the_check() -> None:
    assert TABLES.check() is TABLES


@pytest.mark.parametrize("end", [-1, 2])
def test_a_fact_about_no_phrase_is_damage(end: int) -> None:
    facts = replace(TABLES.facts, object=np.array([end], np.int32))
    with pytest.raises(IndexDamagedError, match="phrase outside"):
        replace(TABLES, facts=facts).check()


@pytest.mark.parametrize("graph", [PATH, csr([0], [], []), csr([0, 0, 0], [], [])])
def test_a_symmetric_sorted_graph_passes_the_check(graph: Csr) -> None:
    assert graph.check() is graph


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (csr([0, 1, 2], [1, 0], [1]), "2 columns and 1 weights"),
        (csr([0, 1, 2], [1, 0], [0, 0]), "above 0"),
        (csr([0, 1, 2], [1, 0], [-1, -1]), "above 0"),
        (csr([0, 1, 2], [1, 0], [np.nan, np.nan]), "finite"),
        (csr([0, 1, 2], [1, 0], [np.inf, np.inf]), "finite"),
        (csr([0, 2, 4], [1, 1, 0, 0], [1, 1, 1, 1]), "ascend"),
        (csr([0, 2, 3, 4], [2, 1, 0, 0], [1, 1, 1, 1]), "ascend"),
        (csr([0, 1], [0], [1]), "self-loops"),
        (csr([0, 1, 1], [1], [1]), "not symmetric"),
        (csr([0, 1, 2], [1, 0], [1, 2]), "not symmetric"),
        (csr([0, 1, 2], [2, 0], [1, 1]), "points outside"),
    ],
)
def test_a_broken_promise_of_a_graph_is_named(graph: Csr, said: str) -> None:
    with pytest.raises(HippoError, match=said):
        graph.check()


def test_a_graph_that_a_caller_got_wrong_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        csr([0, 1, 1], [1], [1]).check()
