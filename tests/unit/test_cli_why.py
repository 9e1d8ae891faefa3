"""search --why: the lines for people and the values for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_index import index_of, stating

from hippogpu.cli import app
from hippogpu.cli.why import explanation_lines, path_line
from hippogpu.testing.cli import run_verb
from hippogpu.types import Explanation, MassPath, Passage, PathNode, PathStep, SeedShare, StatedFact

PASSAGES = [
    stating("p1", "Oliver Badman|is from|Montebello", title="Oliver Badman"),
    stating("p2", "Montebello|part of|Rockland County", title="Montebello"),
    stating("p3", "Erik Hort|born in|Montebello", title="Erik Hort"),
]
QUESTION = "Where was Erik Hort born?"
THIS = Passage("p2", "Montebello", "…")


@pytest.fixture
def folder(root: Path) -> str:
    index_of(root, PASSAGES)
    return str(root)


def asked(folder: str, *more: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run_verb(app, "search", folder, *more, "--why", "--json").out.splitlines()]


def test_people_see_the_shares_and_paths_of_each_hit(folder: str) -> None:
    out = run_verb(app, "search", folder, QUESTION, "--why", "-k", "2").out
    assert "facts kept" in out
    assert "1. Erik Hort (p3)" in out
    assert "erik hort ─(mentioned in)→ [Erik Hort]" in out
    assert "erik hort ─(fact: erik hort, born in, montebello; stated in p3)→ montebello ─(mentioned in)→ [" in out


def test_no_more_than_five_hits_are_explained(root: Path) -> None:
    index_of(root, [stating(f"p{number}", f"Ada|wrote|note {number}") for number in range(7)])
    found = asked(str(root), "who wrote note 3?", "-k", "7")[0]["passages"]
    assert ["why" in passage for passage in found] == [True] * 5 + [False] * 2


def test_programs_get_shares_that_sum_to_the_score(folder: str) -> None:
    for passage in asked(folder, QUESTION, "-k", "3", "--method", "hippo2")[0]["passages"]:
        why = passage["why"]
        whole = why["own"] + why["others"] + sum(seed["mass"] for seed in why["seeds"])
        assert whole == pytest.approx(passage["score"])
        assert set(why) == {"note", "mass", "evidence", "own", "seeds", "others", "bound", "paths"}


def test_programs_get_paths_as_nodes_and_steps(folder: str) -> None:
    path = asked(folder, QUESTION, "-k", "1")[0]["passages"][0]["why"]["paths"][0]
    assert path["nodes"] == [{"phrase": "erik hort"}, {"passage": "p3", "title": "Erik Hort"}]
    assert path["steps"] == [{"edge": "mention", "weight": 1.0, "cosine": None, "facts": []}]


def test_each_question_of_a_file_is_explained(folder: str, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps({"_id": f"q{n}", "question": QUESTION + "?" * n}) + "\n" for n in range(3)))
    found = asked(folder, "--queries", str(queries), "-k", "1")
    assert [value["query_id"] for value in found] == ["q0", "q1", "q2"]
    assert all(value["passages"][0]["why"]["paths"] for value in found)


def test_a_dense_ranking_says_so_once(folder: str) -> None:
    out = run_verb(app, "search", folder, QUESTION, "--why", "--method", "dense").out
    assert out.count("ranked by dense similarity alone") == 1
    found = asked(folder, QUESTION, "--method", "dense")[0]["passages"]
    assert [passage["why"] for passage in found] == [{"note": "ranked by dense similarity alone"}] * 3


def test_passages_that_are_no_hits_are_explained_by_their_ids(folder: str) -> None:
    value = asked(folder, QUESTION, "-k", "1", "--why-of", "p2", "--why-of", "p3", "--method", "hippo2")[0]
    assert "paths" in value["passages"][0]["why"]
    assert [(one["id"], "paths" in one["why"]) for one in value["explained"]] == [("p2", True)]
    out = run_verb(app, "search", folder, QUESTION, "-k", "1", "--why-of", "p2", "--method", "hippo2").out
    assert "Montebello (p2), no hit; score 0." in out
    assert "1. " not in out.split("Montebello (p2)")[1]


def test_a_passage_that_the_index_does_not_have_is_refused(folder: str) -> None:
    ran = run_verb(app, "search", folder, QUESTION, "--why-of", "p9")
    assert (ran.code, "no passage 'p9'" in ran.err) == (2, True)


def test_without_why_nothing_is_explained(folder: str) -> None:
    value = json.loads(run_verb(app, "search", folder, QUESTION, "--json").out)
    assert not any("why" in passage for passage in value["passages"])


def test_control_characters_and_markup_of_a_passage_reach_no_terminal(root: Path) -> None:
    index_of(root, [stating("p1", "Ada|wrote|notes", title="[red]Ada\x1b[2J"), stating("p2", "x|y|z")])
    out = run_verb(app, "search", str(root), "who wrote notes?", "--why").out
    assert "\x1b" not in out
    assert "1. [red]Ada\\x1b[2J (p1)" in out


@pytest.mark.parametrize(
    "question", ["What is [/foo] in Ashwick?", "Was [bold red]Ada[/bold red] here?", "[link=x]a[/link]"]
)
def test_markup_of_a_question_is_printed_as_it_is(folder: str, question: str) -> None:
    ran = run_verb(app, "search", folder, question, "-k", "1")
    assert (ran.code, question in ran.out) == (0, True)


def test_shares_too_small_to_tell_are_left_out() -> None:
    seeds = (SeedShare("rome", 0.3), SeedShare("paris", 0.0001), SeedShare("oslo", 0.006))
    one = Explanation(THIS, 1.0, 1.0, own=0.6, seeds=seeds, others=0.0939)
    assert explanation_lines(one) == ['   its own text 60 %, seed "rome" 30 %, seed "oslo" 0.6 %, other passages 9 %']


def test_a_path_tells_of_each_step_what_joins_it() -> None:
    nodes = (
        *(PathNode("phrase", "teutberga"), PathNode("phrase", "lothair ii"), PathNode("phrase", "lothar ii")),
        *(PathNode("passage", "p7", "Lothar"), PathNode("passage", "p8"), PathNode("passage", "p2", "Montebello")),
    )
    facts = (
        *(StatedFact("lothair ii", "was married to", "teutberga", ("p5", "p6", "p9")),),
        *(StatedFact("teutberga", "left", "lothair ii", ("p5",)), StatedFact("a", "b", "c", ("p5",))),
    )
    steps = (
        *(PathStep("fact", 2.0, facts), PathStep("synonym", 0.91, cosine=0.913), PathStep("mention", 1.0)),
        *(PathStep("own", 2.5), PathStep("own", 1.0)),
    )
    assert path_line(MassPath(nodes, steps, 0.1), "p2") == (
        "teutberga ─(fact: lothair ii, was married to, teutberga; teutberga, left, lothair ii and 1 more; stated in "
        "p5, p6 and 1 more)→ lothair ii ─(synonym, cosine 0.91)→ lothar ii ─(mentioned in)→ [Lothar, p7] "
        "─(own edge, weight 2.5)→ [p8] ─(own edge, weight 1)→ [Montebello]"
    )


def test_a_predicate_that_is_a_whole_sentence_is_cut() -> None:
    step = PathStep("fact", 1.0, (StatedFact("a", "word " * 30, "c", ("p2",)),))
    nodes = (PathNode("phrase", "a"), PathNode("phrase", "c"))
    assert path_line(MassPath(nodes, (step,), 0.1), "p2") == f"a ─(fact: a, {'word ' * 12}…, c)→ c"


def test_a_fact_that_the_passage_itself_states_needs_no_source() -> None:
    step = PathStep("fact", 1.0, (StatedFact("a", "b", "c", ("p1", "p2")),))
    nodes = (PathNode("phrase", "a"), PathNode("phrase", "c"))
    assert path_line(MassPath(nodes, (step,), 0.1), "p2") == "a ─(fact: a, b, c)→ c"
