"""Questions of a file that does not fit: read as they are taken, repeats known in little memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from hippogpu.corpus import Query, read_queries
from hippogpu.corpus.known import KnownIds
from hippogpu.corpus.questions import count_rows, stream_queries

LINES = 10_000


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 MB of questions; the last line has an id that came before."""
    path = tmp_path_factory.mktemp("long") / "questions.jsonl"
    ids = [*range(LINES - 1), 5]
    path.write_text("".join(json.dumps({"_id": f"q{id_}", "question": "Who? " * 75}) + "\n" for id_ in ids))
    return path


def test_a_long_file_is_read_in_a_fraction_of_its_size(long_file: Path) -> None:
    tracemalloc.start()
    questions = sum(isinstance(item, Query) for item in stream_queries(long_file))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert questions == LINES - 1
    assert most < long_file.stat().st_size / 8


def test_a_repeat_at_the_end_of_a_long_file_is_refused(long_file: Path) -> None:
    (refusal,) = read_queries(long_file).refusals
    assert refusal == (f"{long_file}:{LINES}", "id 'q5' came before; the first was kept")


def test_ids_are_known_after_they_were_added_and_not_before() -> None:
    known = KnownIds()
    ids = [f"q{n}" for n in range(5000)]
    assert all(known.add(id_) for id_ in ids)
    assert not any(known.add(id_) for id_ in ids)
    assert (len(known), known.add("q5000")) == (5000, True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", '{"_id": "q1", "question": "Who?"}\n\n{\n{"_id": "q1", "question": "Who?"}'),
        ("q.json", '[{"_id": "q1", "question": "Who?"}, 3, {"_id": "q3"}]'),
        ("q.csv", "_id,question\nq1,Who?\nq2\nq3,Where?\n"),
    ],
)
def test_rows_are_counted_with_the_refused_ones(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert count_rows(tmp_path / name) == len(list(stream_queries(tmp_path / name))) == 3
