"""Threads and processes that ask an index while a writer commits: every answer is wholly of one generation.

A short run by default; HIPPOGPU_READERS=16 asks with so many threads, and with processes, over 50 generations, on both
of numba's threading layers and on the reference backend.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
import typer

from bench import concurrent as bench
from bench import guide
from bench.concurrent import Case, Seen, checked, run_case
from hippogpu.testing.cli import run_verb

READERS = int(os.environ.get("HIPPOGPU_READERS", "0"))
GENERATIONS, PASSAGES = (50, 1000) if READERS else (8, 240)
# The layer workqueue ends a process in which two threads start parallel code at once.
SHORT = (Case(1, 4, layer="workqueue"),)
FULL = tuple(
    Case(processes, threads, backend=backend, layer=layer)
    for processes, threads in ((1, READERS), (4, 1))
    for backend, layer in (("cpu", "omp"), ("cpu", "workqueue"), ("reference", "omp"))
)

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module", params=FULL if READERS else SHORT, ids=str)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Seen]:
    folder = tmp_path_factory.mktemp("readers")
    return request.param, run_case(folder, request.param, generations=GENERATIONS, passages=PASSAGES)


def test_readers_keep_every_promise_beside_a_writer(ran: tuple[Case, Seen]) -> None:
    """Answers equal to those of their generation, to the last bit; no call of two; no way back; memory flat."""
    assert [check for check in checked(*ran, GENERATIONS) if not check.passed] == []


def test_readers_meet_several_generations(ran: tuple[Case, Seen]) -> None:
    generations = {generation for reader in ran[1].readers for generation in reader["digests"]}
    assert len(generations) > 2


def test_every_generation_answers_otherwise_than_the_one_before(ran: tuple[Case, Seen]) -> None:
    """Else a wrong generation would not show."""
    recorded = list(ran[1].recorded.values())
    assert all(one != other for one, other in pairwise(recorded))
    assert len(recorded) == GENERATIONS


def test_an_answer_of_another_generation_is_noticed(ran: tuple[Case, Seen]) -> None:
    case, seen = ran
    swapped = dict(zip(seen.recorded, [*list(seen.recorded.values())[1:], {}], strict=True))
    last = str(GENERATIONS)
    swapped[last] = seen.recorded[last]
    failed = [check.name for check in checked(case, seen._replace(recorded=swapped), GENERATIONS) if not check.passed]
    assert failed == [f"{case}: answers unlike those of their generation"]


def test_the_bench_stores_its_figures(ran: tuple[Case, Seen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, seen = ran
    monkeypatch.setattr(bench, "CASES", (case,))
    monkeypatch.setattr(bench, "run_case", lambda *_, **__: seen)
    app = typer.Typer()
    app.command()(bench.concurrent)
    done = run_verb(app, "--generations", str(GENERATIONS), "--json", str(tmp_path / "out.json"))
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (done.code, result["passed"], result["cases"][0]["threads"]) == (0, True, case.threads)
    assert len(guide.concurrent(result)) > 2
