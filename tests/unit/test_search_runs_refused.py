"""Runs: another run, a damaged one and a second writer are refused; force starts again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from hippogpu.errors import CorpusError, UsageError
from hippogpu.runs import partial_folder, record_path, write_run
from hippogpu.types import Ranking, Refusal


@pytest.fixture(params=SUFFIXES)
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"run{request.param}"


@pytest.fixture
def whole(output: Path) -> Path:
    """The output of a call that was never cut."""
    return whole_of(output)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 5}, "k: 3 then, 5 now"),
        ({"index": "generation 2"}, "index: generation 1 then, generation 2 now"),
        ({"damping": 0.5}, "damping: nothing then, 0.5 now"),
    ],
)
def test_an_unfinished_run_with_other_settings_is_refused(output: Path, change: dict[str, object], said: str) -> None:
    cut_after(output, 1)
    with pytest.raises(UsageError, match=rf"3 questions of another run \({said}\).*--force"):
        written(output, identity=IDENTITY | change)
    assert written(output).earlier == BATCH


def test_force_starts_an_unfinished_run_again(output: Path, whole: Path) -> None:
    cut_after(output, 2)
    assert written(output, force=True).earlier == 0
    assert_same(output, whole)


def test_a_finished_run_is_left_alone(output: Path) -> None:
    written(output)
    before = output.stat().st_mtime_ns
    report = write_run(output, [], lambda texts: pytest.fail("nothing is to be ranked"), IDENTITY, batch=BATCH)
    assert (report.questions, report.earlier, report.refused) == (QUESTIONS, QUESTIONS, 1)
    assert output.stat().st_mtime_ns == before


def spoil(output: Path) -> None:
    output.write_bytes(output.read_bytes() + b"x")


def forget(output: Path) -> None:
    record_path(output).unlink()


@pytest.mark.parametrize("alter", [spoil, forget])
def test_an_output_that_is_not_this_run_is_not_overwritten(output: Path, alter: Callable[[Path], None]) -> None:
    written(output)
    alter(output)
    before = output.read_bytes()
    with pytest.raises(UsageError, match=r"exists and is not this run.*--force"):
        written(output)
    assert output.read_bytes() == before
    assert not partial_folder(output).exists()


def test_a_finished_run_of_other_settings_says_what_differs_and_force_replaces_it(output: Path, whole: Path) -> None:
    written(output, identity=IDENTITY | {"k": 9})
    with pytest.raises(UsageError, match="k: 9 then, 3 now"):
        written(output)
    assert written(output, force=True).questions == QUESTIONS
    assert_same(output, whole)


def test_a_run_that_replaces_another_by_force_is_gone_on_from_without_it(output: Path, whole: Path) -> None:
    written(output, identity=IDENTITY | {"k": 9})
    with pytest.raises(Killed):
        write_run(output, asked(), killing_after_one(), IDENTITY, batch=BATCH, force=True)
    assert written(output).earlier == BATCH
    assert_same(output, whole)


def killing_after_one() -> Callable[[Sequence[str]], list[Ranking]]:
    calls = iter([rank])

    def once(texts: Sequence[str]) -> list[Ranking]:
        for call in calls:
            return call(texts)
        raise Killed

    return once


def test_two_processes_do_not_write_one_run(output: Path) -> None:
    def meanwhile(texts: Sequence[str]) -> list[Ranking]:
        with pytest.raises(UsageError, match="Another process"):
            written(output)
        return rank(texts)

    assert write_run(output, asked(), meanwhile, IDENTITY, batch=BATCH).questions == QUESTIONS


@pytest.mark.parametrize("content", [b"", b"{", b'{"identity": {}}', b'{"identity": {}, "questions": -1}', b"[]"])
def test_a_damaged_state_is_named(output: Path, content: bytes) -> None:
    cut_after(output, 1)
    (partial_folder(output) / "state.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"state\.json' is damaged.*--force"):
        written(output)


def test_rows_that_are_gone_are_named(output: Path) -> None:
    cut_after(output, 1)
    for path in partial_folder(output).glob("[rp]*"):
        path.unlink()
    with pytest.raises(UsageError, match="--force"):
        written(output)


@pytest.mark.parametrize("name", ["run.csv", "run", "gone/run.trec", "folder.trec"])
def test_an_output_that_cannot_be_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.trec").mkdir()
    with pytest.raises(UsageError, match=name.split("/")[-1]):
        written(tmp_path / name)


def test_no_question_leaves_no_file(output: Path) -> None:
    with pytest.raises(CorpusError, match=r"1 rows refused.*not JSON"):
        write_run(output, [Refusal("q.jsonl:1", "not JSON")], rank, IDENTITY, batch=BATCH)
    assert list(output.parent.iterdir()) == []
