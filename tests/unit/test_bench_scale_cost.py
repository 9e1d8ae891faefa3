"""python -m bench scale cost: programs are watched, what they took is kept, and nothing done is done again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.scale.cost import Runner, StageFailed
from bench.scale.ledger import Ledger, Stage
from bench.scale.predicting import figures_by_size, predictions
from bench.scale.stages import COMPACT, Case, building, places
from bench.scale.watching import Ran, Taken, watch
from hippogpu.config import read_configs

MIB = 2**20
LIMIT = 1024 * MIB

Watch = Callable[..., Ran]


@pytest.fixture
def watched(tmp_path: Path) -> Watch:
    def run(code: str, *, limit_bytes: int = LIMIT, **how: object) -> Ran:
        words = [sys.executable, "-c", code]
        out, err = tmp_path / "out", tmp_path / "err"
        return watch(words, out=out, err=err, cwd=tmp_path, limit_bytes=limit_bytes, **how)  # type: ignore[arg-type]

    return run


def runner(folder: Path) -> Runner:
    return Runner(folder, limit_bytes=LIMIT, say=lambda _: None)


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_memory_of_a_program_and_of_its_children_is_seen(watched: Watch) -> None:
    held = "import subprocess, sys, time; a = bytearray(100 << 20); a[::4096] = b'x' * len(a[::4096])"
    child = "import time; b = bytearray(60 << 20); b[::4096] = b'x' * len(b[::4096]); time.sleep(1)"
    ran = watched(f'{held}; subprocess.run([sys.executable, "-c", "{child}"])')
    assert ran.taken.ended == "done"
    assert 160 * MIB <= ran.taken.anon_bytes <= 220 * MIB
    assert ran.taken.peak_bytes >= ran.taken.anon_bytes


def test_a_program_that_outgrows_the_limit_is_killed_and_the_reason_told(watched: Watch) -> None:
    ran = watched("a = bytearray(300 << 20); import time; time.sleep(60)", limit_bytes=100 * MIB)
    assert ran.taken.ended == "killed"
    assert ran.taken.wall_s < 30
    assert "the limit is 0.1 GiB" in ran.stopped


def test_processor_time_is_that_of_the_program(watched: Watch) -> None:
    ran = watched("import time\nwhile time.process_time() < 1: pass")
    assert 0.8 <= ran.taken.cpu_s <= 1.5


def test_a_program_is_killed_when_asked_for_and_its_failure_is_seen(watched: Watch) -> None:
    assert watched("import time; time.sleep(60)", kill=lambda elapsed: elapsed > 0.2).taken.ended == "killed"
    failed = watched("raise SystemExit(3)")
    assert (failed.taken.ended, failed.status) == ("failed", 3)


def test_what_is_done_is_not_run_again_and_other_settings_are(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write('x'); print('{{\"said\": 1}}')"
    for digest in ("a", "a", "b"):
        assert runner(tmp_path / "work").stage("s", program(code), digest).said == {"said": 1}
    assert (tmp_path / "ran").read_text() == "xx"


def test_a_stage_that_failed_goes_on_and_its_tries_are_summed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = (
        f"import pathlib, time; time.sleep(.3); m = pathlib.Path({str(mark)!r}); there = m.exists(); m.touch()\n"
        "assert there, 'not the first time'; print('{}')"
    )
    with pytest.raises(StageFailed, match="not the first time"):
        runner(tmp_path / "work").stage("s", program(code), "a")
    stage = runner(tmp_path / "work").stage("s", program(code), "a")
    assert [one.ended for one in stage.tries] == ["failed", "done"]
    assert stage.value()["wall_s"] == pytest.approx(sum(one.wall_s for one in stage.tries), abs=0.01)
    assert stage.value()["wall_s"] > 0.6


def test_a_try_that_nobody_saw_the_end_of_stands_with_what_it_had_taken(tmp_path: Path) -> None:
    cut = Taken(2.0, 1.0, 5, 6, 7, 0.5, "2026-01-01", "cut")
    Ledger(tmp_path).note("s", Stage("a", (cut,), None))
    stage = Ledger(tmp_path).stage("s", "a")
    assert stage.tries == (cut,)
    assert stage.said is None


def test_two_programs_keep_their_stages_in_one_folder(tmp_path: Path) -> None:
    done = Taken(2.0, 1.0, 5, 6, 7, 0.5, "2026-01-01", "done")
    one, other = Ledger(tmp_path), Ledger(tmp_path)
    one.note("a", Stage("x", (done,), {}))
    other.note("b", Stage("y", (done,), {}))
    assert set(one.finished()) == set(other.finished()) == {"a", "b"}


def test_the_first_prediction_of_a_stage_stays(tmp_path: Path) -> None:
    Ledger(tmp_path).predict("s", {"extract": {"wall_s": 1.0}})
    Ledger(tmp_path).predict("s", {"extract": {"wall_s": 2.0}, "index": {"wall_s": 3.0}})
    assert Ledger(tmp_path).predicted == {"s": {"extract": {"wall_s": 1.0}, "index": {"wall_s": 3.0}}}


def test_stages_are_foretold_from_those_of_the_same_settings() -> None:
    one = Taken(2.0, 1.0, 5, 6, 7, 0.5, "2026-01-01", "done")
    said = {"seconds": {"tables": 1.5}}
    stages = {name: Stage("a", (one,), said) for name in ("100/generate", "100-compact/index", "100-exact/verify")}
    found = figures_by_size(stages, "compact")
    assert found == {
        100: {
            "generate": {"wall_s": 2.0, "anon_bytes": 5},
            "index": {"wall_s": 2.0, "anon_bytes": 5},
            "index: tables": {"wall_s": 1.5},
        }
    }


def test_predictions_follow_the_power_of_the_two_largest_sizes() -> None:
    done = {size: {"linear": {"wall_s": size / 10}, "square": {"wall_s": size**2 / 10}} for size in (10, 100, 1000)}
    found = predictions(done, 10_000)
    assert found == {"linear": {"wall_s": 1000.0}, "square": {"wall_s": 1e7}}
    assert predictions(done, 10) == {}


def test_a_prediction_from_one_size_is_in_proportion() -> None:
    assert predictions({100: {"index": {"wall_s": 3.0}}}, 1000) == {"index": {"wall_s": 30.0}}


def test_the_settings_of_a_case_are_a_configuration_and_name_its_folder(tmp_path: Path) -> None:
    case, other = Case(1000, "compact", COMPACT), Case(1000, "compact", {"fact_vectors": "int8"})
    path = tmp_path / "x.toml"
    path.write_text(case.toml(), encoding="utf-8")
    config = read_configs(path).index
    assert config is not None
    assert (config.fact_vectors, config.synonym_search) == ("int8", "cells")
    assert places(tmp_path, case).index != places(tmp_path, other).index
    assert json.dumps(building(case, places(tmp_path, case)))
