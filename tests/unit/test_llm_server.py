"""The chat server for tests: its rule, its faults, its counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from llm_asking import SCHEMA

from hippogpu.testing.llm_faults import FAULTS, Fault, Faults
from hippogpu.testing.llm_reader import read_passage
from hippogpu.testing.llm_server import LlmServer

ROOT = Path(__file__).parents[2]
PASSAGE = "Oliver Badman\n\nOliver Badman was born in New York. He met Ada Byron of New York."


def body(text: str = PASSAGE, *properties: str, items: dict[str, Any] | None = None, **other: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Read This."}, {"role": "user", "content": text}]
    schema = {"type": "object", "properties": {name: {"type": "array", "items": items or {}} for name in properties}}
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    return {"model": "m", "messages": messages} | ({"response_format": form} if properties else {}) | other


def post(server: LlmServer, asked: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{server.url}/chat/completions", json=asked)


def test_entities_are_the_capitalised_runs_of_the_last_user_message() -> None:
    assert json.loads(read_passage(body(PASSAGE, "entities")))["entities"] == [
        *("Oliver Badman", "New York", "He", "Ada Byron"),
    ]


def test_triples_join_neighbours_of_a_sentence() -> None:
    assert json.loads(read_passage(body("Ada met Bob. Cleo left.", "triples"))) == {
        "triples": [["Ada", "is near", "Bob"]]
    }


def test_triples_are_objects_where_the_schema_wants_objects() -> None:
    items = {"type": "object", "properties": {"s": {}, "p": {}, "o": {}}}
    found = json.loads(read_passage(body("Ada met Bob.", "triples", items=items)))
    assert found == {"triples": [{"s": "Ada", "p": "is near", "o": "Bob"}]}


def test_stated_are_the_numbers_that_begin_lines() -> None:
    assert json.loads(read_passage(body("A 3. b\n1. x\n 12. y", "stated", "other"))) == {"stated": [1, 12]}


def test_without_a_schema_the_message_is_repeated() -> None:
    assert read_passage(body("Say it.")) == "Say it."


def test_other_alphabets_have_runs_where_they_have_capitals() -> None:
    assert json.loads(read_passage(body("Алиса видит Боба.", "entities"))) == {"entities": ["Алиса", "Боба"]}


def test_a_fault_depends_on_seed_request_and_try_alone() -> None:
    faults = Faults(shares={"busy": 0.5}, seed=1)
    first = [faults.befalling("a", number) for number in range(40)]
    assert first == [faults.befalling("a", number) for number in range(40)]
    assert set(first) == {"busy", None}
    assert first != [faults.befalling("b", number) for number in range(40)]
    assert first != [Faults(shares={"busy": 0.5}, seed=2).befalling("a", number) for number in range(40)]


def test_faults_come_as_often_as_their_shares_say() -> None:
    faults = Faults(shares={"busy": 0.1, "broken": 0.2}, seed=5)
    met = Counter(faults.befalling(str(number), 1) for number in range(5000))
    assert met["busy"] / 5000 == pytest.approx(0.1, abs=0.02)
    assert met["broken"] / 5000 == pytest.approx(0.2, abs=0.02)


def test_a_request_that_fails_for_ever_fails_at_every_try() -> None:
    faults = Faults(for_ever=0.3, for_ever_as="empty")
    bad = {digest for digest in map(str, range(300)) if faults.befalling(digest, 1) == "empty"}
    assert 60 < len(bad) < 120
    for number in range(2, 6):
        assert {digest for digest in map(str, range(300)) if faults.befalling(digest, number) == "empty"} == bad


@pytest.mark.parametrize("values", [{"shares": {"typo": 0.1}}, {"shares": {"busy": 0.7, "cut": 0.7}}, {"for_ever": 2}])
def test_faults_that_cannot_be_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no fault|Shares"):
        Faults.from_mapping(values)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "whitespace"])
def test_each_fault_is_what_it_says(fault: Fault) -> None:
    with LlmServer(faults=Faults(shares={fault: 1.0}, retry_after="3")) as server:
        try:
            seen: Any = post(server, body())
        except httpx.TransportError as error:
            seen = type(error).__name__
        assert server.counts.faults == {fault: 1}
    if fault in {"dropped", "cut"}:
        assert seen in {"RemoteProtocolError", "ReadError"}
    elif fault in {"busy", "broken", "unavailable"}:
        wanted = {"busy": (429, "3"), "broken": (500, None), "unavailable": (503, None)}[fault]
        assert (seen.status_code, seen.headers.get("retry-after")) == wanted
    elif fault in {"truncated", "garbled"}:
        with pytest.raises(ValueError, match=r"char|Expecting|Unterminated"):
            seen.json()
    else:
        choices = seen.json()["choices"]
        wanted_reply = {"prose": ("Sure!", "stop"), "length": (PASSAGE[:5], "length"), "empty": None}[fault]
        assert (choices and (choices[0]["message"]["content"][:5], choices[0]["finish_reason"])) == (wanted_reply or [])


def test_blanks_drip_until_the_client_leaves() -> None:
    with (
        LlmServer(faults=Faults(shares={"whitespace": 1.0}), drip=(16, 0.001)) as server,
        httpx.stream("POST", f"{server.url}/chat/completions", json=body()) as answer,
    ):
        parts = answer.iter_bytes()
        assert b"".join(next(parts) for _ in range(20)).strip() == b""


def test_a_reply_ends_at_max_tokens_of_four_characters() -> None:
    with LlmServer() as server:
        choice = post(server, body(max_tokens=3)).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (PASSAGE[:12], "length")


def test_counts_say_what_came_and_faults_can_be_healed_over_http() -> None:
    with LlmServer(faults=Faults(shares={"broken": 1.0})) as server:
        post(server, body())
        assert httpx.post(f"{server.url}/faults", json={}).json()["shares"] == {}
        post(server, body())
        post(server, body("another"))
        counts = httpx.get(f"{server.url}/counts").json()
        texts = httpx.get(f"{server.url}/texts").json()
    asked = {texts[digest]: times for digest, times in counts["asked"].items()}
    answered = {texts[digest]: times for digest, times in counts["answered"].items()}
    assert (asked, answered) == ({PASSAGE: 2, "another": 1}, {PASSAGE: 1, "another": 1})
    assert (counts["requests"], counts["statuses"]) == (3, {"500": 1, "200": 2})


def test_it_serves_as_a_process_of_its_own_until_it_is_ended() -> None:
    faults = json.dumps({"shares": {"busy": 1.0}})
    command = [sys.executable, "-m", "hippogpu.testing.llm_server", "--faults", faults]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        assert httpx.post(f"{url}/chat/completions", json=body("x", **{"response_format": SCHEMA})).status_code == 429
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
