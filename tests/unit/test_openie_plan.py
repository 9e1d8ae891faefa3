"""What an extraction will take, estimated from a sample."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hippogpu.cli import app
from hippogpu.config import ExtractConfig, Prompting
from hippogpu.llm import Llm
from hippogpu.openie import LlmExtractor, plan_extraction
from hippogpu.openie.prompts import TRIPLES, VERIFY
from hippogpu.testing.cli import run_verb
from hippogpu.testing.engines import ScriptedEngine
from hippogpu.types import Passage

PASSAGES = [Passage(f"p{n}", f"Title {n}", "word " * (5 + 7 * (n % 11))) for n in range(50)]
JOINT = replace(ExtractConfig(), prompting="joint")
AROUND, BEFORE_REPLY = 4, 3


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def test_the_prompt_tokens_of_a_plan_are_those_of_the_requests() -> None:
    engine = ScriptedEngine(lambda request: '{"entities":[],"triples":[]}')
    list(LlmExtractor(Llm(engine), JOINT).extract(iter(PASSAGES)))
    sent = sum(
        sum(words([message.content for message in request.messages])) + AROUND * len(request.messages) + BEFORE_REPLY
        for request in engine.asked
    )
    planned = plan_extraction(PASSAGES, JOINT, words, sample=1000)
    assert (planned.tokens.prompt, planned.requests, planned.off_by) == (sent, 50, 0.0)


def test_two_steps_ask_twice_and_verification_once_more() -> None:
    requests = [
        plan_extraction(PASSAGES, replace(ExtractConfig(), verify=verify), words).requests for verify in (False, True)
    ]
    assert requests == [100, 150]


def test_what_is_shared_by_all_prompts_is_told() -> None:
    planned = plan_extraction(PASSAGES, JOINT, words)
    one = plan_extraction(PASSAGES[:1], JOINT, words)
    assert planned.tokens.cached == 50 * one.tokens.cached > 0
    assert planned.tokens.cached < planned.tokens.prompt


def test_a_sample_is_scaled_to_the_corpus_and_says_how_far_it_may_be_off() -> None:
    passages = [PASSAGES[n % 50]._replace(id=str(n), title=f"Title {n}") for n in range(5000)]
    whole, sampled = (plan_extraction(passages, JOINT, words, sample=size) for size in (5000, 400))
    assert (sampled.sampled, sampled.passages, sampled.requests) == (400, 5000, 5000)
    sums = [sum(plan.tokens[::2]) for plan in (whole, sampled)]
    assert abs(sums[1] / sums[0] - 1) < 2 * sampled.off_by < 0.1


def test_the_estimate_of_reply_lengths_is_that_of_the_published_run() -> None:
    passages = [Passage(str(n), "", f"word{n} " + "word " * 102) for n in range(100)]
    assert plan_extraction(passages, ExtractConfig(), words).tokens.completion / 100 == pytest.approx(257, rel=0.03)


def test_a_text_that_several_passages_have_is_counted_once() -> None:
    many = [passage._replace(id=f"{passage.id}-{n}") for n in range(3) for passage in PASSAGES]
    once, planned = plan_extraction(PASSAGES, JOINT, words), plan_extraction(many, JOINT, words)
    assert planned == once._replace(passages=150, repeated=100)


def test_a_text_under_another_title_is_another_text() -> None:
    other = [passage._replace(id=f"{passage.id}-other", title=f"Other {passage.id}") for passage in PASSAGES]
    assert plan_extraction([*PASSAGES, *other], JOINT, words).requests == 100


def test_a_large_corpus_is_held_in_no_more_than_a_digest_a_text() -> None:
    text = "word " * 4000
    passages = (Passage(str(n), "", f"{n} {text}") for n in range(2000))
    tracemalloc.start()
    plan_extraction(passages, JOINT, lambda texts: [1] * len(texts), sample=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(("prompting", "verify"), [("two-step", False), ("two-step", True), ("joint", True)])
def test_the_longest_prompt_holds_what_the_replies_before_it_gave(prompting: Prompting, verify: bool) -> None:
    planned = plan_extraction(
        [Passage("p", "", "word " * 200)], ExtractConfig(prompting=prompting, verify=verify), words
    )
    messages = (VERIFY if verify else TRIPLES).messages("")
    stem = sum(words([message.content for message in messages])) + AROUND * len(messages) + BEFORE_REPLY
    given = round(90.3 + 0.988 * 200) if verify else round(33.1 + 0.261 * 200)
    assert planned.longest == stem + 200 + given + ExtractConfig().largest_tokens


def test_an_empty_corpus_takes_nothing() -> None:
    assert plan_extraction([], ExtractConfig(), words)[:4] == (0, 0, 0, (0, 0, 0))


def test_plan_extract_tells_cost_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text("".join(json.dumps({"_id": p.id, "text": p.text}) + "\n" for p in PASSAGES))
    Path("c.toml").write_text("[llm]\nprompt_price = 1.0\ncompletion_price = 2.0\n")
    ran = run_verb(app, "plan", "extract", "corpus.jsonl", "--config", "c.toml", "--tokens-a-second", "100", "--json")
    value = json.loads(ran.out)
    prompt, completion = value["prompt_tokens"], value["completion_tokens"]
    assert value["cost"] == pytest.approx((prompt + 2 * completion) / 1e6, abs=1e-4)
    assert value["seconds"] == pytest.approx((prompt + completion) / 100, abs=0.1)


def test_plan_extract_warns_of_passages_that_the_model_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text(json.dumps({"_id": "a", "text": "word " * 9000}) + "\n")
    Path("c.toml").write_text("[llm]\nwindow = 4096\n")
    ran = run_verb(app, "plan", "extract", "corpus.jsonl", "--config", "c.toml")
    assert "--chunk" in ran.err


def test_plan_extract_refuses_a_tokenizer_that_is_not_at_hand(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "word"}\n')
    ran = run_verb(app, "plan", "extract", str(tmp_path / "corpus.jsonl"), "--tokenizer", "no/such-model")
    assert (ran.code, "no/such-model" in ran.err) == (2, True)


LONG = Passage("doc", "T", " ".join(f"Sentence number {n} tells of Alice{n} and Bob{n}." for n in range(80)))


@pytest.fixture
def long_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps({"_id": LONG.id, "title": LONG.title, "text": LONG.text}) + "\n")
    return path


def planned(*options: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(run_verb(app, "plan", "extract", "corpus.jsonl", *options, "--json").out)
    return value


@pytest.mark.parametrize("options", [["--config", "c.toml"], ["--config", "c.toml", "--chunk"], ["--chunk"]])
def test_plan_extract_counts_the_chunks_that_index_would_make(long_corpus: Path, options: list[str]) -> None:
    Path("c.toml").write_text("[index]\nchunk_tokens = 40\nchunk_overlap = 4\n")
    options = [*options, "--encoder", "hashing"]
    made = run_verb(app, "index", "i", "corpus.jsonl", "--extractor", "none", *options, "--json")
    assert planned(*options)["passages"] == json.loads(made.out)["counts"]["passages"] > 1


def test_plan_extract_splits_nothing_unless_told(long_corpus: Path) -> None:
    assert planned()["passages"] == 1


def test_plan_extract_refuses_what_index_cannot_split(long_corpus: Path) -> None:
    long_corpus.write_text(json.dumps({"_id": "a", "title": "word " * 50, "text": LONG.text}) + "\n")
    Path("c.toml").write_text("[index]\nchunk_tokens = 8\nchunk_overlap = 2\n")
    ran = run_verb(app, "plan", "extract", "corpus.jsonl", "--config", "c.toml", "--encoder", "hashing", "--json")
    assert (ran.code, json.loads(ran.out)["refused"][0]["where"]) == (1, "passage 'a'")


@pytest.mark.parametrize("model", ["x" * 300, "a b", "../x", "模", "org/model:tag"])
def test_plan_extract_estimates_for_a_model_of_any_name(long_corpus: Path, model: str) -> None:
    assert planned("--model", model)["tokenizer"] == {"name": "estimate", "exact": False}
