"""Extractions over a faulty server that are killed at random points lose nothing and ask for nothing twice.

HIPPOGPU_KILLS sets how many kills are made (default 6; a hundred take about ten minutes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("extraction_kills.py")
ROOT = DRIVER.parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver found after its kills."""
    # A child of fork can use compiled threads only in this one of numba's layers.
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "PYTHONPATH": str(ROOT)}
    words = [str(DRIVER), str(tmp_path_factory.mktemp("kills")), os.environ.get("HIPPOGPU_KILLS", "6"), "7"]
    ran = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    value: dict[str, Any] = json.loads(ran.stdout)
    return value


@pytest.mark.timeout(3600)
def test_runs_were_really_killed_in_the_middle(found: dict[str, Any]) -> None:
    assert found["kills"] >= 6
    assert found["cut_in_extraction"] > 0


def test_the_log_holds_exactly_one_success_of_every_passage(found: dict[str, Any]) -> None:
    assert found["not_once"] == []


def test_no_passage_whose_success_was_in_the_log_was_asked_for_again(found: dict[str, Any]) -> None:
    assert found["asked_again"] == []


def test_the_index_is_that_of_an_undisturbed_run(found: dict[str, Any]) -> None:
    assert found["other_index"] == []
