"""The filter by a local cross-encoder: what it scores, what it keeps, and that a real model loads and runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hippogpu.errors import ConfigError, MissingExtraError, UsageError
from hippogpu.methods.filter import Verdict
from hippogpu.reading import CrossEncoderFilter
from hippogpu.testing.cross_encoders import CrossEncoders
from hippogpu.types import KeptFact

FACTS = [KeptFact("ada", "wrote", "notes", 1.0), KeptFact("ada", "knew", "babbage", 0.7), KeptFact("x", "is", "y", 0.1)]
Use = Callable[[CrossEncoders], CrossEncoders]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Puts a stand-in in the library's place."""

    def put(library: CrossEncoders) -> CrossEncoders:
        monkeypatch.setitem(sys.modules, "sentence_transformers", library)
        return library

    return put


def test_facts_that_score_at_least_the_threshold_are_kept_by_question(use: Use) -> None:
    library = use(CrossEncoders(lambda question, fact: 0.0 if question in fact else -0.01))
    judge = CrossEncoderFilter("tiny")
    assert judge(["ada", "is y", "none"], [FACTS, FACTS, FACTS]) == [Verdict((0, 1)), Verdict((2,)), Verdict(())]
    assert library.calls[0][:2] == [("ada", "ada wrote notes"), ("ada", "ada knew babbage")]


def test_all_pairs_of_a_call_are_scored_together(use: Use) -> None:
    library = use(CrossEncoders(lambda question, fact: 1.0))
    assert CrossEncoderFilter("tiny")(["a", "b", "c"], [FACTS, [], FACTS[:1]]) == [
        Verdict((0, 1, 2)),
        Verdict(()),
        Verdict((0,)),
    ]
    assert [len(call) for call in library.calls] == [4]


def test_without_candidates_nothing_is_scored(use: Use) -> None:
    library = use(CrossEncoders(lambda question, fact: 1.0))
    assert (CrossEncoderFilter("tiny")(["a"], [[]]), library.calls) == ([Verdict(())], [])


def test_the_name_of_a_folder_changes_with_what_it_holds(use: Use, tmp_path: Path) -> None:
    use(CrossEncoders(lambda question, fact: 1.0))
    names = []
    for weights in (b"1", b"2", b"1"):
        (tmp_path / "model.safetensors").write_bytes(weights)
        names.append(CrossEncoderFilter(str(tmp_path)).name)
    assert names[0] == names[2] != names[1]


def test_the_name_tells_model_and_threshold(use: Use) -> None:
    use(CrossEncoders(lambda question, fact: 1.0))
    assert CrossEncoderFilter("tiny", threshold=0.25).name == "cross-encoder-tiny-0.25"


def test_a_model_that_cannot_be_loaded_or_has_several_outputs_is_refused(use: Use) -> None:
    use(CrossEncoders(lambda question, fact: 1.0, outputs=3, missing=["gone"]))
    with pytest.raises(ConfigError, match="'gone' cannot be loaded"):
        CrossEncoderFilter("gone")
    with pytest.raises(ConfigError, match="has 3 outputs"):
        CrossEncoderFilter("nli")


def test_a_missing_name_a_missing_package_and_a_threshold_out_of_range_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ConfigError, match="'filter_model' under \\[search\\]"):
        CrossEncoderFilter("")
    with pytest.raises(MissingExtraError, match="hippogpu\\[st\\]"):
        CrossEncoderFilter("tiny")
    with pytest.raises(UsageError, match="in \\(0, 1\\)"):
        CrossEncoderFilter("tiny", threshold=1.0)


def tiny_model(folder: Path, *, outputs: int = 1) -> Path:
    """A cross-encoder of random weights on disk: two layers of 16 numbers, a vocabulary of the test's words."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "ada", "wrote", "notes", "knew", "babbage", "?"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=outputs,
        initializer_range=0.5,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_a_real_model_of_random_weights_keeps_by_its_own_scores(tmp_path: Path) -> None:
    model = str(tiny_model(tmp_path))
    library: Any = pytest.importorskip("sentence_transformers")
    pairs = [("who wrote notes?", " ".join(fact[:3])) for fact in FACTS]
    outputs = library.CrossEncoder(model).predict(pairs, activation_fn=lambda x: x, show_progress_bar=False)
    scores = [1 / (1 + math.exp(-float(output))) for output in outputs]
    least, middle, _ = sorted(scores)
    (verdict,) = CrossEncoderFilter(model, threshold=(least + middle) / 2)(["who wrote notes?"], [FACTS])
    assert middle - least > 1e-4
    assert verdict == Verdict(tuple(number for number, score in enumerate(scores) if score > least))


def test_a_real_model_with_two_outputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has 2 outputs"):
        CrossEncoderFilter(str(tiny_model(tmp_path, outputs=2)))


def test_a_folder_without_a_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        CrossEncoderFilter(str(tmp_path))
