"""A process that is killed at any system call while it makes tables leaves what the next one makes them of."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from system_calls import Call, nothing, watched

from hippogpu.config import IndexConfig
from hippogpu.tables import Tabulated, tabulate
from hippogpu.text_columns import TextColumn
from hippogpu.types import Record, Triple

POINTS = 12
BUDGET = 9000
RECORDS = [
    Record(str(i), tuple(Triple(f"name {(i * k) % 37}", f"verb {k}", f"thing {(i + k) % 31}") for k in range(1, 5)))
    for i in range(33)
]


def made(scratch: Path) -> Tabulated:
    return tabulate(RECORDS, IndexConfig(), scratch=scratch, budget_bytes=BUDGET)


def killed(scratch: Path, at: int) -> bool:
    """Whether a child that dies before the call of that number died; it makes tables in the folder."""

    def die(number: int, call: Call) -> None:
        if number == at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        with watched(scratch, die):
            made(scratch)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> int:
    scratch = tmp_path_factory.mktemp("undisturbed") / "tables"
    with watched(scratch, nothing) as seen:
        made(scratch)
    return len(seen)


def test_the_tables_of_this_test_take_several_runs(tmp_path: Path, calls: int) -> None:
    assert isinstance(made(tmp_path / "tables").tables.phrases, TextColumn)
    assert len(list((tmp_path / "tables").glob("run-*.block"))) > 2
    assert calls > POINTS


def columns(of: Tabulated) -> Iterator[list[str] | np.ndarray]:
    tables = of.tables
    yield from (list(tables.phrases), list(tables.facts.predicate), list(tables.facts.text))
    yield from (tables.facts.subject, tables.facts.object, tables.mentions.values, tables.statements.values)


def test_after_a_kill_at_any_call_the_same_tables_come(tmp_path: Path, calls: int) -> None:
    sound = list(columns(tabulate(RECORDS, IndexConfig())))
    for at in np.linspace(0, calls - 1, POINTS).astype(int).tolist():
        scratch = tmp_path / f"at-{at}"
        assert killed(scratch, at)
        again = columns(made(scratch))
        assert all(np.array_equal(one, other) for one, other in zip(again, sound, strict=True)), at
