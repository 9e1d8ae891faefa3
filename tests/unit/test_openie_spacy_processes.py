"""Worker processes: nothing is lost when one dies, and none is left behind. They run a stub in spaCy's place."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from hippogpu.errors import ExtractionError
from hippogpu.openie import spacy_processes
from hippogpu.openie.spacy_model import Model
from hippogpu.openie.spacy_processes import Workers
from hippogpu.types import Passage, Record

MODEL = Model("stub", "stub", "1", "en")
STUB = """
import os, sys
from hippogpu.openie.spacy_worker import serve
from hippogpu.types import Record

def read(passages):
    print("a library's chatter")
    if any(passage.text == "die" for passage in passages):
        sys.stderr.write("the last words")
        sys.stderr.flush()
        os._exit(7)
    return [Record(passage.id, (), (passage.text,)) for passage in passages]

serve(lambda: read)
"""


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_processes, "_PROGRAM", STUB)


def numbered(start: int, stop: int) -> list[Passage]:
    return [Passage(f"p{i}", "", f"text {i}") for i in range(start, stop)]


def answers(records: Iterator[Record]) -> dict[str, tuple[str, ...]]:
    return {record.passage_id: record.entities for record in records}


def test_every_passage_gets_one_record_whatever_its_characters() -> None:
    passages = [*numbered(0, 9), Passage("\ud800", "", "a\0b\udfff\nc")]
    with Workers(MODEL, 2) as workers:
        records = list(workers.read(iter([passages[:3], passages[3:4], passages[4:]])))
    assert len(records) == len(passages)
    assert answers(iter(records)) == {passage.id: (passage.text,) for passage in passages}


def test_more_than_a_pipe_holds_goes_through_both_ways() -> None:
    passages = [Passage(str(i), "", "x" * 100_000) for i in range(5)]
    with Workers(MODEL, 1) as workers:
        assert len(list(workers.read(iter([passages, passages])))) == 10


def test_batches_are_taken_as_they_are_read() -> None:
    taken = iter(range(100))
    with Workers(MODEL, 1) as workers:
        next(workers.read([passage] for passage in numbered(0, 100) if next(taken) >= 0))
        assert next(taken) == 1


def test_a_worker_that_is_killed_loses_no_passage() -> None:
    def batches(workers: Workers) -> Iterator[list[Passage]]:
        yield numbered(0, 3)
        os.kill(workers.pids()[0], signal.SIGKILL)
        yield numbered(3, 6)

    with Workers(MODEL, 1) as workers:
        assert answers(workers.read(batches(workers))).keys() == {f"p{i}" for i in range(6)}


def test_a_passage_that_kills_its_process_gives_an_error_and_its_neighbours_go_on() -> None:
    passages = [*numbered(0, 1), Passage("d", "", "die"), *numbered(1, 2)]
    with Workers(MODEL, 1) as workers:
        records = {record.passage_id: record for record in workers.read(iter([passages]))}
    assert records["d"].error == "the spaCy process died at this passage (exit code 7: the last words)"
    assert [records[id_].entities for id_ in ("p0", "p1")] == [("text 0",), ("text 1",)]


def test_a_process_that_ends_before_it_is_ready_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_processes, "_PROGRAM", "raise SystemExit('no memory for it')")
    with Workers(MODEL, 1) as workers, pytest.raises(ExtractionError, match=r"exit code 1: no memory for it"):
        list(workers.read(iter([numbered(0, 2)])))


def test_leaving_the_context_ends_the_processes() -> None:
    with Workers(MODEL, 2) as workers:
        next(workers.read(iter([numbered(0, 2), numbered(2, 4)])))
        pids = workers.pids()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
