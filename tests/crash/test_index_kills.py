"""Writers that are killed at random points, in any step, lose nothing and leave the old index or the new one.

HIPPOGPU_KILLS sets how many kills are made (default 8; two hundred take about two minutes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("index_kills.py")
ROOT = DRIVER.parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver found after its kills."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "unit")])
    # A child of fork can use compiled threads only in this one of numba's layers.
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "PYTHONPATH": paths}
    words = [str(DRIVER), str(tmp_path_factory.mktemp("kills")), os.environ.get("HIPPOGPU_KILLS", "8"), "11"]
    ran = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    value: dict[str, Any] = json.loads(ran.stdout)
    print(json.dumps(value, indent=1))
    return value


@pytest.mark.timeout(3600)
def test_writers_were_really_killed_in_the_middle(found: dict[str, Any]) -> None:
    assert found["kills"] >= 8
    assert len(found["phases"]) > 1


def test_the_old_or_the_new_generation_is_there_after_every_kill(found: dict[str, Any]) -> None:
    assert found["neither"] == []


def test_what_is_there_is_whole(found: dict[str, Any]) -> None:
    assert found["broken"] == []


def test_no_record_that_was_in_a_log_is_lost(found: dict[str, Any]) -> None:
    assert found["lost"] == []


def test_left_alone_at_last_every_step_comes_to_the_index_of_its_survivors(found: dict[str, Any]) -> None:
    assert found["other_index"] == []
