"""Where an extraction log may lie, and how its place is made."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hippogpu.errors import ExtractionError
from hippogpu.openie import ExtractionLog
from hippogpu.types import Record, Triple

GOOD = Record("a", (Triple("Ada", "wrote", "notes"),))


def linked(path: Path, outside: Path) -> None:
    outside.write_bytes(b"dear")
    path.symlink_to(outside)


@pytest.mark.parametrize("name", ["m.jsonl", "m.jsonl.torn"])
def test_a_link_in_place_of_a_log_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "m.jsonl").write_bytes(b"torn" if "torn" in name else b"")
    (tmp_path / name).unlink(missing_ok=True)
    linked(tmp_path / name, tmp_path / "outside")
    with pytest.raises(ExtractionError, match=r"m\.jsonl' cannot be written"):
        ExtractionLog(tmp_path / "m.jsonl")
    assert (tmp_path / "outside").read_bytes() == b"dear"


def test_a_log_in_a_folder_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "openie").symlink_to(tmp_path / "outside")
    with pytest.raises(ExtractionError, match="is a symbolic link"):
        ExtractionLog(tmp_path / "openie" / "m.jsonl")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_no_log_and_is_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "m.jsonl")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ExtractionError, match=r"m\.jsonl' cannot be written"):
        ExtractionLog(tmp_path / "m.jsonl")
    assert os.listdir("/proc/self/fd") == before


def test_the_names_on_the_way_to_a_new_log_are_durable(tmp_path: Path, monkeypatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    ExtractionLog(tmp_path / "a" / "b" / "m.jsonl")._let_go()
    folders = [tmp_path, tmp_path / "a", tmp_path / "a" / "b" / "m.jsonl", tmp_path / "a" / "b"]
    assert synced == [str(path) for path in folders]


def test_lines_that_the_system_takes_in_part_come_out_whole(tmp_path: Path, monkeypatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:7]))
    with ExtractionLog(tmp_path / "m.jsonl") as log:
        log.append("k", GOOD)
        assert log.load() == ({"k": GOOD}, {}, ())
