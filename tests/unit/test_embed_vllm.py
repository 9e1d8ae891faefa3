"""The encoder over vLLM, against a fake of vLLM that writes its calls down."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from hippogpu.embed import count_truncated, embedder_from_name
from hippogpu.embed import vllm as vllm_room
from hippogpu.embed.vllm import VllmEmbedder
from hippogpu.embed.vllm_settings import VllmSettings, read_settings
from hippogpu.errors import ConfigError, EncoderError, MissingExtraError
from hippogpu.testing.embedders import check_embedder
from hippogpu.testing.vllm_api import EngineDeadError, VLLMClientError
from hippogpu.testing.vllm_pooling_api import QUERY_PROMPT, FakePooling

Open = Callable[..., VllmEmbedder]
PROMPTS = {"config_sentence_transformers.json": {"prompts": {"query": QUERY_PROMPT, "document": "d: "}}}


class NoGuard:
    """In place of the guard, whose process would outlast each of these tests."""

    said: ClassVar[list[str]] = []

    def __init__(self) -> None:
        # One that is let go in a later test says so in its own test's list.
        self._own = NoGuard.said

    def ready(self) -> None:
        self._own.append("ready")

    def close(self) -> None:
        self._own.append("closed")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Makes an encoder over a fake."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(vllm_room, "EngineGuard", NoGuard)
    monkeypatch.setattr(NoGuard, "said", [])

    def open_over(fake: FakePooling, model: str = "some/model", **values: Any) -> VllmEmbedder:
        for name, module in fake.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        return VllmEmbedder(model, **values)

    return open_over


def test_it_keeps_every_promise_of_an_encoder(opened: Open) -> None:
    check_embedder(opened(FakePooling(window=500)))


def test_the_engine_starts_with_the_first_text_not_before(opened: Open) -> None:
    fake = FakePooling()
    embedder = opened(fake)
    assert (embedder.width, embedder.window, embedder.token_counts(["a b"]), fake.calls) == (16, 12, [4], [])
    embedder.encode(["a"])
    embedder.encode(["b", "c"])
    assert fake.calls == [("start", ""), ("encode", 1), ("encode", 2)]


def test_no_text_starts_no_engine(opened: Open) -> None:
    fake = FakePooling()
    assert opened(fake).encode([]).shape == (0, 16)
    assert fake.calls == []


def test_a_text_beyond_the_window_is_cut_there_and_counted(opened: Open) -> None:
    embedder = opened(FakePooling(window=12))
    texts = ["word " * 9 + "a", "word " * 9 + "a b", "word " * 9 + "a c d"]
    rows = embedder.encode(texts)
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])
    assert count_truncated(texts, embedder) == 2


def test_many_texts_enter_the_engine_in_blocks_and_come_out_in_order(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_room, "_BLOCK_TEXTS", 7)
    fake = FakePooling()
    embedder = opened(fake)
    texts = [f"text {number}" for number in range(33)]
    rows = embedder.encode(texts)
    assert [count for what, count in fake.calls if what == "encode"] == [7, 7, 7, 7, 5]
    assert np.array_equal(rows, np.concatenate([embedder.encode([text]) for text in texts]))


def test_settings_reach_the_description_and_the_engine(opened: Open) -> None:
    fake = FakePooling()
    settings = VllmSettings(pooling="last", window=9, dtype="bfloat16", tensor_parallel=2, gpu_memory=0.5, in_flight=33)
    opened(fake, settings=settings).encode(["a"])
    assert fake.described == fake.started
    given = fake.started[0]
    assert (given.runner, given.dtype, given.max_model_len, given.max_num_seqs) == ("pooling", "bfloat16", 9, 33)
    assert (given.tensor_parallel_size, given.gpu_memory_utilization) == (2, 0.5)
    assert given.pooler_config is not None
    assert given.pooler_config.seq_pooling_type == "LAST"


def test_a_model_that_does_not_say_how_it_pools_is_refused(opened: Open) -> None:
    with pytest.raises(EncoderError, match=r"may be no encoder\. .* vllm:some/model\?pooling=mean"):
        opened(FakePooling(pooling=None))
    with pytest.raises(EncoderError, match="may be no encoder"):
        opened(FakePooling(pooling={"use_activation": True}))


def test_it_is_taken_when_the_user_says_how(opened: Open) -> None:
    assert opened(FakePooling(pooling=None), settings=VllmSettings(pooling="mean")).encode(["a"]).shape == (1, 16)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (VllmSettings(), "vllm:some/model@01234567"),
        (VllmSettings(dtype="float16", tensor_parallel=2), "vllm:some/model@01234567"),
        (VllmSettings(window=9), "vllm:some/model@01234567?window=9"),
        (VllmSettings(pooling="cls", window=9), "vllm:some/model@01234567?pooling=cls&window=9"),
    ],
)
def test_the_name_tells_whatever_makes_other_vectors(opened: Open, settings: VllmSettings, name: str) -> None:
    assert opened(FakePooling(), settings=settings).name == name


def test_a_folder_goes_by_its_last_part_and_its_weights(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"weights")
    name = opened(FakePooling(commit=None), str(tmp_path / "mine")).name
    assert name.startswith("vllm:mine@")
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"others")
    assert opened(FakePooling(commit=None), str(tmp_path / "mine")).name != name


def test_questions_get_the_models_own_prompt(opened: Open) -> None:
    embedder = opened(FakePooling(files=PROMPTS))
    assert (embedder.query_to_fact, embedder.query_to_passage) == (QUERY_PROMPT, QUERY_PROMPT)


def test_an_instruction_that_is_given_takes_its_place(opened: Open) -> None:
    embedder = opened(FakePooling(files=PROMPTS), query_to_fact="", query_to_passage="Passage for: ")
    assert (embedder.query_to_fact, embedder.query_to_passage) == ("", "Passage for: ")


@pytest.mark.parametrize("content", [{}, [], {"prompts": []}, {"prompts": {"query": 7}}, {"prompts": {"web": "x"}}])
def test_a_model_without_a_prompt_for_questions_has_none(opened: Open, content: Any) -> None:
    files = {"config_sentence_transformers.json": content}
    assert opened(FakePooling(files=files)).query_to_fact == ""


@pytest.mark.parametrize("error", [OSError("no such model."), ValueError("no such\n model"), VLLMClientError("bad")])
def test_a_model_that_vllm_cannot_read_is_refused_before_anything_starts(opened: Open, error: Exception) -> None:
    fake = FakePooling(broken=error)
    with pytest.raises(EncoderError, match=r"vLLM cannot use 'some/model' as an encoder: (no such model|bad)\. Check"):
        opened(fake)
    assert fake.calls == []


def test_an_engine_that_does_not_start_says_what_to_lower_and_leaves_no_guard(opened: Open) -> None:
    embedder = opened(FakePooling(start=RuntimeError("no room")))
    with pytest.raises(EncoderError, match=r"cannot run the encoder 'some/model': no room\. .* lower gpu_memory"):
        embedder.encode(["a"])
    assert NoGuard.said == ["closed"]


def test_a_refused_text_is_named_and_ends_the_engine(opened: Open) -> None:
    fake = FakePooling(refuse=lambda text: VLLMClientError("too odd") if text == "odd" else None)
    embedder = opened(fake)
    with pytest.raises(EncoderError, match=r"no vectors for 2 texts, the first being 'odd': too odd\. Check"):
        embedder.encode(["odd", "b"])
    assert fake.calls[-1] == ("shutdown", "")


def test_a_dead_engine_is_an_error_and_the_next_call_starts_another(opened: Open) -> None:
    deaths = [EngineDeadError("lost the device.")]
    fake = FakePooling(refuse=lambda text: deaths.pop() if deaths else None)
    embedder = opened(fake)
    with pytest.raises(EncoderError, match=r"engine of 'some/model' stopped: lost the device\. See"):
        embedder.encode(["a"])
    assert embedder.encode(["a"]).shape == (1, 16)
    assert [what for what, _ in fake.calls] == ["start", "encode", "shutdown", "start", "encode"]


def test_an_interrupt_ends_the_engine(opened: Open) -> None:
    fake = FakePooling(refuse=lambda text: KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        opened(fake).encode(["a"])
    assert fake.calls[-1] == ("shutdown", "")
    assert NoGuard.said == ["ready", "closed"]


@pytest.mark.parametrize("scale", [float("nan"), 0.0, 2.0])
def test_vectors_that_are_not_of_length_one_are_refused(opened: Open, scale: float) -> None:
    with pytest.raises(EncoderError, match="unit vectors are needed"):
        opened(FakePooling(scale=scale)).encode(["a"])


def test_closing_twice_ends_the_engine_once_and_a_text_starts_it_again(opened: Open) -> None:
    fake = FakePooling()
    embedder = opened(fake)
    embedder.close()
    before = embedder.encode(["a"])
    embedder.close()
    embedder.close()
    assert np.array_equal(embedder.encode(["a"]), before)
    assert [what for what, _ in fake.calls] == ["start", "encode", "shutdown", "start", "encode"]


def test_an_encoder_that_nobody_holds_ends_its_engine(opened: Open) -> None:
    fake = FakePooling()
    opened(fake).encode(["a"])
    gc.collect()
    assert fake.calls[-1] == ("shutdown", "")
    assert NoGuard.said == ["ready", "closed"]


def test_an_interrupt_never_reaches_the_engines_processes(opened: Open) -> None:
    fake = FakePooling()
    opened(fake).encode(["a"])
    assert signal.SIGINT in fake.blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_spelling_gives_model_and_settings(opened: Open) -> None:
    fake = FakePooling()
    opened(fake)
    embedder = embedder_from_name("vllm:a/b?window=9&gpu_memory=0.5&dtype=float16")
    assert embedder.name == "vllm:a/b@01234567?window=9"
    assert (fake.described[-1].model, fake.described[-1].gpu_memory_utilization) == ("a/b", 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("windows=9", "no setting 'windows'. Its settings are: pooling, window"),
        ("window=9&window=8", "'window' of the encoder 'vllm' is given twice"),
        ("window=nine", "'window' of the encoder 'vllm' must be a number. Got 'nine'"),
        ("window=-1", "'window' of VllmSettings must be 0"),
        ("gpu_memory=1.5", r"'gpu_memory' of VllmSettings must be in \(0, 1\]"),
        ("gpu_memory=nan", "'gpu_memory' of VllmSettings"),
        ("in_flight=0", "'in_flight' of VllmSettings must be at least 1"),
        ("pooling=max", "'pooling' of VllmSettings must be one of model, mean, cls, last"),
        ("&", "no setting ''"),
    ],
)
def test_what_is_no_setting_is_an_error_that_names_it(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_settings(text)


def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtraError, match=r"The encoder 'vllm:some/model' needs .*hippogpu\[vllm\]"):
        embedder_from_name("vllm:some/model")
