"""From a configuration to a model that can be asked, to prices and to token counts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from llm_asking import request

from hippogpu.config import LlmConfig
from hippogpu.errors import ConfigError
from hippogpu.llm import Prices, Usage, cost, open_llm, prices_of, token_counter
from hippogpu.testing.llm_server import LlmServer

OPENAI = "https://api.openai.com/v1"


def test_a_configured_server_is_asked_and_remembered(tmp_path: Path) -> None:
    with LlmServer() as server, open_llm(LlmConfig(url=server.url, model="m"), replies=tmp_path / "r.sqlite") as llm:
        assert (llm.ask([request("hi")])[0].text, llm.endpoint, llm.model) == ("hi", server.url, "m")
        assert llm.ask([request("hi")])[0].remembered


@pytest.mark.parametrize(("remember", "given"), [(False, True), (True, False)])
def test_nothing_is_kept_unless_it_is_wanted_and_there_is_a_place(tmp_path: Path, remember: bool, given: bool) -> None:
    path = tmp_path / "r.sqlite"
    config = LlmConfig(url="http://127.0.0.1:9/v1", model="m", remember=remember)
    open_llm(config, replies=path if given else None).close()
    assert not path.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [({}, "'url' and 'model'"), ({"model": "m"}, "'url' and 'model'"), ({"engine": "vllm"}, "'model', a name")],
)
def test_no_configured_model_is_a_configuration_error_that_names_the_settings(
    settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        open_llm(LlmConfig(**settings), replies=None)


def test_cached_tokens_are_a_part_of_the_prompts_and_have_their_own_price() -> None:
    assert cost(Usage(3_000_000, 1_000_000, 500_000), Prices(2.0, 0.5, 8.0)) == pytest.approx(4.0 + 0.5 + 4.0)


@pytest.mark.parametrize(
    ("settings", "prices"),
    [
        ({"url": OPENAI, "model": "gpt-4o-mini"}, Prices(0.15, 0.075, 0.6)),
        ({"url": OPENAI, "model": "gpt-4o-mini", "cached_price": 0.0}, Prices(0.15, 0.0, 0.6)),
        ({"url": OPENAI, "model": "gpt-4o-mini", "completion_price": 1.0}, Prices(0.15, 0.075, 1.0)),
        ({"url": OPENAI, "model": "gpt-4o-mini", "prompt_price": 1.0}, Prices(1.0, 1.0, 0.6)),
        ({"url": OPENAI, "model": "some-other"}, None),
        ({"url": "https://elsewhere/v1", "model": "gpt-4o-mini"}, None),
        ({"engine": "vllm", "model": "gpt-4o-mini"}, None),
        ({"url": "http://h/v1", "model": "m", "prompt_price": 0.0, "completion_price": 0.0}, Prices(0.0, 0.0, 0.0)),
        ({"url": "http://h/v1", "model": "m", "prompt_price": 1.0}, None),
    ],
)
def test_prices_are_the_configured_ones_then_the_tables_at_its_own_address(
    settings: dict[str, Any], prices: Prices | None
) -> None:
    assert prices_of(LlmConfig(**settings)) == prices


WORDS = {"[UNK]": 0, "oliver": 1, "badman": 2}
TOKENIZER = {
    "version": "1.0",
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
}


@pytest.mark.parametrize("folder", [True, False])
def test_a_tokenizer_file_counts_exactly(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(TOKENIZER))
    counter = token_counter(str(tmp_path if folder else path))
    assert (counter.exact, counter.count(["oliver badman !", "", "a\ud800"])) == (True, [3, 0, 2])


@pytest.mark.parametrize(
    ("text", "what"),
    [("{", "cannot be read"), ("{}", "no 'model'"), ("[]", "no 'model'"), ('{"model": 3}', "cannot be read")],
)
def test_a_file_that_is_no_tokenizer_is_a_configuration_error(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=what):
        token_counter(str(path))


def test_a_model_in_the_hugging_face_cache_counts_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    model = tmp_path / "models--some--model"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("abc")
    (model / "snapshots" / "abc").mkdir(parents=True)
    (model / "snapshots" / "abc" / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    counter = token_counter("some/model")
    assert (counter.name, counter.exact, counter.count(["oliver badman"])) == ("some/model", True, [2])
    assert not token_counter("some/other").exact


@pytest.mark.parametrize(
    "name",
    [
        *("", "gpt-4o-mini", "a/b/c/d", "no such folder/", f"x{os.sep}..{os.sep}y", "x" * 300, "x" * 5000, "a\0b"),
        *("a\ud800b", "模型", "org/model:tag", "a b", "..", "/", "\n", __file__, "x/" * 40 + "y.json"),
    ],
)
def test_an_unknown_tokenizer_gives_an_estimate_that_says_so(name: str) -> None:
    counter = token_counter(name)
    assert (counter.name, counter.exact, counter.count([""])) == ("estimate", False, [0])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Oliver Badman is a politician from New South Wales, who was born in 1906.", 19),
        ('{"triples":[["Oliver Badman","is a","politician"],["Oliver Badman","born in","1906"]]}', 27),
        ("Оливер Бэдмен — политик.", 10),
        ("奥利弗·巴德曼是一位政治家。", 12),
    ],
)
def test_the_estimate_is_near_what_a_tokenizer_counts(text: str, tokens: int) -> None:
    """The numbers are the o200k tokenizer's."""
    (estimated,) = token_counter().count([text])
    assert 0.9 * tokens <= estimated <= (1.1 if text.isascii() else 1.5) * tokens
