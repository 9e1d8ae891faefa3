"""The verb answer: citations, files that resume, failures that are told; against a server that can fail."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hippogpu.cli import app
from hippogpu.testing.cli import Ran, run_verb
from hippogpu.testing.llm_answers import Answer, error
from hippogpu.testing.llm_faults import Faults
from hippogpu.testing.llm_questions import question_of
from hippogpu.testing.llm_reader import last_user_message
from hippogpu.testing.llm_server import LlmServer

PEOPLE = ("Ada Lovelace", "Charles Babbage", "Erik Hort", "Oliver Badman")
PLACES = ("Montebello", "Rockland County", "Leith")
PASSAGES = [
    {"_id": f"p{n}", "title": f"Note {n}", "text": f"{PEOPLE[n % 4]} met {PEOPLE[(n + 1) % 4]} in {PLACES[n % 3]}."}
    for n in range(12)
]
RECORDS = [
    {"_id": row["_id"], "entities": [], "triples": [[PEOPLE[n % 4], "met", PEOPLE[(n + 1) % 4]]]}
    for n, row in enumerate(PASSAGES)
]
QUESTIONS = [
    {"_id": f"q{n}", "question": f"{n}: whom did {PEOPLE[n % 4]} meet?", "answer": f"Note {n}", "supporting_ids": []}
    for n in range(10)
]
PATIENT = "[llm]\nattempts = 2\n[answer]\ntries = 2\n"


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer() as running:
        yield running


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index, its corpus and its questions, made once."""
    folder = tmp_path_factory.mktemp("built")
    for name, rows in (("corpus", PASSAGES), ("openie", RECORDS), ("questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "c.toml").write_text(PATIENT)
    files = [str(folder / name) for name in ("x.hippo", "corpus.jsonl")]
    ran = run_verb(app, "index", *files, "--openie", str(folder / "openie.jsonl"), "--encoder", "hashing:32", "-q")
    assert ran.code == 0, ran.err
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, in which the test runs."""
    shutil.copytree(built, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def words(url: str, *more: str) -> list[str]:
    return ["answer", "x.hippo", "--url", url, "--model", "rule", "--config", "c.toml", "--method", "hippo2", *more]


def answer(url: str, *more: str) -> tuple[Ran, list[dict[str, Any]]]:
    ran = run_verb(app, *words(url, *more), "--json", "-q")
    return ran, [json.loads(line) for line in ran.out.splitlines()]


def to_file(url: str, *more: str) -> tuple[Ran, dict[str, Any], list[dict[str, Any]]]:
    """The outcome of a run into a file, its summary, and the lines of the file."""
    ran, printed = answer(url, "--queries", "questions.jsonl", "--output", "a.jsonl", *more)
    lines = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    return ran, printed[-1]["summary"] if printed else {}, lines


def down_for(*ids: str) -> Any:
    """A rule of a server that is broken for these questions."""
    numbers = tuple(f"{id_[1:]}:" for id_ in ids)
    return lambda asked: (
        Answer(500, error("No.")) if question_of(last_user_message(asked.body)).startswith(numbers) else None
    )


def test_an_answer_comes_with_its_citations_thought_ranking_and_costs(folder: Path, server: LlmServer) -> None:
    ran, (value, last) = answer(server.url, "Whom did Erik Hort meet?", "-k", "3")
    assert (ran.code, value["shown"], len(value["passages"]), value["failure"]) == (0, 3, 3, None)
    assert {cited["id"] for cited in value["cited"]} <= {passage["id"] for passage in value["passages"]}
    assert value["answer"] == value["cited"][-1]["title"]
    assert (value["requests"], value["tokens"]["completion"] > 0, value["ms"]["read"] > 0) == (1, True, True)
    assert (last["summary"]["answered"], last["summary"]["tokens"]) == (1, value["tokens"])


def test_people_see_the_answer_its_passages_and_the_ranking(folder: Path, server: LlmServer) -> None:
    ran = run_verb(app, *words(server.url, "Whom did Erik Hort meet?", "-k", "3"))
    assert re.search(r"Answer: Note \d+\nThought: .*\n  \[\d\] Note \d+ \(p\d+\)", ran.out)
    assert ran.out.count("Note") >= 5


def test_what_the_passages_do_not_say_is_said_and_not_made_up(folder: Path, server: LlmServer) -> None:
    server.model = lambda body: '{"thought": "Nothing on it.", "passages": [], "answer": ""}'
    ran, (value, last) = answer(server.url, "Who won?")
    assert (ran.code, value["answer"], value["failure"], last["summary"]["unanswerable"]) == (0, None, None, 1)
    assert "Answer: the passages do not say." in run_verb(app, *words(server.url, "Who won?")).out


def test_answers_that_cite_nothing_and_those_that_say_unknown_are_counted(folder: Path, server: LlmServer) -> None:
    counts = []
    for said in ("Note 1", "Unknown", ""):
        server.model = lambda body, said=said: json.dumps({"thought": "See [2].", "passages": [], "answer": said})
        _, (value, last) = answer(server.url, f"Who said {said}?")
        counts.append(tuple(last["summary"][name] for name in ("answered", "uncited", "unanswerable", "said_unknown")))
        assert (value["cited"], value["said_unknown"]) == ([], said == "Unknown")
    assert counts == [(1, 1, 0, 0), (0, 0, 1, 1), (0, 0, 1, 0)]


def test_every_question_of_a_file_is_answered_in_order_and_measured(folder: Path, server: LlmServer) -> None:
    ran, (*values, last) = answer(server.url, "--queries", "questions.jsonl", "--batch", "4")
    summary = last["summary"]
    assert (ran.code, [value["query_id"] for value in values]) == (0, [f"q{n}" for n in range(10)])
    assert summary["em"] == pytest.approx(sum(value["em"] for value in values) / 10)
    assert summary["f1"] == pytest.approx(sum(value["f1"] for value in values) / 10)
    assert summary["f1"] > summary["em"] >= 0
    table = run_verb(app, *words(server.url, "--queries", "questions.jsonl", "-q")).out
    assert f"{100 * summary['f1']:.2f}" in table


def test_a_file_that_is_whole_is_left_as_it_is(folder: Path, server: LlmServer) -> None:
    to_file(server.url)
    before, asked = Path("a.jsonl").read_bytes(), server.counts.requests
    ran, summary, _ = to_file(server.url)
    assert (ran.code, summary["earlier"], server.counts.requests) == (0, 10, asked)
    assert Path("a.jsonl").read_bytes() == before


def test_a_file_that_was_cut_is_gone_on_with_and_measured_whole(folder: Path, server: LlmServer) -> None:
    _, first, lines = to_file(server.url)
    half = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines[:4])
    Path("a.jsonl").write_text(half + '{"query_id": "q4", "ans')
    ran, summary, again = to_file(server.url)
    assert (ran.code, summary["earlier"], summary["em"], summary["f1"]) == (0, 4, first["em"], first["f1"])
    assert [line["query_id"] for line in again] == [f"q{n}" for n in range(10)]


@pytest.mark.parametrize("more", [["-k", "2"], ["--ircot"], ["--method", "dense"]])
def test_a_file_of_another_run_is_refused_and_kept(folder: Path, server: LlmServer, more: list[str]) -> None:
    to_file(server.url)
    before = Path("a.jsonl").read_bytes()
    refused, _, _ = to_file(server.url, *more)
    assert (refused.code, "another run" in refused.err, Path("a.jsonl").read_bytes()) == (2, True, before)
    assert to_file(server.url, *more, "--force")[0].code == 0


@pytest.mark.parametrize(
    ("settings", "more", "told"),
    [
        *(
            ("", ("--model", "other"), "model:"),
            ("[answer]\npassage_characters = 100\n", (), "answer.passage_characters:"),
        ),
        *(("[answer]\ntries = 5\n", (), "answer.tries:"), ("[llm.answer]\ntemperature = 0.5\n", (), "temperature:")),
        ("[llm.filter]\ntemperature = 0.5\n", (), "filter by:"),
        ("[search]\nfilter_fails = 'drop'\n", (), "filter_fails:"),
    ],
)
def test_answers_by_another_model_or_by_other_settings_of_one_are_another_run(
    folder: Path, server: LlmServer, settings: str, more: tuple[str, ...], told: str
) -> None:
    filtered = ("--filter", "llm")
    to_file(server.url, *filtered)
    given = "" if "[answer]" in settings else PATIENT[PATIENT.index("[answer]") :]
    Path("c.toml").write_text("[llm]\nattempts = 2\n" + given + settings)
    refused, _, _ = to_file(server.url, *filtered, *more)
    assert (refused.code, told in refused.err) == (2, True), refused.err


def test_answers_to_other_prompts_are_another_run(
    folder: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_file(server.url)
    monkeypatch.setattr("hippogpu.cli.answer_run.VERSION", "later")
    refused, _, _ = to_file(server.url)
    assert (refused.code, "prompts:" in refused.err) == (2, True)


def test_rankings_that_a_model_filtered_otherwise_are_another_run(folder: Path, server: LlmServer) -> None:
    line = ["search", *words(server.url, "--filter", "llm", "--queries", "questions.jsonl", "--output", "r.jsonl")[1:]]
    assert run_verb(app, *line).code == 0
    Path("c.toml").write_text(PATIENT.replace("tries = 2", "tries = 3"))
    refused = run_verb(app, *line)
    assert (refused.code, "3 tries" in refused.err) == (2, True)


def test_a_file_that_is_none_of_ours_is_refused(folder: Path, server: LlmServer) -> None:
    Path("a.jsonl").write_text("my notes\n")
    ran, _ = answer(server.url, "--queries", "questions.jsonl", "--output", "a.jsonl")
    assert (ran.code, "a.jsonl.identity" in ran.err, Path("a.jsonl").read_text()) == (2, True, "my notes\n")


def test_questions_that_fail_are_listed_left_out_and_asked_again_by_the_next_run(
    folder: Path, server: LlmServer
) -> None:
    server.rule = down_for("q3")
    ran, summary, lines = to_file(server.url)
    assert (ran.code, summary["failed"], summary["answered"], len(lines)) == (1, 1, 9, 9)
    assert [(one["id"], "status 500" in one["reason"]) for one in summary["failures"]] == [("q3", True)]
    server.rule = None
    ran, summary, lines = to_file(server.url)
    assert (ran.code, summary["earlier"], summary["failed"], lines[-1]["query_id"]) == (0, 9, 0, "q3")


def test_a_failed_question_counts_as_wrong(folder: Path, server: LlmServer) -> None:
    server.model = lambda body: '{"thought": "", "passages": [], "answer": "Note 1"}'
    server.rule = down_for("q0", "q2")
    _, (*_, last) = answer(server.url, "--queries", "questions.jsonl")
    assert (last["summary"]["gold"], last["summary"]["em"], last["summary"]["failed"]) == (10, 0.1, 2)


def test_a_server_that_is_not_there_ends_the_run_with_one_line(folder: Path, server: LlmServer) -> None:
    url = server.url
    server.close()
    ran, _ = answer(url, "--queries", "questions.jsonl", "--output", "a.jsonl")
    assert (ran.code, Path("a.jsonl").read_text()) == (1, "")
    assert re.search(r"error: None of 10 questions had a reply from http", ran.err)


def test_a_model_that_never_answers_fails_each_question_with_its_words(folder: Path, server: LlmServer) -> None:
    server.model = lambda body: "I would rather not."
    ran, (*values, _) = answer(server.url, "--queries", "questions.jsonl")
    assert (ran.code, len(values)) == (1, 10)
    assert {value["failure"] for value in values} == {"the reply holds no answer ('I would rather not.') (2 tries)"}


@pytest.mark.parametrize("option", [(), ("--url", "http://localhost:1/v1"), ("--model", "m")])
def test_a_missing_model_is_named_before_anything_is_done(folder: Path, option: tuple[str, ...]) -> None:
    ran = run_verb(app, "answer", "x.hippo", "Who?", *option)
    assert (ran.code, "--url URL and --model NAME" in ran.err, "[llm] of --config" in ran.err) == (2, True, True)


def test_an_index_that_is_not_there_is_told_and_not_made(folder: Path) -> None:
    ran = run_verb(app, "answer", "y.hippo", "Who?", "--url", "http://localhost:1/v1", "--model", "m")
    assert (ran.code, "y.hippo" in ran.err, Path("y.hippo").exists()) == (1, True, False)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "QUESTION or --queries"),
        (["Who?", "--queries", "questions.jsonl"], "QUESTION or --queries"),
        (["Who?", "--output", "a.jsonl"], "--queries FILE"),
        (["Who?", "--force"], "--force is of --output"),
        (["Who?", "--steps", "3"], "--steps is of --ircot"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, more: list[str], told: str) -> None:
    ran = run_verb(app, *words("http://localhost:1/v1", *more))
    assert (ran.code, told in ran.err) == (2, True)


def test_ircot_tells_its_searches_and_what_one_alone_costs(folder: Path, server: LlmServer) -> None:
    ran, (value, last) = answer(server.url, "Whom did Erik Hort meet?", "--ircot", "--steps", "3")
    told = value["ircot"]
    assert (ran.code, value["method"], told["requests"]) == (
        0,
        "ircot-hippo2",
        len(told["steps"]) - (told["stop"] != "answer"),
    )
    assert [step["query"] for step in told["steps"][1:]] == [step["thought"] for step in told["steps"][:-1]]
    summary = last["summary"]
    assert 0 < summary["single_search_ms"] <= sum(summary["ms_a_question"].values()) - summary["ms_a_question"]["read"]


def test_a_thought_that_cannot_be_had_still_gives_an_answer_and_says_so(folder: Path, server: LlmServer) -> None:
    server.rule = lambda asked: Answer(500, error("No.")) if read_keys(asked.body) == ["thought", "answer"] else None
    ran, (value, last) = answer(server.url, "Whom did Erik Hort meet?", "--ircot")
    assert (ran.code, value["answer"] is not None, value["ircot"]["stop"]) == (1, True, "failure")
    assert (value["degraded"][:18], last["summary"]["degraded"]) == ("no further thought", 1)


def read_keys(body: Any) -> list[str]:
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    return list(schema.get("properties", {}))


def test_facts_are_filtered_by_the_model_and_the_account_is_told(folder: Path, server: LlmServer) -> None:
    ran, (*values, last) = answer(server.url, "--queries", "questions.jsonl", "--filter", "llm")
    told = last["summary"]["filter"]
    assert (ran.code, told["asked"], told["failed"]) == (0, 10, 0)
    assert 0 < told["kept"] < told["kept"] + told["dropped"]
    assert sum(len(value["facts"]) for value in values) == told["kept"]


def test_a_filter_that_fails_for_a_question_is_told_and_its_answer_given(folder: Path, server: LlmServer) -> None:
    server.rule = lambda asked: down_for("q3")(asked) if read_keys(asked.body) == ["keep"] else None
    ran, (*values, last) = answer(server.url, "--queries", "questions.jsonl", "--filter", "llm")
    assert (ran.code, last["summary"]["filter"]["failed"], last["summary"]["degraded"]) == (1, 1, 1)
    assert [value["query_id"] for value in values if value["degraded"]] == ["q3"]
    assert values[3]["answer"] is not None


@pytest.mark.parametrize(
    "more", [("--method", "hippo1"), ("--set", "link=entity", "--method", "hippo"), ("--method", "hippo1", "--ircot")]
)
def test_entities_that_could_not_be_read_are_told_and_the_answer_given(
    folder: Path, server: LlmServer, more: tuple[str, ...]
) -> None:
    server.rule = lambda asked: Answer(500, error("No.")) if read_keys(asked.body) == ["entities"] else None
    ran, (value, last) = answer(server.url, "Whom did Erik Hort meet?", "--entities", "llm", *more)
    assert (ran.code, value["answer"] is not None, last["summary"]["degraded"]) == (1, True, 1)
    assert "entities of the question could not be read" in value["degraded"]


def test_each_task_may_have_a_model_of_its_own(folder: Path, server: LlmServer) -> None:
    Path("c.toml").write_text(f'[llm]\nurl = "{server.url}"\nmodel = "big"\n[llm.filter]\nmodel = "small"\n')
    models: list[str] = []
    server.rule = lambda asked: models.append(asked.body["model"])
    run_verb(app, "answer", "x.hippo", "Whom did Ada Lovelace meet?", "--filter", "llm", "--config", "c.toml")
    assert models == ["small", "big"]


def test_replies_that_were_paid_for_are_not_asked_for_again(folder: Path, server: LlmServer) -> None:
    answer(server.url, "--queries", "questions.jsonl")
    asked = server.counts.requests
    _, (*_, last) = answer(server.url, "--queries", "questions.jsonl")
    assert (last["summary"]["remembered"], last["summary"]["tokens"]["prompt"], server.counts.requests) == (
        10,
        0,
        asked,
    )


def test_an_index_that_cannot_be_written_is_answered_from_without_remembering(folder: Path, server: LlmServer) -> None:
    logs = folder / "x.hippo" / "openie"
    for path in logs.glob("replies*"):
        path.unlink()
    (logs / "replies.sqlite").mkdir()
    ran = run_verb(app, *words(server.url, "Whom did Erik Hort meet?"))
    assert (ran.code, "Replies are not remembered" in ran.err) == (0, True)


def test_interrupted_what_was_answered_is_kept_and_the_next_run_goes_on(folder: Path, server: LlmServer) -> None:
    Path("c.toml").write_text("[llm]\nin_flight = 1\n")
    server.faults = Faults(delay_s=0.05)
    quick = ("--method", "dense")  # nothing to compile in the process of its own
    line = words(server.url, "--queries", "questions.jsonl", "--output", "a.jsonl", "--batch", "2", *quick)
    run = subprocess.Popen([sys.executable, "-m", "hippogpu", *line], stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while server.counts.answered.total() < 5:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(run.pid, signal.SIGINT)
    _, told = run.communicate(timeout=60)
    assert (run.returncode, b"Interrupted" in told) == (130, True)
    done = len(Path("a.jsonl").read_text().splitlines())
    assert 0 < done < 10
    server.heal()
    ran, summary, lines = to_file(server.url, *quick)
    assert (ran.code, summary["earlier"], [line["query_id"] for line in lines]) == (
        0,
        done,
        [f"q{n}" for n in range(10)],
    )
