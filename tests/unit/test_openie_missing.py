"""Extraction of what the log lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hippogpu.errors import ExtractionError, UsageError
from hippogpu.openie import ExtractionLog, ExtractionProgress, ExtractionReport, extract_missing
from hippogpu.text import content_key
from hippogpu.types import Drop, Passage, Record, Triple, Usage

PASSAGES = [Passage(id_, "T", f"text {id_}") for id_ in "abc"]


class Fake:
    """Says one triple of every passage, but fails the ids it is told to and stops after so many."""

    name = "fake"
    answers_by_id = True

    def __init__(self, *, failing: str = "", stop_after: int = 99, silent: str = "") -> None:
        self.failing, self.stop_after, self.silent = failing, stop_after, silent
        self.seen: list[str] = []

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        for passage in passages:
            if len(self.seen) == self.stop_after:
                raise KeyboardInterrupt
            self.seen.append(passage.id)
            if passage.id in self.failing:
                yield Record(passage.id, (), error="down")
            elif passage.id not in self.silent:
                yield Record(passage.id, (Triple("s", "p", passage.id),), (), (Drop("odd", "x"),))


def run(
    tmp_path: Path, passages: Iterable[Passage], extractor: Fake, *, retry_failed: bool = False
) -> ExtractionReport:
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        return extract_missing(passages, extractor, log, quarantine_after=2, retry_failed=retry_failed)


def test_a_second_run_extracts_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, PASSAGES, Fake())[:4] == (3, 0, (), {"odd": 3})
    again = Fake()
    assert run(tmp_path, iter(PASSAGES), again)[:4] == (0, 3, (), {})
    assert again.seen == []


def test_a_failed_passage_is_listed_and_tried_again_on_the_next_run(tmp_path: Path) -> None:
    assert run(tmp_path, PASSAGES, Fake(failing="b"))[:4] == (2, 0, (("b", "down"),), {"odd": 2})
    again = Fake()
    assert run(tmp_path, PASSAGES, again)[:4] == (1, 2, (), {"odd": 1})
    assert again.seen == ["b"]


def test_what_was_finished_before_an_interruption_is_not_extracted_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, PASSAGES, Fake(stop_after=2))
    again = Fake()
    run(tmp_path, PASSAGES, again)
    assert again.seen == ["c"]


def test_one_text_under_two_ids_is_extracted_once(tmp_path: Path) -> None:
    extractor = Fake()
    assert run(tmp_path, [*PASSAGES, PASSAGES[0]._replace(id="z")], extractor)[:3] == (3, 1, ())
    assert extractor.seen == ["a", "b", "c"]


def test_a_renamed_passage_is_not_extracted_again(tmp_path: Path) -> None:
    run(tmp_path, PASSAGES, Fake())
    assert run(tmp_path, [PASSAGES[0]._replace(id="z")], Fake())[:2] == (0, 1)


def test_the_next_id_of_a_text_is_tried_when_the_first_one_fails(tmp_path: Path) -> None:
    twins = [PASSAGES[0]._replace(id=id_) for id_ in "xyz"]
    extractor = Fake(failing="xz")
    assert run(tmp_path, [*twins, PASSAGES[1]], extractor)[:3] == (2, 2, ())
    assert extractor.seen == ["x", "b", "y"]


def test_every_id_of_a_text_that_fails_under_all_is_listed(tmp_path: Path) -> None:
    twins = [PASSAGES[0]._replace(id=id_) for id_ in "xy"]
    assert run(tmp_path, twins, Fake(failing="xy")).failed == (("x", "down"), ("y", "down"))


def test_a_passage_without_any_record_is_a_failure(tmp_path: Path) -> None:
    assert run(tmp_path, PASSAGES, Fake(silent="b")).failed == (("b", "the extractor 'fake' gave no record"),)


def test_a_record_of_another_passage_is_an_error(tmp_path: Path) -> None:
    class Wrong(Fake):
        def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
            yield from (Record("other", ()) for _ in passages)

    with pytest.raises(ExtractionError, match="passage 'other'"):
        run(tmp_path, PASSAGES, Wrong())


def test_one_id_twice_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'a' came twice.*distinct"):
        run(tmp_path, [PASSAGES[0], PASSAGES[0]], Fake())


def test_progress_is_told_after_each_record(tmp_path: Path) -> None:
    told: list[ExtractionProgress] = []
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        extract_missing(PASSAGES, Fake(failing="b"), log, on_progress=told.append)
    assert [so_far[:3] for so_far in told] == [(1, 0, 0), (1, 0, 1), (2, 0, 1)]


def test_a_text_that_failed_in_so_many_runs_is_left_alone_and_listed(tmp_path: Path) -> None:
    for _ in range(2):
        run(tmp_path, PASSAGES, Fake(failing="b"))
    third = Fake()
    report = run(tmp_path, PASSAGES, third)
    assert (report.quarantined, report.failed, third.seen) == ((("b", "down (2 failed runs)"),), (), [])


def test_a_text_that_was_left_alone_is_tried_again_when_asked(tmp_path: Path) -> None:
    for _ in range(2):
        run(tmp_path, PASSAGES, Fake(failing="b"))
    assert run(tmp_path, PASSAGES, Fake(), retry_failed=True)[:4] == (1, 2, (), {"odd": 1})


def test_a_text_that_is_tried_again_and_fails_counts_on(tmp_path: Path) -> None:
    for _ in range(4):
        run(tmp_path, PASSAGES, Fake(failing="b"), retry_failed=True)
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        assert log.outcomes().failed == {log_key("b"): (4, "down")}


def test_the_failures_of_one_run_under_several_ids_are_one_attempt(tmp_path: Path) -> None:
    twins = [PASSAGES[0]._replace(id=id_) for id_ in "xy"]
    run(tmp_path, twins, Fake(failing="xy"))
    assert run(tmp_path, twins, Fake(failing="xy")).quarantined == ()


def test_a_run_that_is_told_to_stop_finishes_what_it_began_and_counts_the_rest(tmp_path: Path) -> None:
    extractor = Fake()
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        report = extract_missing(PASSAGES, extractor, log, stop=lambda: len(extractor.seen) == 2)
    assert (report.done, report.untouched, extractor.seen) == (2, 1, ["a", "b"])


def test_tokens_are_summed_over_the_run_and_told_on_the_way(tmp_path: Path) -> None:
    class Counted(Fake):
        def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
            yield from (replace(record, usage=Usage(10, 4, 2)) for record in super().extract(passages))

    told: list[ExtractionProgress] = []
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        assert extract_missing(PASSAGES, Counted(), log, on_progress=told.append).usage == (30, 12, 6)
    assert [so_far.usage.completion for so_far in told] == [2, 4, 6]


def test_another_id_of_a_text_is_not_tried_where_the_answer_does_not_hang_on_it(tmp_path: Path) -> None:
    class Reading(Fake):
        answers_by_id = False

    twins = [PASSAGES[0]._replace(id=id_) for id_ in "xyz"]
    extractor = Reading(failing="xyz")
    report = run(tmp_path, twins, extractor)
    assert (extractor.seen, [id_ for id_, _ in report.failed]) == (["x"], ["x", "y", "z"])


def test_an_outage_is_a_failure_but_no_attempt(tmp_path: Path) -> None:
    class Down(Fake):
        def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
            yield from (Record(passage.id, (), error="no server", outage=True) for passage in passages)

    for _ in range(5):
        assert run(tmp_path, PASSAGES[:1], Down()).failed == (("a", "no server"),)
    assert run(tmp_path, PASSAGES[:1], Fake()).done == 1


def test_progress_counts_every_id_of_a_text(tmp_path: Path) -> None:
    told: list[ExtractionProgress] = []
    twins = [PASSAGES[0]._replace(id=id_) for id_ in "xyz"]
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        extract_missing([*twins, PASSAGES[1]], Fake(failing="b"), log, on_progress=told.append)
    assert told[-1].ids == 4


def test_the_report_tells_what_this_run_read_by_length(tmp_path: Path) -> None:
    row = run(tmp_path, PASSAGES, Fake(failing="b")).by_length[0]
    assert (row.passages, row.failed, row.triples, row.words) == (3, 1, 2, 4)


def test_damaged_lines_and_a_torn_tail_of_the_log_are_told(tmp_path: Path) -> None:
    run(tmp_path, PASSAGES, Fake())
    path = tmp_path / "m.jsonl"
    path.write_bytes(path.read_bytes().replace(b"text", b"next", 1).replace(b'"a"', b'"x"', 1)[:-20])
    report = run(tmp_path, PASSAGES, Fake())
    assert (report.done, len(report.damage), report.torn is not None) == (2, 1, True)


def log_key(id_: str) -> str:
    return content_key(f"T\ntext {id_}")
