"""What an extraction will take, estimated from a sample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hippogpu.cli import app
from hippogpu.config import ExtractConfig
from hippogpu.llm import Llm
from hippogpu.openie import LlmExtractor, plan_extraction
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
    passages = [PASSAGES[n % 50]._replace(id=str(n)) for n in range(5000)]
    whole, sampled = (plan_extraction(passages, JOINT, words, sample=size) for size in (5000, 400))
    assert (sampled.sampled, sampled.passages, sampled.requests) == (400, 5000, 5000)
    sums = [sum(plan.tokens[::2]) for plan in (whole, sampled)]
    assert abs(sums[1] / sums[0] - 1) < 2 * sampled.off_by < 0.1


def test_the_estimate_of_reply_lengths_is_that_of_the_published_run() -> None:
    passages = [Passage(str(n), "", "word " * 103) for n in range(100)]
    assert plan_extraction(passages, ExtractConfig(), words).tokens.completion / 100 == pytest.approx(257, rel=0.03)


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
