"""Replies that are remembered."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_asking import SCHEMA, request

from hippogpu.errors import IndexFormatError, StoredIndexError, UsageError
from hippogpu.llm import Failure, Message, Reply, ReplyCache, Request, Usage
from hippogpu.llm.cache import request_key

ROOT = Path(__file__).parents[2]
HERE = {"model": "m", "endpoint": "http://h/v1"}
TEXTS = ["", "plain", "a\ud800b", "\x00", "北京 Москва", "x" * 100_000]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "replies.sqlite"


def reply(asked: Request, text: str = "said", **changes: Any) -> Reply:
    return replace(Reply(asked, text, "stop", Usage(5, 2, 3)), **changes)


def test_a_reply_comes_back_as_it_was_with_no_tries(path: Path) -> None:
    with ReplyCache(path) as cache:
        cache.put(reply(request(tag=1), tries=4), **HERE)
        asked = request(tag=2)
        assert cache.get(asked, **HERE) == Reply(asked, "said", "stop", Usage(5, 2, 3), None, 0, True)


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_survives(path: Path, text: str) -> None:
    with ReplyCache(path) as cache:
        cache.put(reply(request(text), text), **HERE)
        found = cache.get(request(text), **HERE)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize(
    ("changes", "elsewhere"),
    [
        ({"most": 201}, {}),
        ({"text": "Oliver  Badman"}, {}),
        ({"schema": SCHEMA}, {}),
        ({"temperature": 0.1}, {}),
        ({"seed": 1}, {}),
        ({}, {"model": "n"}),
        ({}, {"endpoint": "http://other/v1"}),
    ],
)
def test_all_that_is_asked_is_part_of_the_key(changes: dict[str, Any], elsewhere: dict[str, str]) -> None:
    assert request_key(request(), **HERE) != request_key(request(**changes), **HERE | elsewhere)


def test_the_roles_of_messages_are_part_of_the_key() -> None:
    user, system = (Request(None, (Message(role, "a"),), 5) for role in ("user", "system"))  # type: ignore[arg-type]
    assert request_key(user, **HERE) != request_key(system, **HERE)


def test_the_tag_and_the_order_of_a_schemas_keys_are_not() -> None:
    turned = dict(reversed(SCHEMA.items()))
    assert request_key(request(tag=1, schema=SCHEMA), **HERE) == request_key(request(tag=2, schema=turned), **HERE)


def test_a_cut_reply_is_kept_and_a_failure_is_not(path: Path) -> None:
    with ReplyCache(path) as cache:
        cache.put(reply(request("cut"), finish="length"), **HERE)
        cache.put(reply(request("bad"), "", finish="failed", failure=Failure("no")), **HERE)
        assert (len(cache), cache.get(request("bad"), **HERE)) == (1, None)


def test_the_last_reply_counts_and_a_forgotten_one_is_gone(path: Path) -> None:
    with ReplyCache(path) as cache:
        cache.put(reply(request(), "first"), **HERE)
        cache.put(reply(request(), "second"), **HERE)
        found = cache.get(request(), **HERE)
        cache.forget(request(), **HERE)
        assert (found and found.text, cache.get(request(), **HERE)) == ("second", None)


def test_neither_prompt_nor_key_lies_in_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPPOGPU_LLM_API_KEY", "sk-secret")
    with ReplyCache(path) as cache:
        cache.put(reply(request("a very long prompt")), **HERE)
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"said" in stored
    assert not any(word in stored for word in (b"sk-secret", b"very long prompt"))


PUT_AND_DIE = """
import os, signal, sys
from hippogpu.llm import Message, Reply, ReplyCache, Request
cache = ReplyCache(sys.argv[1])
for number in range(50):
    request = Request(None, (Message("user", str(number)),), 9)
    cache.put(Reply(request, "said", "stop"), model="m", endpoint="e")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_loses_no_reply(path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", PUT_AND_DIE, str(path)], cwd=ROOT, check=False)
    assert ran.returncode == -signal.SIGKILL
    with ReplyCache(path) as cache:
        assert len(cache) == 50


def test_two_writers_of_one_file_lose_no_reply(path: Path) -> None:
    with ReplyCache(path) as one, ReplyCache(path) as other:
        for number in range(20):
            (one if number % 2 else other).put(reply(request(str(number))), **HERE)
        assert (len(one), len(other)) == (20, 20)


@pytest.mark.parametrize("damage", [b"this is no database" * 300, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_file_is_moved_aside_and_told(path: Path, damage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    with ReplyCache(path) as cache:
        cache.put(reply(request()), **HERE)
        assert len(cache) == 1
        assert "replies.sqlite.damaged" in cache.notes[0]
    assert path.with_name("replies.sqlite.damaged").read_bytes() == damage


def test_damage_that_shows_later_is_moved_aside_too(path: Path) -> None:
    with ReplyCache(path) as cache:
        for number in range(200):
            cache.put(reply(request(str(number)), "x" * 500), **HERE)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 8192))
    with ReplyCache(path) as cache:
        found = [cache.get(request(str(number)), **HERE) for number in range(200)]
        assert None in found
        assert len(cache.notes) == 1
        cache.put(reply(request()), **HERE)
        assert cache.get(request(), **HERE) is not None


def test_a_file_of_a_newer_format_is_refused(path: Path) -> None:
    ReplyCache(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(IndexFormatError, match="format 99"):
        ReplyCache(path)


def test_a_path_that_cannot_be_written_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoredIndexError, match="remember = false"):
        ReplyCache(tmp_path / "file" / "replies.sqlite")


def test_a_closed_cache_stays_closed(path: Path) -> None:
    cache = ReplyCache(path)
    cache.put(reply(request()), **HERE)
    cache.close()
    cache.close()
    calls = [
        lambda: cache.put(reply(request("later")), **HERE),
        lambda: cache.get(request(), **HERE),
        lambda: cache.forget(request(), **HERE),
        lambda: len(cache),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="is closed"):
            call()
    with ReplyCache(path) as again:
        assert len(again) == 1


def test_a_link_in_place_of_the_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoredIndexError, match="link"):
        ReplyCache(path)
    assert not (tmp_path / "elsewhere").exists()


def test_all_replies_can_be_let_go(path: Path) -> None:
    with ReplyCache(path) as cache:
        cache.put(reply(request()), **HERE)
        cache.clear()
        assert (len(cache), cache.get(request(), **HERE)) == (0, None)
