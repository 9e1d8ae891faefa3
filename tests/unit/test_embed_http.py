"""The encoder behind a server, against a real one on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from embedding_server import Reply, Seen, embedding_server, hashing_reply, vectors_reply

from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.embed.http import KEY_VARIABLE, HttpEmbedder
from hippogpu.errors import ConfigError, EncoderError
from hippogpu.testing.embedders import check_embedder


@contextmanager
def served(
    answer: Callable[[Seen], Reply], *, width: int | None = 16, batch_texts: int = 64
) -> Iterator[tuple[HttpEmbedder, list[Seen], list[float]]]:
    """An embedder, the requests its server has had, and the waits it made."""
    waits: list[float] = []
    with embedding_server(answer) as (url, requests):
        embedder = HttpEmbedder(url, "m", width=width, batch_texts=batch_texts, attempts=3, sleep=waits.append)
        try:
            yield embedder, requests, waits
        finally:
            embedder.close()


def after(failures: int, failure: Reply) -> Callable[[Seen], Reply]:
    left = iter([failure] * failures)
    return lambda seen: next(left, None) or hashing_reply(seen)


def test_http_keeps_the_promises_of_an_embedder() -> None:
    with served(hashing_reply, width=None) as (embedder, _, _):
        check_embedder(embedder)


def test_vectors_are_scaled_to_length_one_and_ordered_by_index() -> None:
    with served(hashing_reply) as (embedder, _, _):
        assert np.allclose(embedder.encode(["a", "b c"]), HashingEmbedder(16).encode(["a", "b c"]), atol=1e-6)


def test_texts_go_in_batches_to_embeddings_with_the_model() -> None:
    with served(hashing_reply, batch_texts=2) as (embedder, requests, _):
        embedder.encode(["a", "b", "c"], instruction="i ")
    assert [seen.body["input"] for seen in requests] == [["i a", "i b"], ["i c"]]
    assert {(seen.path, seen.body["model"]) for seen in requests} == {("/v1/embeddings", "m")}


def test_the_width_is_asked_for_once() -> None:
    with served(hashing_reply, width=None) as (embedder, requests, _):
        assert (embedder.width, embedder.width, len(requests)) == (16, 16, 1)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    with served(hashing_reply) as (embedder, requests, _):
        embedder.encode(["a"])
    assert requests[0].headers["authorization"] == "Bearer secret"


def test_the_name_is_the_model_without_the_address() -> None:
    with served(hashing_reply) as (embedder, _, _):
        assert embedder.name == "http:m"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_after_a_longer_wait_each_time(status: int) -> None:
    with served(after(2, Reply(status, "busy"))) as (embedder, requests, waits):
        embedder.encode(["a"])
    assert len(requests) == 3
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0


def test_retry_after_is_honoured() -> None:
    with served(after(1, Reply(429, "busy", {"Retry-After": "7"}))) as (embedder, _, waits):
        embedder.encode(["a"])
    assert waits == [7.0]


def test_attempts_are_bounded_and_the_last_answer_is_told() -> None:
    with served(lambda _: Reply(503, "out of memory")) as (embedder, requests, _):
        with pytest.raises(EncoderError, match=r"503.*out of memory.*3 attempts"):
            embedder.encode(["a"])
        assert len(requests) == 3


def test_a_refusal_is_not_repeated() -> None:
    with served(lambda _: Reply(401, "no such key")) as (embedder, requests, _):
        with pytest.raises(EncoderError, match="no such key"):
            embedder.encode(["a"])
        assert len(requests) == 1


def test_a_server_that_is_not_there_is_an_encoder_error_with_its_address() -> None:
    embedder = HttpEmbedder("http://127.0.0.1:9/v1", "m", width=2, attempts=2, sleep=lambda _: None)
    with pytest.raises(EncoderError, match=r"127\.0\.0\.1:9"):
        embedder.encode(["a"])
    embedder.close()


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (vectors_reply([[1.0] * 16]), "1 vectors for 2 texts"),
        (vectors_reply([[1.0] * 8] * 2), "not of width 16"),
        (vectors_reply([[1.0] * 16, [float("nan")] * 16]), "zero or not finite"),
        (vectors_reply([[1.0] * 16, [0.0] * 16]), "zero or not finite"),
        (vectors_reply([[1.0] * 16, [1.0] * 3]), "cannot be read"),
        (Reply(200, {"data": [{"index": 0, "embedding": [1.0] * 16}] * 2}), "2 vectors"),
        (Reply(200, {"data": [{"index": 0}, {"index": 1}]}), "cannot be read"),
        (Reply(200, "<html>"), "cannot be read"),
        (Reply(200, [1]), "cannot be read"),
    ],
)
def test_a_reply_that_is_no_table_of_vectors_is_refused(reply: Any, what: str) -> None:
    with served(lambda _: reply) as (embedder, _, _), pytest.raises(EncoderError, match=what):
        embedder.encode(["a", "b"])


@pytest.mark.parametrize(("url", "model"), [("localhost:8000", "m"), ("http://localhost", "")])
def test_an_address_without_scheme_or_model_is_a_configuration_error(url: str, model: str) -> None:
    with pytest.raises(ConfigError, match=r"http\(s\) URL and a model"):
        HttpEmbedder(url, model)


def test_the_key_is_never_shown_though_the_server_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-" + "secret" * 40
    monkeypatch.setenv(KEY_VARIABLE, key)
    reply = Reply(400, {"error": f"no such key: {key}"})
    with served(lambda _: reply) as (embedder, _, _), pytest.raises(EncoderError) as caught:
        embedder.encode(["a"])
    assert "secretsecret" not in str(caught.value)


def test_a_password_in_the_address_is_sent_and_never_shown() -> None:
    with embedding_server(lambda _: Reply(400, "no")) as (url, requests):
        embedder = HttpEmbedder(url.replace("http://", "http://ann:pa55word@"), "m", width=16)
        with pytest.raises(EncoderError) as caught:
            embedder.encode(["a"])
        embedder.close()
    assert requests[0].headers["authorization"].startswith("Basic ")
    assert "pa55word" not in str(caught.value)


def test_a_proxy_that_is_none_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "ftp://proxy:99999")
    with pytest.raises(ConfigError, match="proxy"):
        HttpEmbedder("http://localhost:1/v1", "m", width=16)
