"""A run of ten questions with a made-up ranking, whole or cut: for the tests of runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hippogpu import Passage
from hippogpu.corpus import Query
from hippogpu.runs import Report, partial_folder, write_run
from hippogpu.types import Hit, Ranking, Refusal

SUFFIXES = (".jsonl", ".trec", ".parquet")
IDENTITY = {"index": "generation 1", "k": 3, "solver": "power"}
BATCH, QUESTIONS = 3, 10


class Killed(BaseException):
    """The process ends here."""


def asked(count: int = QUESTIONS) -> Iterator[Query | Refusal]:
    """So many questions, one refusal before the last."""
    for number in range(count):
        if number == count - 1:
            yield Refusal("q.jsonl:7", "not JSON")
        yield Query(f"q{number}", f"Question {number}: who wrote “Ünï”?")


def rank(texts: Sequence[str]) -> list[Ranking]:
    """Three passages a question, none for every fourth, with scores that need all their digits."""
    return [ranking_of(text) for text in texts]


def ranking_of(text: str) -> Ranking:
    number = int(text.split()[1].rstrip(":"))
    hits = [Hit(Passage(f"p{number}-{i}", "A title", "text"), 1 / (number + i + 3)) for i in range(3)]
    fallback = "no fact was kept" if number % 3 == 0 else None
    return Ranking(text, tuple(hits[: 0 if number % 4 == 3 else 3]), "hippo2", "power", fallback=fallback)


def written(output: Path, *, force: bool = False, identity: dict[str, object] = IDENTITY) -> Report:
    return write_run(output, asked(), rank, identity, batch=BATCH, force=force)


def whole_of(output: Path) -> Path:
    """The same run in another file, never cut."""
    path = output.with_name(f"whole{output.suffix}")
    written(path)
    return path


def assert_same(output: Path, whole: Path) -> None:
    if output.suffix == ".parquet":
        assert pq.read_table(output).equals(pq.read_table(whole))
    else:
        assert output.read_bytes() == whole.read_bytes()
    assert not partial_folder(output).exists()


def cut_after(output: Path, batches: int, error: type[BaseException] = Killed) -> None:
    """A call that ended while it ranked the batch after so many."""
    left = batches

    def until(texts: Sequence[str]) -> list[Ranking]:
        nonlocal left
        if not left:
            raise error
        left -= 1
        return rank(texts)

    with pytest.raises(error):
        write_run(output, asked(), until, IDENTITY, batch=BATCH)


def kill_itself(output: Path, batches: int) -> None:
    """Ends this process by SIGKILL while it ranks the batch after so many."""
    seen: list[int] = []

    def until(texts: Sequence[str]) -> list[Ranking]:
        seen.append(len(texts))
        if len(seen) > batches:
            os.kill(os.getpid(), signal.SIGKILL)
        return rank(texts)

    write_run(output, asked(), until, IDENTITY, batch=BATCH)
