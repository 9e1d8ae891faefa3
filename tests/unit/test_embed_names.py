"""Encoders by name."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from hippogpu.embed import embedder_from_name
from hippogpu.errors import ConfigError, MissingExtraError


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("minilm", "all-MiniLM-L6-v2@53aa5117"),
        ("hashing", "hashing-256"),
        ("hashing:64", "hashing-64"),
        ("http:http://localhost:8000/v1#BAAI/bge-m3", "http:BAAI/bge-m3"),
        ("http:https://host/v1#m", "http:m"),
        ("http://localhost:8000/v1#m", "http:m"),
        ("https://host/v1#m", "http:m"),
    ],
)
def test_a_name_opens_its_encoder(spec: str, name: str) -> None:
    assert embedder_from_name(spec).name == name


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "MiniLM",
        "st",
        "st:",
        "hashing:",
        "hashing:x",
        "http:m",
        "http://host/v1",
        "bge",
        "vllm",
        "vllm:",
        "vllm:?window=9",
    ],
)
def test_another_name_is_a_configuration_error_that_lists_the_choices(spec: str) -> None:
    with pytest.raises(ConfigError, match="minilm, st:NAME, vllm:NAME, http:URL#MODEL"):
        embedder_from_name(spec)


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_st_without_its_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"hippogpu\[st\]"):
        embedder_from_name("st:all-MiniLM-L6-v2")


def test_the_default_encoder_loads_no_torch_and_no_onnxruntime() -> None:
    code = (
        "import sys; from hippogpu.embed import default_embedder; default_embedder().encode(['a']); "
        "print(sorted({'torch', 'onnxruntime', 'pandas', 'httpx', 'janitor'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
