"""search with other methods, filters, links and entities, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import PASSAGES, QUERIES, RECORDS, write_lines

from hippogpu.cli import app
from hippogpu.testing.cli import Ran, run_verb
from hippogpu.testing.llm_server import LlmServer

QUESTION = QUERIES[0]["question"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("search")
    write_lines(home / "openie.jsonl", RECORDS)
    write_lines(home / "queries.jsonl", QUERIES)
    write_lines(home / "entities.jsonl", [{"question": QUESTION, "entities": ["Erik Hort"]}])
    write_lines(home / "corpus.jsonl", PASSAGES)
    words = ["index", home / "x.hippo", home / "corpus.jsonl", "--openie", home / "openie.jsonl", "-q"]
    assert run_verb(app, *map(str, words), "--encoder", "hashing:64").code == 0
    return home / "x.hippo"


def search(folder: Path, *more: str) -> Ran:
    return run_verb(app, "search", str(folder), str(QUESTION), "-k", "3", *more)


def answered(folder: Path, *more: str) -> dict[str, Any]:
    ran = search(folder, "--json", *more)
    assert ran.code == 0, ran.err
    value: dict[str, Any] = json.loads(ran.out)
    return value


def entities(folder: Path) -> str:
    return str(folder.parent / "entities.jsonl")


def test_entities_of_a_file_link_the_question(folder: Path) -> None:
    value = answered(folder, "--method", "hippo1", "--entities", entities(folder))
    assert [(row["name"], row["phrase"]) for row in value["entities"]] == [("Erik Hort", "erik hort")]
    assert (value["passages"][0]["id"], value["fallback"]) == ("p3", None)


def test_people_see_entities_and_seeds_with_why(folder: Path) -> None:
    ran = search(folder, "--method", "hippo1", "--entities", entities(folder), "--why")
    assert ("entities of the question" in ran.out, "phrase seeds" in ran.out, "facts kept" in ran.out) == (
        True,
        True,
        False,
    )


def test_a_question_that_the_file_lacks_falls_back_and_says_so(folder: Path) -> None:
    words = ("search", str(folder), "Who?", "--method", "hippo1", "--entities", entities(folder))
    assert "the given entities have none for this question" in run_verb(app, *words).out


def test_refused_lines_of_the_entities_are_listed_and_the_rest_serves(folder: Path, tmp_path: Path) -> None:
    lines = [{"question": QUESTION, "entities": ["Erik Hort"]}, {"question": "Who?", "entities": "none"}]
    ran = search(folder, "--json", "--method", "hippo1", "--entities", str(write_lines(tmp_path / "e.jsonl", lines)))
    assert (ran.code, "'entities' is not a list but text" in ran.err) == (1, True)
    assert json.loads(ran.out)["passages"][0]["id"] == "p3"


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        (("--method", "bm25"), "method", "bm25"),
        (("--method", "hippo2", "--set", "synonyms=false"), "solver", "power"),
        (("--method", "hippo2", "--set", "passage_nodes=false"), "solver", "power"),
        (("--method", "fusion", "--set", "fuse=bm25+dense"), "facts", []),
        (("--method", "hippo2", "--set", "top_facts=1", "--filter", "gap"), "filter_failure", None),
        (("--method", "hippo2", "--link", "phrase"), "facts", []),
    ],
)
def test_what_the_line_says_is_what_is_done(folder: Path, more: tuple[str, ...], key: str, value: object) -> None:
    found = answered(folder, *more)
    assert (found[key], found["passages"][0]["id"]) == (value, "p3")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--filter", "gap", "--link", "entity"), "judges facts, and link 'entity' takes none"),
        (("--solver", "diffused", "--set", "synonyms=false"), "diffused vectors are of the whole graph"),
        (("--set", "synonims=false"), "has no key 'synonims'"),
        (("--set", "synonyms"), "--set takes KEY=VALUE"),
        (("--method", "hippo1", "--set", "entities=given"), "--entities FILE"),
        (("--entities", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--filter", "llm"), "The filter 'llm' needs an address and a model"),
    ],
)
def test_wrong_calls_say_what_was_wrong(folder: Path, more: tuple[str, ...], said: str) -> None:
    ran = search(folder, *more)
    assert (ran.code in (1, 2), said in ran.err) == (True, True), ran.err


def test_a_run_goes_on_only_with_the_entities_it_began_with(folder: Path, tmp_path: Path) -> None:
    home, output = folder.parent, tmp_path / "run.trec"
    words = [
        "search",
        str(folder),
        "--queries",
        str(home / "queries.jsonl"),
        "--output",
        str(output),
        "--method",
        "hippo1",
    ]
    assert run_verb(app, *words, "--entities", entities(folder)).code == 0
    other = write_lines(tmp_path / "other.jsonl", [{"question": QUESTION, "entities": ["Montebello"]}])
    ran = run_verb(app, *words, "--entities", str(other))
    assert (ran.code, "entities by: given sha256" in ran.err) == (2, True), ran.err


def test_eval_takes_entities_of_a_file(folder: Path) -> None:
    words = ["eval", str(folder), "--queries", str(folder.parent / "queries.jsonl"), "--method", "hippo1", "--json"]
    ran = run_verb(app, *words, "--entities", entities(folder))
    value = json.loads(ran.out.splitlines()[0])
    assert (ran.code, value["method"], list(value["fallbacks"].values())) == (0, "hippo1", [1])


def test_a_language_model_filters_facts_and_names_entities(folder: Path) -> None:
    with LlmServer() as server:
        model = ("--url", server.url, "--model", "rule", "--method", "hippo2")
        filtered = answered(folder, *model, "--filter", "llm")
        linked = answered(folder, *model, "--link", "entity", "--entities", "llm")
    assert (filtered["filter_failure"], linked["fallback"]) == (None, None)
    assert "Erik Hort" in [row["name"] for row in linked["entities"]]


def test_a_server_that_is_not_there_fails_the_filter_and_the_ranking_comes_with_all_facts(folder: Path) -> None:
    with LlmServer() as server:
        url = server.url
    impatient = folder.parent / "c.toml"
    impatient.write_text("[llm]\nattempts = 1\n[answer]\ntries = 1\n")
    model = ("--url", url, "--model", "rule", "--config", str(impatient))
    found = answered(folder, *model, "--method", "hippo2", "--filter", "llm")
    assert (bool(found["filter_failure"]), found["fallback"], len(found["facts"])) == (True, None, 3)
