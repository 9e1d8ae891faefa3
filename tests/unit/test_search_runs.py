"""Runs: resumed after a kill anywhere, in the memory of a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from run_cases import (
    BATCH,
    IDENTITY,
    QUESTIONS,
    SUFFIXES,
    Killed,
    asked,
    assert_same,
    cut_after,
    rank,
    whole_of,
    written,
)

from hippogpu.corpus import Query
from hippogpu.runs import partial_folder, record_path, write_run
from hippogpu.types import Ranking


@pytest.fixture(params=SUFFIXES)
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"run{request.param}"


@pytest.fixture
def whole(output: Path) -> Path:
    """The output of a call that was never cut."""
    return whole_of(output)


def killed_at(output: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> bool:
    """Whether a call ended at its at-th wait for the disk, the last thing before each step counts as done."""
    waits = 0

    def fsync(handle: int) -> None:
        nonlocal waits
        waits += 1
        if waits == at:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        try:
            written(output)
        except Killed:
            return True
    return False


def test_a_kill_before_any_wait_for_the_disk_costs_nothing(
    output: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1
    while killed_at(output, monkeypatch, at):
        assert written(output).questions == QUESTIONS
        assert_same(output, whole)
        output.unlink()
        record_path(output).unlink()
        at += 1
    assert at > 2 * QUESTIONS / BATCH


def test_a_run_killed_again_and_again_ends(output: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call gets one batch further before it is killed."""
    kills = 0
    while killed_at(output, monkeypatch, 5):
        kills += 1
    assert kills >= QUESTIONS // BATCH
    assert_same(output, whole)


@pytest.mark.parametrize(
    "tail", [b"", b'{"query_id": "q3", "que', b"q3 Q0 p3-0 1 0.3", b"whole line\n" * 50, b"\xff\0"]
)
@pytest.mark.parametrize("batches", [0, 1, 2, 3])
def test_a_torn_tail_is_cut_off(output: Path, whole: Path, tail: bytes, batches: int) -> None:
    cut_after(output, batches)
    name = f"part-{batches:08d}.parquet" if output.suffix == ".parquet" else "rows"
    with (partial_folder(output) / name).open("ab") as file:
        file.write(tail)
    report = written(output)
    assert (report.earlier, report.questions) == (BATCH * batches, QUESTIONS)
    assert_same(output, whole)


@pytest.mark.parametrize("output", [".trec", ".parquet"], indirect=True)
def test_a_process_that_was_killed_is_gone_on_from(output: Path, whole: Path) -> None:
    script = f"import run_cases as c; c.kill_itself(c.Path({str(output)!r}), 2)"
    run = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, check=False)
    assert (run.returncode, output.exists()) == (-signal.SIGKILL, False)
    assert written(output).earlier == 2 * BATCH
    assert_same(output, whole)


def test_an_interrupted_run_ranks_no_finished_batch_again(output: Path) -> None:
    cut_after(output, 2, KeyboardInterrupt)
    ranked: list[str] = []
    write_run(output, asked(), lambda texts: ranked.extend(texts) or rank(texts), IDENTITY, batch=BATCH)
    assert [text.split()[1] for text in ranked] == ["6:", "7:", "8:", "9:"]


def test_a_run_may_go_on_with_batches_of_another_size(output: Path, whole: Path) -> None:
    cut_after(output, 1)
    write_run(output, asked(), rank, IDENTITY, batch=7)
    assert_same(output, whole)


class Traced(Query):
    """A question that is counted while it lives."""

    alive = most = 0

    def __new__(cls, id_: str, text: str) -> Traced:
        cls.alive += 1
        cls.most = max(cls.most, cls.alive)
        return super().__new__(cls, id_, text)

    def __del__(self) -> None:
        Traced.alive -= 1


def test_at_most_one_batch_is_alive(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Traced, "most", 0)
    sizes: list[int] = []

    def in_step(texts: Sequence[str]) -> list[Ranking]:
        sizes.append(len(texts))
        assert Traced.alive == len(texts)
        return rank(texts)

    stream = (Traced(f"q{number}", f"Question {number}: x?") for number in range(400))
    assert write_run(output, stream, in_step, IDENTITY, batch=8).questions == sum(sizes) == 400
    assert Traced.most <= 8 + 1
