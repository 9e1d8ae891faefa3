"""gpu_check and doctor on a machine without a GPU, and the counts behind the figures."""

from __future__ import annotations

import json

import pytest
from host import host_graph
from typer.testing import CliRunner

from bench.__main__ import app
from bench.gpu_check import kept
from bench.gpu_stages import stage, step_bytes
from bench.measure import spread
from hippogpu.backends.devices import find_device
from hippogpu.cli import app as verbs
from hippogpu.testing.graphs import small_graph

without_gpu = pytest.mark.skipif(find_device().device is not None, reason="a CUDA device answers here")


@without_gpu
def test_without_a_device_nothing_is_run_and_the_exit_code_is_2() -> None:
    run = CliRunner().invoke(app, ["gpu_check", "--quick"])
    assert run.exit_code == 2
    assert find_device().reason in run.output
    assert "Nothing was run" in run.output


@without_gpu
def test_doctor_says_why_no_gpu_is_used() -> None:
    found = json.loads(CliRunner().invoke(verbs, ["doctor", "--json"]).output)
    assert (found["backend"], found["gpu"], found["gpu_reason"]) == ("cpu", None, find_device().reason)


def test_a_broken_promise_is_a_failed_check_with_its_words() -> None:
    def broken() -> None:
        raise ValueError("a mass: off by 1")

    assert (kept("contract", broken).passed, kept("contract", broken).found) == (False, "ValueError: a mass: off by 1")
    assert kept("contract", lambda: None).passed


def test_the_bytes_of_a_step_are_those_of_its_arrays() -> None:
    graph = host_graph(small_graph(1000))
    matrix = sum(array.nbytes for array in graph.edges)
    assert step_bytes(graph, 4) == matrix + 3 * 4 * 1000 * 4 + 1000 * 4


def test_a_share_of_the_copy_bandwidth_is_bytes_over_time() -> None:
    assert stage("step", 4, spread([2.0]), 10**9, copy=1000.0).copy_percent == pytest.approx(50.0)
