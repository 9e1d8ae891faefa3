"""What a run is known by: the learned weights too, where they decide the order."""

from __future__ import annotations

from pathlib import Path

import pytest

from hippogpu import SearchConfig
from hippogpu.runs import identity as module
from hippogpu.runs import run_identity
from hippogpu.runs.identity import Identity, differences
from hippogpu.store import current_manifest


def known_by(made: Path, config: SearchConfig) -> Identity:
    questions = made / "questions.jsonl"
    questions.write_text('{"_id": "q", "question": "Who?"}\n')
    return run_identity(current_manifest(made), questions, config, k=5, backend="cpu")


@pytest.mark.parametrize("config", [SearchConfig(), SearchConfig(method="fusion", fuse="hippo+dense")], ids=str)
def test_weights_that_were_learned_anew_make_another_run(
    made: Path, config: SearchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = known_by(made, config)
    monkeypatch.setattr(module, "_WEIGHTS", ("methods", "hippo", "weights.py"))
    assert [line.split(":")[0] for line in differences(then, known_by(made, config))] == ["weights"]


@pytest.mark.parametrize("config", [SearchConfig(method="dense"), SearchConfig(method="fusion")], ids=str)
def test_methods_without_learned_weights_are_not_known_by_them(made: Path, config: SearchConfig) -> None:
    assert "weights" not in known_by(made, config)
