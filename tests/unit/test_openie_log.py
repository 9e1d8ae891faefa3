"""The extraction log: what survives, and what is reported."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippogpu.errors import ExtractionError, UsageError
from hippogpu.openie import ExtractionLog, verify_log
from hippogpu.openie.log_lines import encode_line
from hippogpu.types import Drop, Record, Triple, Usage

GOOD = Record("a", (Triple("Ada", "wrote", "notes"), Triple("s", "p", "o", "text")), ("Ada",), (Drop("why", "x"),))
FAILED = Record("a", (), error="timed out")
TEXT = st.text(st.characters())


def logged(path: Path, *entries: tuple[str, Record]) -> Path:
    with ExtractionLog(path) as log:
        for key, record in entries:
            log.append(key, record)
    return path


def test_records_come_back_as_they_went_in(tmp_path: Path) -> None:
    path = logged(tmp_path / "openie" / "m.jsonl", ("k1", GOOD), ("k2", FAILED))
    with ExtractionLog(path) as log:
        assert log.load() == ({"k1": GOOD, "k2": FAILED}, {"k2": 1}, ())


@given(subject=TEXT, text=st.none() | TEXT, entity=TEXT, error=st.none() | TEXT)
def test_any_text_survives_lone_surrogates_too(tmp_path_factory, subject, text, entity, error) -> None:
    record = Record("p", (Triple(subject, "\ud800", "\0\n", text),), (entity,), (Drop("r", subject),), error)
    path = logged(tmp_path_factory.mktemp("log") / "m.jsonl", ("k", record))
    with ExtractionLog(path) as log:
        assert log.load().records == {"k": record}


def test_the_last_success_wins(tmp_path: Path) -> None:
    newer = Record("b", (Triple("x", "y", "z"),))
    path = logged(tmp_path / "m.jsonl", ("k", FAILED), ("k", GOOD), ("k", newer), ("k", FAILED))
    with ExtractionLog(path) as log:
        assert log.load() == ({"k": newer}, {}, ())


def test_failures_count_while_there_is_no_success(tmp_path: Path) -> None:
    last = Record("a", (), error="refused")
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        for attempt, record in enumerate([FAILED, FAILED, last], start=1):
            log.append("k", record, attempt=attempt)
        assert log.load()[:2] == ({"k": last}, {"k": 3})
        assert log.outcomes() == (set(), {"k": (3, "refused")}, ())


def test_failures_of_one_run_under_several_ids_are_one_attempt(tmp_path: Path) -> None:
    path = logged(tmp_path / "m.jsonl", ("k", FAILED), ("k", FAILED))
    with ExtractionLog(path) as log:
        assert log.outcomes().failed == {"k": (1, "timed out")}


def test_a_line_that_does_not_say_which_attempt_it_was_counts_as_one_more(tmp_path: Path) -> None:
    body = '"key":"k","record":{"passage_id":"a","error":"down","entities":[],"triples":[],"drops":[]}}'
    line = f'{{"crc":"{zlib.crc32(body.encode()):08x}",{body}\n'
    (tmp_path / "m.jsonl").write_text(line * 2)
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        assert log.outcomes().failed == {"k": (2, "down")}


def test_a_success_says_how_many_tokens_it_took(tmp_path: Path) -> None:
    record = replace(GOOD, usage=Usage(900, 512, 80))
    path = logged(tmp_path / "m.jsonl", ("k", record))
    with ExtractionLog(path) as log:
        assert log.load().records["k"].usage == (900, 512, 80)


def test_a_log_cut_at_any_byte_opens_with_the_lines_before_the_cut(tmp_path: Path) -> None:
    whole = logged(tmp_path / "w.jsonl", ("k1", GOOD), ("k2", GOOD)).read_bytes()
    first = len(encode_line("k1", GOOD))
    for cut in range(len(whole) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole[:cut])
        with ExtractionLog(path) as log:
            assert len(log.load().records) == (cut >= first - 1) + (cut >= len(whole) - 1)
            assert (log.torn is not None) == (cut not in (0, first - 1, first, len(whole) - 1, len(whole)))


def test_a_torn_line_is_moved_aside_and_said(tmp_path: Path) -> None:
    path = logged(tmp_path / "m.jsonl", ("k", GOOD))
    with path.open("ab") as file:
        file.write(b'{"crc":"0123')
    with ExtractionLog(path) as log:
        assert log.torn == (12, tmp_path / "m.jsonl.torn")
    assert (tmp_path / "m.jsonl.torn").read_bytes() == b'{"crc":"0123\n'
    assert verify_log(path) == []


def test_appending_after_a_torn_line_loses_nothing(tmp_path: Path) -> None:
    path = logged(tmp_path / "m.jsonl", ("k1", GOOD))
    path.write_bytes(path.read_bytes() + encode_line("k2", GOOD)[:50])
    logged(path, ("k2", GOOD), ("k3", GOOD))
    with ExtractionLog(path) as log:
        assert (set(log.load().records), log.load().damage) == ({"k1", "k2", "k3"}, ())


@pytest.mark.parametrize("place", [0, 3, 10, 20, 60, 150])
def test_an_altered_line_is_reported_and_treated_as_absent(tmp_path: Path, place: int) -> None:
    path = logged(tmp_path / "m.jsonl", ("k1", GOOD), ("k2", GOOD), ("k3", GOOD))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:place] + bytes([lines[1][place] ^ 1]) + lines[1][place + 1 :]
    path.write_bytes(b"".join(lines))
    with ExtractionLog(path) as log:
        assert set(log.load().records) == {"k1", "k3"} == log.outcomes().finished
        assert [line.startswith(f"{path}:2: ") for line in log.load().damage] == [True]


def test_verifying_names_every_damaged_line_and_changes_nothing(tmp_path: Path) -> None:
    path = logged(tmp_path / "m.jsonl", ("k", GOOD))
    path.write_bytes(b"\n" + path.read_bytes() + b"\0\0\0")
    before = path.read_bytes()
    assert [line.removeprefix(f"{path}:") for line in verify_log(path)] == [
        "1: no checksum at its start",
        "3: cut short (no line break)",
    ]
    assert path.read_bytes() == before


def test_verifying_a_missing_log_says_so(tmp_path: Path) -> None:
    assert verify_log(tmp_path / "m.jsonl") == [f"{tmp_path / 'm.jsonl'}: missing"]


def test_each_line_reaches_the_system_before_append_returns(tmp_path: Path) -> None:
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        log.append("k", GOOD)
        assert log.path.read_bytes() == encode_line("k", GOOD)


def test_a_line_that_cannot_be_written_whole_is_taken_back(tmp_path: Path, monkeypatch) -> None:
    def short(file: int, data: bytes) -> int:
        if len(data) > 40:
            return real(file, bytes(data[:40]))
        raise OSError(28, "No space left on device")

    log = ExtractionLog(logged(tmp_path / "m.jsonl", ("k1", GOOD)))
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: short(file, data[:80]))
    with pytest.raises(ExtractionError, match="No space left"):
        log.append("k2", GOOD)
    monkeypatch.undo()
    log.append("k3", GOOD)
    log.close()
    assert (verify_log(log.path), len(log.path.read_bytes().splitlines())) == ([], 2)


def test_a_log_that_cannot_be_opened_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").mkdir()
    with pytest.raises(ExtractionError, match=r"m\.jsonl' cannot be written"):
        ExtractionLog(tmp_path / "m.jsonl")


def test_appending_to_a_closed_log_is_a_usage_error(tmp_path: Path) -> None:
    log = ExtractionLog(tmp_path / "m.jsonl")
    log.close()
    with pytest.raises(UsageError, match="is closed"):
        log.append("k", GOOD)


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_disk_that_fails_is_told_once_and_the_file_is_let_go(tmp_path: Path, monkeypatch) -> None:
    def append() -> None:
        with ExtractionLog(tmp_path / "m", sync_every_s=0) as log:
            monkeypatch.setattr(os, "fsync", no_room)
            log.append("k", GOOD)

    before = open_files()
    with pytest.raises(ExtractionError, match="No space left") as told:
        append()
    assert (open_files(), len(told.value.__notes__)) == (before, 1)


def test_a_log_whose_last_wait_for_the_disk_fails_says_so_and_is_let_go(tmp_path: Path, monkeypatch) -> None:
    before = open_files()
    log = ExtractionLog(tmp_path / "m")
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(ExtractionError, match="No space left"):
        log.close()
    log.close()
    assert open_files() == before


@pytest.mark.parametrize("broken", [KeyboardInterrupt, ValueError])
def test_an_error_of_the_caller_is_not_hidden_by_the_disks(tmp_path: Path, monkeypatch, broken) -> None:
    log = ExtractionLog(tmp_path / "m")
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(broken), log:
        raise broken


def test_a_line_that_cannot_be_taken_back_is_the_last_one_until_the_log_is_opened_again(
    tmp_path: Path, monkeypatch
) -> None:
    log = ExtractionLog(logged(tmp_path / "m", ("k1", GOOD)))
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: (real(file, bytes(data[:9])), no_room()))
    monkeypatch.setattr(os, "ftruncate", no_room)
    with pytest.raises(ExtractionError, match="No space left"):
        log.append("k2", GOOD)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="is closed"):
        log.append("k3", GOOD)
    logged(log.path, ("k4", GOOD))
    assert verify_log(log.path) == []


def test_a_log_that_cannot_be_opened_for_good_lets_the_file_go(tmp_path: Path, monkeypatch) -> None:
    before = open_files()
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(ExtractionError, match="cannot be written"):
        ExtractionLog(tmp_path / "m")
    assert open_files() == before


def test_a_log_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    with ExtractionLog(tmp_path / "m") as log:
        log.path.unlink()
        for read in (log.load, log.outcomes):
            with pytest.raises(ExtractionError, match="m' cannot be read"):
                read()
