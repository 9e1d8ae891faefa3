"""The verb index with a language model: what is asked, resumed, refused and told, against a server that can fail."""

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
from hippogpu.openie.prompts import VERSION
from hippogpu.testing.cli import Ran, run_verb
from hippogpu.testing.llm_answers import Answer, completion, error
from hippogpu.testing.llm_faults import Faults
from hippogpu.testing.llm_reader import last_user_message, read_passage
from hippogpu.testing.llm_server import LlmServer

NAMES = ("Ada Lovelace", "Charles Babbage", "Erik Hort", "Montebello", "Rockland County")
PASSAGES = [
    {"_id": f"p{n}", "title": f"Note {n}", "text": f"{NAMES[n % 5]} met {NAMES[(n + 2) % 5]} in {NAMES[(n + 3) % 5]}."}
    for n in range(20)
]
PATIENT = "[llm]\nattempts = 2\n[extract]\nquarantine_after = 2\n"


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer() as running:
        yield running


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(PATIENT)
    path = Path("corpus.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    return path


def words(url: str, *more: str) -> list[str]:
    asked = ["--extractor", "http", "--url", url, "--model", "rule"] if url else []
    return ["index", "x.hippo", "corpus.jsonl", *asked, "--encoder", "hashing:32", "--config", "c.toml", "-q", *more]


def index(url: str, *more: str) -> tuple[Ran, dict[str, Any]]:
    ran = run_verb(app, *words(url, *more), "--json")
    return ran, json.loads(ran.out) if ran.out else {}


def asked(server: LlmServer) -> int:
    return server.counts.requests


def test_a_corpus_is_read_and_indexed_and_a_second_run_asks_nothing(corpus: Path, server: LlmServer) -> None:
    ran, value = index(server.url)
    assert (ran.code, value["extraction"]["extracted"], value["counts"]["passages"], asked(server)) == (0, 20, 20, 40)
    again, value = index(server.url)
    assert (again.code, value["changed"], asked(server)) == (0, False, 40)


def test_the_report_tells_requests_tokens_and_speed(corpus: Path, server: LlmServer) -> None:
    model = index(server.url)[1]["extraction"]["model"]
    assert (model["name"], model["endpoint"], model["requests"], model["cost"]) == ("rule", server.url, 40, None)
    assert model["tokens"]["prompt"] > model["tokens"]["cached"] > 0
    assert model["tokens"]["completion"] > 0


def test_the_report_tells_the_cost_where_prices_are_configured(corpus: Path, server: LlmServer) -> None:
    Path("c.toml").write_text("[llm]\nprompt_price = 1.0\ncached_price = 1.0\ncompletion_price = 10.0\n")
    model = index(server.url)[1]["extraction"]["model"]
    tokens = model["tokens"]
    assert model["cost"] == pytest.approx((tokens["prompt"] + 10 * tokens["completion"]) / 1e6, abs=1e-6)


def test_joint_prompting_takes_fewer_prompt_tokens(corpus: Path, server: LlmServer) -> None:
    both = index(server.url, "--extract-only")[1]["extraction"]["model"]["tokens"]["prompt"]
    shutil.rmtree("x.hippo")
    joint = index(server.url, "--extract-only", "--prompting", "joint")[1]["extraction"]["model"]["tokens"]["prompt"]
    assert 0.5 < joint / both < 0.75


def test_extract_only_builds_nothing_and_the_build_needs_no_model(corpus: Path, server: LlmServer) -> None:
    ran, value = index(server.url, "--extract-only")
    assert (ran.code, "generation" in value, Path("x.hippo/CURRENT").exists()) == (0, False, False)
    server.close()
    built, value = index("")
    assert (built.code, value["generation"], value["extraction"]["reused"]) == (0, 1, 20)


def test_a_passage_keeps_the_record_it_has_and_another_extractor_reads_only_the_rest(
    corpus: Path, server: LlmServer
) -> None:
    server.model = lambda body: "No." if "Note 1" in last_user_message(body) else read_passage(body)
    failed = len(index(server.url, "--extract-only")[1]["extraction"]["failed"])
    ran, value = index("", "--extractor", "spacy")
    assert (ran.code, value["extraction"]["extracted"], value["counts"]["without_record"]) == (0, failed, 0)
    readers = {name.split("-")[0]: count for name, count in value["extraction"]["records"].items()}
    assert readers == {"llm": 20 - failed, "spacy": failed}


def test_logs_that_were_lost_are_read_again_and_what_cannot_be_is_told(corpus: Path, server: LlmServer) -> None:
    index(server.url)
    shutil.rmtree("x.hippo/openie")
    Path("e.jsonl").write_text('{"passages": ["p1", "p2"]}\n')
    server.model = lambda body: "No." if "Note 1" in last_user_message(body) else read_passage(body)
    ran, value = index(server.url, "--edges", "e.jsonl")
    told = value["extraction"]
    assert (ran.code, told["extracted"], len(told["failed"]), value["counts"]["without_record"]) == (1, 9, 11, 11)


def test_damaged_lines_of_the_log_are_told_and_read_again_by_a_run_that_only_extracts(
    corpus: Path, server: LlmServer
) -> None:
    index(server.url, "--extract-only")
    (log,) = Path("x.hippo/openie").glob("*.jsonl")
    log.write_bytes(log.read_bytes().replace(b"Montebello", b"Montebella", 1))
    ran, value = index(server.url, "--extract-only")
    assert (ran.code, len(value["extraction"]["log_damage"]), value["extraction"]["extracted"]) == (1, 1, 1)


def test_a_model_named_like_another_extractor_is_not_taken_for_it(corpus: Path, server: LlmServer) -> None:
    asked = ["--extractor", "http", "--url", server.url, "--model", "spacy-x-1", "--extract-only"]
    run_verb(app, *words(""), *asked)
    assert index("")[1]["extraction"]["records"].keys() == {f"llm-spacy-x-1-two-step-{VERSION}"}


def test_an_extractor_that_has_read_nothing_is_not_the_one_used_last(corpus: Path, server: LlmServer) -> None:
    url = server.url
    server.close()
    assert index(url)[0].code == 1
    assert index("")[1]["extraction"]["extractor"].startswith("spacy-")


def test_tokens_that_a_server_does_not_count_have_no_cost(corpus: Path, server: LlmServer) -> None:
    Path("c.toml").write_text("[llm]\nprompt_price = 1.0\ncompletion_price = 10.0\n")
    server.rule = lambda asked: Answer(200, completion(asked, read_passage(asked.body), 0) | {"usage": None})
    model = index(server.url, "--extract-only")[1]["extraction"]["model"]
    assert (model["uncounted"], model["cost"]) == (40, None)


def test_every_id_of_one_text_is_counted_in_every_run(corpus: Path, server: LlmServer) -> None:
    rows = [{**PASSAGES[0], "_id": f"q{n}"} for n in range(5)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = (index(server.url)[1]["extraction"] for _ in range(2))
    assert [(told["extracted"], told["reused"], sum(told["records"].values())) for told in (first, second)] == [
        (1, 4, 5),
        (0, 5, 5),
    ]


def test_a_corpus_of_which_nothing_could_be_read_is_read_again_by_the_next_run(corpus: Path) -> None:
    row = {
        "_id": "d",
        "text": "Dresden ist die Hauptstadt des Freistaates Sachsen und liegt an der Elbe, die durch sie fließt.",
    }
    corpus.write_text(json.dumps(row) + "\n")
    runs = [index("") for _ in range(2)]
    assert [(ran.code, len(value["extraction"]["failed"])) for ran, value in runs] == [(1, 1), (1, 1)]
    assert all("German" in ran.err for ran, _ in runs)


@pytest.mark.parametrize("option", [("--url", "http://localhost:1/v1"), ("--model", "m")])
def test_half_of_a_model_is_a_wrong_call_and_not_spacys_work(corpus: Path, option: tuple[str, str]) -> None:
    ran, _ = index("", *option)
    assert (ran.code, "--url URL and --model NAME" in ran.err) == (2, True)


def test_a_folder_that_cannot_be_written_is_named(corpus: Path) -> None:
    ran = run_verb(app, "index", "/proc/x.hippo", "corpus.jsonl", "--encoder", "hashing:32")
    assert (ran.code, "'/proc/x.hippo' cannot be written" in ran.err) == (1, True)


def test_a_search_tells_of_passages_that_were_not_read(corpus: Path, server: LlmServer) -> None:
    server.model = lambda body: "No." if "Note 1\n" in last_user_message(body) else read_passage(body)
    index(server.url)
    assert "1 of 20 passages have no facts" in run_verb(app, "search", "x.hippo", "Who met Ada?").err


def test_the_configured_model_is_taken_without_being_named(corpus: Path, server: LlmServer) -> None:
    Path("c.toml").write_text(f'[llm.extract]\nurl = "{server.url}"\nmodel = "rule"\n')
    assert index("")[1]["extraction"]["extractor"].startswith("llm-rule-two-step-")


def test_requests_that_fail_for_ever_cost_their_passages_alone(corpus: Path, server: LlmServer) -> None:
    server.rule = lambda asked: Answer(500, error("No.")) if "Note 1\n" in last_user_message(asked.body) else None
    ran, value = index(server.url)
    failed = {item["id"] for item in value["extraction"]["failed"]}
    assert (ran.code, value["extraction"]["extracted"] + len(failed)) == (1, 20)
    assert failed == {"p1"}
    assert all("status 500" in item["reason"] for item in value["extraction"]["failed"])
    assert (value["counts"]["passages"], value["counts"]["without_record"]) == (20, 1)
    server.rule = None
    healed, value = index(server.url)
    assert (healed.code, value["extraction"]["extracted"], value["counts"]["without_record"]) == (0, len(failed), 0)


def test_what_keeps_failing_is_left_alone_until_it_is_asked_for(corpus: Path, server: LlmServer) -> None:
    server.model = lambda body: "No." if "Note 1" in last_user_message(body) else read_passage(body)
    failed = len(index(server.url)[1]["extraction"]["failed"])
    index(server.url)
    before = asked(server)
    ran, value = index(server.url)
    assert (ran.code, len(value["extraction"]["quarantined"]), asked(server)) == (1, failed, before)
    server.model = read_passage
    ran, value = index(server.url, "--retry-failed")
    assert (ran.code, value["extraction"]["extracted"]) == (0, failed)
    assert failed == 11


def test_a_server_that_is_not_there_ends_the_run_with_one_line(corpus: Path, server: LlmServer) -> None:
    url = server.url
    server.close()
    ran, _ = index(url)
    assert ran.code == 1
    assert re.search(r"error: \d+ passages in a row had no reply", ran.err)
    assert not [line for log in Path("x.hippo/openie").glob("*.jsonl") for line in log.read_text().splitlines()]


def test_a_wrong_key_is_named_by_its_variable_and_never_shown(
    corpus: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIPPOGPU_LLM_API_KEY", "sk-wrong-key")
    server.key = "sk-right-key"
    ran, _ = index(server.url)
    assert (ran.code, "HIPPOGPU_LLM_API_KEY" in ran.err) == (1, True)
    kept = b"".join(path.read_bytes() for path in Path("x.hippo").rglob("*") if path.is_file())
    assert "sk-wrong" not in ran.err
    assert b"sk-wrong" not in kept


def test_replies_that_were_paid_for_are_not_asked_for_again(corpus: Path, server: LlmServer) -> None:
    index(server.url, "--extract-only")
    for log in Path("x.hippo/openie").glob("*.jsonl"):
        log.unlink()
    model = index(server.url, "--extract-only")[1]["extraction"]["model"]
    assert (model["remembered"], model["tries"], asked(server)) == (40, 0, 40)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_under_way_and_the_next_run_goes_on(
    corpus: Path, server: LlmServer, number: signal.Signals
) -> None:
    Path("c.toml").write_text("[llm]\nin_flight = 2\n")
    server.faults = Faults(delay_s=0.05)
    run = subprocess.Popen(
        [sys.executable, "-m", "hippogpu", *words(server.url)[:-1]], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(lambda: server.counts.answered.total() >= 6)
    os.kill(run.pid, number)
    _, told = run.communicate(timeout=60)
    assert (run.returncode, b"Stopping" in told) == (130, True)
    server.heal()
    done = len(log_lines())
    assert 0 < done < 20
    assert asked(server) == 2 * done
    assert index(server.url)[1]["counts"]["passages"] == 20
    assert (len(log_lines()), asked(server)) == (20, 40)


def wait_for(holds: Any) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def log_lines() -> list[str]:
    (log,) = Path("x.hippo/openie").glob("*.jsonl")
    return log.read_text().splitlines()


def test_a_long_run_into_a_pipe_tells_its_pace_in_lines(
    corpus: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hippogpu.cli.output.LINE_EVERY_S", 0.0)
    ran = run_verb(app, *[word for word in words(server.url) if word != "-q"])
    assert re.search(r"extract: \d+ of 20, [\d.]+/s, tokens/s [\d,]+ in [\d,]+ out", ran.err)
