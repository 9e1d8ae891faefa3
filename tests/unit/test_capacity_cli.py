"""plan index: what people and programs see, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_index import index_of

from hippogpu.cli import app
from hippogpu.testing.cli import run_verb


def planned(*words: str) -> dict[str, Any]:
    ran = run_verb(app, "plan", "index", *words, "--json")
    assert (ran.code, ran.err) == (0, "")
    value: dict[str, Any] = json.loads(ran.out)
    return value


def test_a_plan_is_one_object_whose_sums_are_those_of_its_parts() -> None:
    value = planned("--passages", "1000000", "--device", "gpu:24")
    assert value["disk"]["bytes"] == sum(value["disk"]["files"].values())
    assert value["memory"]["bytes"] == sum(value["memory"]["arrays"].values())
    assert value["disk"]["files"]["fact_vectors"] == 12_200_000 * 384 * 4 + 128
    assert value["toml"].startswith("[index]")


def test_people_see_each_array_stage_method_and_device() -> None:
    ran = run_verb(app, "plan", "index", "--passages", "1000000")
    assert ran.code == 0
    for name in ("fact_vectors", "synonyms", "hippo2", "gpu, 80 GB", 'fact_vectors = "float16"'):
        assert name in ran.out


def test_a_plan_like_an_index_is_of_that_index(tmp_path: Path) -> None:
    index_of(tmp_path / "x.hippo")
    value = planned("--like", str(tmp_path / "x.hippo"))
    assert (value["passages"], value["encoder"]["width"]) == (5, 32)
    larger = planned("--like", str(tmp_path / "x.hippo"), "--passages", "500")
    assert larger["counts"]["phrases"] == 100 * value["counts"]["phrases"]


def test_a_plan_of_a_corpus_has_its_passages_and_texts(tmp_path: Path) -> None:
    rows = [{"_id": f"p{i}", "title": f"T{i}", "text": f"Text {i}"} for i in range(40)]
    corpus, records = tmp_path / "c.jsonl", tmp_path / "o.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    records.write_text(
        "".join(
            json.dumps({"_id": f"p{i}", "entities": [], "triples": [[f"a{i}", "is", "b"]]}) + "\n" for i in range(40)
        )
    )
    value = planned("--corpus", str(corpus), "--openie", str(records))
    assert value["passages"] == 40
    assert value["counts"]["statements"] == 40
    assert 40 * 9 <= value["counts"]["passages_bytes"] <= 40 * 11
    assert planned("--corpus", str(corpus), "--extractor", "none")["proportions"].endswith("texts alone")


def test_settings_of_a_configuration_change_the_sizes(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[index]\nfact_vectors = "int8"\n')
    value = planned("--passages", "1000", "--config", str(tmp_path / "c.toml"))
    assert value["disk"]["files"]["fact_vectors"] == 12_200 * 384 + 128
    assert value["disk"]["files"]["fact_scales"] == 12_200 * 4 + 128


def test_rates_change_the_times(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("near_gflops = 1000\n")
    slow, quick = planned("--passages", "1000"), planned("--passages", "1000", "--rates", str(tmp_path / "r.toml"))
    seconds = [{stage["name"]: stage["seconds"] for stage in value["stages"]} for value in (slow, quick)]
    assert seconds[1]["synonyms"] < seconds[0]["synonyms"]
    assert seconds[1]["encode"] == seconds[0]["encode"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "For how many passages"),
        (["--passages", "0"], "1 to"),
        (["--passages", "10", "--device", "abacus"], "no device 'abacus'"),
        (["--passages", "10", "--encoder", "st:mine"], "not known here"),
        (["--passages", "10", "--rates", "no.toml"], "cannot be read"),
        (["--passages", "10", "--rates", "no.toml", "--measure"], "Give one of them"),
        (["--passages", "10", "--like", "a", "--corpus", "b"], "Give one of them"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_next_step(words: list[str], message: str) -> None:
    ran = run_verb(app, "plan", "index", *words)
    assert ran.code == 2
    assert message in ran.err


def test_a_configuration_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[planets]\nmars = 1\n")
    ran = run_verb(app, "plan", "index", "--passages", "10", "--config", str(tmp_path / "c.toml"))
    assert (ran.code, "planets" in ran.err) == (2, True)


def test_a_folder_that_is_no_index_is_named(tmp_path: Path) -> None:
    ran = run_verb(app, "plan", "index", "--like", str(tmp_path))
    assert ran.code != 0
    assert str(tmp_path) in ran.err


def test_a_machine_is_measured_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hippogpu.capacity.measuring._SECONDS", 0.001)
    monkeypatch.setattr("hippogpu.capacity.measuring._NODES", 1000)
    monkeypatch.setattr("hippogpu.capacity.measuring._KEYS", 500)
    value = planned("--passages", "1000", "--encoder", "hashing", "--measure", "-q")
    usual = planned("--passages", "1000", "--encoder", "hashing")
    assert value["rates"]["read_gbs"] != usual["rates"]["read_gbs"]
    assert all(rate >= 0 for rate in value["rates"].values())
