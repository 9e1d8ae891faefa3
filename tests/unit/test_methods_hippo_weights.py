"""The learned weights: one set for each choice of evidence, as python -m bench learn wrote them."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.quality.recipe import RECIPES, read_recipe, read_yaml
from hippogpu.config import SearchConfig
from hippogpu.methods.hippo.evidence import EVIDENCE
from hippogpu.methods.hippo.weights import WEIGHTS_FILE, kinds_of, weights_for

pytest.importorskip("yaml", reason="the extra 'bench' is not installed")

CHOICES = [SearchConfig(names=names, pairs=pairs) for names, pairs in product((True, False), repeat=2)]
MEASURES = {"recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5"}


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    text = files("hippogpu.methods.hippo").joinpath(WEIGHTS_FILE).read_text(encoding="utf-8")
    value: dict[str, Any] = json.loads(text)
    return value


def test_there_are_weights_for_every_choice_of_evidence_and_no_other(written: dict[str, Any]) -> None:
    assert set(written["weights"]) == {"+".join(kinds_of(config)) for config in CHOICES}
    assert set(written["held_out"]) == set(written["weights"])


def test_each_set_weighs_its_own_kinds_and_no_other(written: dict[str, Any]) -> None:
    assert {key: "+".join(weights) for key, weights in written["weights"].items()} == {
        key: key for key in written["weights"]
    }


@pytest.mark.parametrize("config", CHOICES, ids=lambda config: "+".join(kinds_of(config)))
def test_what_the_settings_leave_out_weighs_nothing_and_the_rest_what_was_learned(
    config: SearchConfig, written: dict[str, Any]
) -> None:
    weights, learned = weights_for(config), written["weights"]["+".join(kinds_of(config))]
    assert weights.tolist() == [learned.get(kind, 0.0) for kind in EVIDENCE]
    assert [kind for kind, weight in zip(EVIDENCE, weights, strict=True) if weight] == list(kinds_of(config))


def test_only_names_and_pairs_leave_evidence_out() -> None:
    assert kinds_of(SearchConfig()) == EVIDENCE
    assert kinds_of(SearchConfig(names=False)) == tuple(kind for kind in EVIDENCE if kind != "names")
    assert kinds_of(SearchConfig(pairs=False)) == EVIDENCE[:6]


def test_the_recipe_that_the_weights_were_learned_by_is_the_one_there_is(written: dict[str, Any]) -> None:
    plan = read_yaml(RECIPES / "learn.yaml")
    assert (written["sets"], written["l2"]) == (plan["sets"], plan["l2"])


def test_every_set_that_was_learned_from_is_for_training(written: dict[str, Any]) -> None:
    assert {read_recipe(Path(name)).use for name in written["sets"]} == {"train"}


def test_every_choice_was_measured_on_held_out_questions_of_every_set(written: dict[str, Any]) -> None:
    for table in written["held_out"].values():
        assert set(table) == set(written["sets"])
        assert all(set(row) == MEASURES and all(0 <= value <= 100 for value in row.values()) for row in table.values())


def test_recall_grows_with_the_cutoff_in_every_table(written: dict[str, Any]) -> None:
    for table in written["held_out"].values():
        for row in table.values():
            assert np.all(np.diff([row[f"recall@{k}"] for k in (1, 2, 5, 10, 20)]) >= 0)
