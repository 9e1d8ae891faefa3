"""search --output as a user meets it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from small_index import index_of, stating

from hippogpu import Ranking, Searcher
from hippogpu.cli import app
from hippogpu.testing.cli import Ran, run_verb

GOOD = [f'{{"_id": "q{n}", "question": "Who built engine {n}?"}}' for n in range(7)]
BAD = ['{"_id": "q7", "question": ', '{"_id": "q1", "question": "Again?"}', '{"question": "Nameless?"}']


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join([*GOOD[:4], *BAD, *GOOD[4:]]) + "\n")
    return path


def search(made: Path, queries: Path, name: str = "run.jsonl", *more: str) -> Ran:
    words = [str(made), "--queries", str(queries), "-k", "2", "--output", str(queries.with_name(name))]
    return run_verb(app, "search", *words, *more)


def without_times(path: Path) -> list[dict[str, object]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [{name: value for name, value in row.items() if name != "ms"} for row in rows]


def test_the_rows_are_those_of_search_json(made: Path, queries: Path, tmp_path: Path) -> None:
    search(made, queries)
    ran = run_verb(app, "search", str(made), "--queries", str(queries), "-k", "2", "--json")
    (tmp_path / "said.jsonl").write_text(ran.out, encoding="utf-8")
    assert without_times(tmp_path / "run.jsonl") == without_times(tmp_path / "said.jsonl")


def test_bad_lines_are_listed_and_counted_and_the_others_answered(made: Path, queries: Path) -> None:
    ran = search(made, queries, "run.trec", "--json")
    value = json.loads(ran.out)
    assert (ran.code, value["questions"], value["refused"]) == (1, 7, 3)
    assert [item["where"][-2:] for item in value["refusals"]] == [":5", ":6", ":7"]
    assert "id 'q1' came before" in ran.err


def test_a_second_call_does_nothing_and_says_so(made: Path, queries: Path) -> None:
    queries.write_text("\n".join(GOOD))
    assert search(made, queries).code == 0
    ran = search(made, queries)
    assert (ran.code, ran.out) == (0, "")
    assert "Nothing was done" in ran.err


def test_an_index_that_changed_is_another_run(made: Path, queries: Path) -> None:
    search(made, queries)
    index_of(made, [stating("p9", "Erik|met|Ada Lovelace")])
    ran = search(made, queries)
    assert (ran.code, "index: generation 1" in ran.err) == (2, True)
    assert search(made, queries, "run.jsonl", "--force", "-q").code == 1


def test_other_questions_are_another_run(made: Path, queries: Path) -> None:
    search(made, queries)
    queries.write_text("\n".join(GOOD))
    assert "queries: sha256" in search(made, queries).err


@pytest.mark.parametrize("interruption", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_is_done_and_says_how_to_go_on(
    made: Path, queries: Path, monkeypatch: pytest.MonkeyPatch, interruption: signal.Signals
) -> None:
    rank_batches, calls = Searcher.rank_batches, iter(range(9))

    def interrupted(self: Searcher, texts: Sequence[str], **settings: object) -> Iterator[list[Ranking]]:
        if next(calls) == 2:
            os.kill(os.getpid(), interruption)
        return rank_batches(self, texts, **settings)

    monkeypatch.setattr(Searcher, "rank_batches", interrupted)
    # Where the tests run in the background, interruptions are ignored from the start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ran = search(made, queries, "run.trec", "--batch", "2")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ran.code, "the same command again goes on" in ran.err) == (130, True)
    again = json.loads(search(made, queries, "run.trec", "--json").out)
    assert (again["earlier"], again["questions"]) == (4, 7)


def test_a_disk_that_refuses_is_an_error_in_words(made: Path, queries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = search(made, queries)
    assert (ran.code, "No space left" in ran.err, "goes on" in ran.err) == (1, True, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["who?", "--output", "run.trec"], "--output"),
        (["--queries", "questions.jsonl", "--output", "run.csv"], "run.csv"),
        (["--queries", "questions.jsonl", "--output", "run.trec", "--why"], "--why"),
        (["--queries", "questions.jsonl", "--output", "run.trec", "--batch", "0"], "--batch"),
        (["--queries", "questions.jsonl", "--batch", "4"], "--batch"),
        (["--queries", "questions.jsonl", "--force"], "--force"),
    ],
)
def test_options_that_mean_nothing_together_are_wrong_usage(
    made: Path, queries: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(queries.parent)
    ran = run_verb(app, "search", str(made), *words)
    assert (ran.code, said in ran.err) == (2, True)
