"""Finding the files of MiniLM, without a network."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError

import pytest

from hippogpu.embed import weights
from hippogpu.embed.weights import FOLDER_VARIABLE, TOKENIZER, WEIGHTS, checked, find_minilm
from hippogpu.errors import EncoderError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def test_the_named_folder_comes_first_and_its_bytes_are_checked(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"other")
    (folder / TOKENIZER).write_bytes(b"other")
    with pytest.raises(EncoderError, match=str(folder / WEIGHTS)):
        find_minilm()


def test_a_named_folder_without_the_tokenizer_is_an_error_that_says_so(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"other")
    with pytest.raises(EncoderError, match=TOKENIZER):
        find_minilm()


def test_an_altered_tokenizer_is_named(tmp_path: Path) -> None:
    found = find_minilm()
    altered = tmp_path / TOKENIZER
    altered.write_bytes(found.tokenizer.read_bytes() + b" ")
    with pytest.raises(EncoderError, match=str(altered)):
        checked(found._replace(tokenizer=altered))


def test_a_package_is_searched_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "carries_weights"
    (package / "all-MiniLM-L6-v2").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    for name in (WEIGHTS, TOKENIZER):
        (package / "all-MiniLM-L6-v2" / name).write_bytes(b"other")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(EncoderError, match="all-MiniLM-L6-v2"):
        find_minilm(packages=["carries_weights"])


def test_nothing_found_names_the_extra_to_install(tmp_path: Path) -> None:
    code = "from hippogpu.embed.weights import find_minilm; find_minilm(packages=())"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    environment.pop(FOLDER_VARIABLE, None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "EncoderError" in done.stderr
    assert "pip install 'hippogpu[minilm]'" in done.stderr


def test_a_hub_that_cannot_be_reached_is_given_up_at_once() -> None:
    begin = time.monotonic()
    with pytest.raises(URLError):
        weights._knock("http://127.0.0.1:9/model")
    assert time.monotonic() - begin < 10
