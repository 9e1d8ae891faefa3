"""How a server is reached: what is shown, what never is, and what cannot be used."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from llm_asking import SCHEMA, Served, request, served

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError
from hippogpu.llm.http import HttpEngine
from hippogpu.llm.words import masked, shortened
from hippogpu.testing.llm_answers import Answer, Asked, error
from hippogpu.testing.llm_server import LlmServer, Rule

KEY = "HIPPOGPU_LLM_API_KEY"
SECRET = "sk-/SECRET+SECRET==" * 3
LOCAL = "http://127.0.0.1:9/v1"


def echoing(before: int, status: int = 400) -> LlmServer:
    """A server that repeats the header Authorization behind so many characters."""
    return LlmServer(rule=lambda asked: Answer(status, error(f"{'x' * before} {asked.headers.get('authorization')} y")))


@contextmanager
def asked_with_a_login(rule: Rule) -> Iterator[Served]:
    """An engine whose address holds a name and a password."""
    with LlmServer(rule=rule) as server, served(url=server.url.replace("//", "//name:pa55%20word@")) as one:
        yield one._replace(server=server)


def reason(one: Served) -> str:
    (reply,) = one.ask(request())
    assert reply.failure is not None
    return reply.failure.reason


@pytest.mark.parametrize("before", [*range(120, 200, 7), 1590, 4090])
def test_no_part_of_a_key_is_left_where_the_servers_words_are_cut(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    monkeypatch.setenv(KEY, SECRET)
    with served(echoing(before)) as one:
        assert not any(SECRET[at : at + 4] in reason(one) for at in range(19))


def test_a_key_is_masked_in_an_answer_that_is_no_error_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)
    escaped = SECRET.replace("/", "\\/")
    for answer in (f'{{"wrong": "{escaped}"}}', f"<html>{SECRET}", f'["{SECRET}"]'):
        for status in (200, 400):
            with served(LlmServer(rule=lambda _, a=answer, s=status: Answer(s, a)), attempts=1) as one:
                told = reason(one)
            assert ("SECRET" in told, "***" in told) == (False, True)


def test_a_mask_comes_before_the_cut() -> None:
    assert shortened(masked("k" * 190 + SECRET * 9, [SECRET])) == "k" * 190 + "***" * 3 + "…"


def test_a_name_and_password_in_the_address_are_sent_and_not_shown() -> None:
    seen: list[str] = []

    def rule(asked: Asked) -> Answer:
        seen.append(asked.headers["authorization"])
        return Answer(404, error(f"{seen[-1]} is wrong; pa55 word; pa55%20word"))

    with asked_with_a_login(rule) as one:
        told = reason(one)
        assert one.engine.endpoint == one.server.url
    basic = b64encode(b"name:pa55 word").decode()
    assert seen == [f"Basic {basic}"]
    assert not any(secret in told for secret in (basic, "pa55"))
    assert one.server.url in told


def test_a_name_and_password_go_before_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)
    with asked_with_a_login(lambda asked: Answer(400, error(asked.headers["authorization"]))) as one:
        assert reason(one) == "status 400: Basic ***"


def test_notes_show_no_password() -> None:
    refuse = Answer(400, error("json_schema is not for name:pa55%20word"))
    with asked_with_a_login(lambda asked: refuse if "response_format" in asked.body else None) as one:
        one.ask(request(schema=SCHEMA))
        assert "pa55" not in " ".join(one.engine.notes)
        assert one.server.url in one.engine.notes[0]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:99999/v1", "port 99999"),
        ("http://127.0.0.1:-1/v1", "port -1"),
        ("http://127.0.0.1:0/v1", "port 0"),
        ("http://host:port/v1", "port"),
        ("http:///v1", "names no host"),
        ("http://:80/v1", "names no host"),
        ("http://xn--/v1", "A-label"),
        ("http://.example/v1", "label"),
        (f"http://{'a' * 80}.com/v1", "label"),
        ("http://ho\u2028st/v1", "IDNA"),
        ("http://exa mple/v1", "character"),
        ("http://h/v1?version=3", "query"),
        ("http://h/v1#top", "fragment"),
    ],
)
def test_an_address_that_no_request_can_go_to_is_refused_with_its_value(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        HttpEngine(LlmConfig(url=url, model="m"))
    assert f"Got '{url}'" in str(refused.value)


@pytest.mark.parametrize("url", ["http://name:s3c/ret@h/v1", "http://name:s3cret@h:99999/v1", "http://n:s3cret@/v1"])
def test_an_address_that_is_refused_is_shown_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        HttpEngine(LlmConfig(url=url, model="m"))
    assert not any(word in str(refused.value) for word in ("s3c", "ret@"))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SSL_CERT_FILE", "/nowhere/certificates.pem"),
        ("SSL_CERT_FILE", __file__),
        ("ALL_PROXY", "socks5://localhost:1080"),
        ("HTTP_PROXY", "foo://localhost:3128"),
        ("HTTPS_PROXY", "http://localhost:99999"),
        ("HTTP_PROXY", "http://localhost:port"),
        ("HTTP_PROXY", "http://xn--:80"),
        ("HTTP_PROXY", "http://"),
    ],
)
def test_certificates_and_proxies_that_cannot_be_used_are_named_with_their_value(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refused:
        HttpEngine(LlmConfig(url=LOCAL, model="m"))
    assert f"Correct {variable} ('{value}')" in str(refused.value).replace("or correct", "Correct")


@pytest.mark.parametrize("proxy", ["foo://name:pa55word@localhost:3128", "http://name:pa55/word@h"])
def test_a_proxys_password_is_not_shown(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(ConfigError) as refused:
        HttpEngine(LlmConfig(url=LOCAL, model="m"))
    assert "pa55" not in str(refused.value)


def test_a_proxy_without_its_scheme_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HTTP_PROXY", "127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    HttpEngine(LlmConfig(url=LOCAL, model="m")).close()
