"""The bench of opening: its steps on a small index, and what it reports of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from small_index import file_of

from bench import opening
from bench.opening_step import STEPS, main, peak_bytes
from hippogpu.testing.cli import run_verb

app = typer.Typer()
app.command("opening")(opening.opening)
app.command("other")(lambda: None)


def in_this_process(folder: Path, step: str, times: int) -> list[dict[str, Any]]:
    return [{"seconds": STEPS[step](folder), "import": 0.5, "peak": 2**20} for _ in range(times)]


def test_a_process_of_its_own_reports_each_time_and_its_peak(made: Path) -> None:
    first, second = opening._run(made, "search", 2)
    assert list(first["seconds"]) == list(second["seconds"]) == ["open", "first question", "next question", "refresh"]
    assert (first["peak"] > 2**25, first["import"] > 0, "peak" in second) == (True, True, False)


@pytest.mark.parametrize("step", list(STEPS))
def test_each_step_prints_its_times(made: Path, capsys: pytest.CaptureFixture[str], step: str) -> None:
    main(str(made), step, "2")
    times = json.loads(capsys.readouterr().out)
    assert [min(time["seconds"].values()) > 0 for time in times] == [True, True]


def test_every_step_is_reported_fresh_and_warm(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_run", in_this_process)
    ran = run_verb(app, "opening", str(made), "--fresh", "2", "--warm", "3", "--json", str(tmp_path / "out.json"))
    found = json.loads((tmp_path / "out.json").read_text())["indexes"][made.name]
    names = ["open", "first question", "next question", "refresh", "info", "verify", "verify full"]
    assert (ran.code, list(found["steps"]), found["counts"]["passages"]) == (0, names, 5)
    assert {(row["fresh_s"]["repeats"], row["warm_s"]["repeats"]) for row in found["steps"].values()} == {(2, 6)}


def test_a_damaged_index_is_not_timed(made: Path, tmp_path: Path) -> None:
    path = file_of(made, "graph_weights")
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    ran = run_verb(app, "opening", str(made), "--json", str(tmp_path / "out.json"))
    result = json.loads((tmp_path / "out.json").read_text())
    assert (ran.code, result["passed"], "indexes" in result) == (1, False, False)


def test_the_peak_is_that_of_this_process() -> None:
    before = peak_bytes()
    held = bytearray(before)
    held[::4096] = b"x" * len(held[::4096])
    assert peak_bytes() > before * 1.5
