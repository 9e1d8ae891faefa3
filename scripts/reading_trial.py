"""Three questions through the command line: facts filtered, entities named, thoughts and answers by a language model.

Used by test-llm. What is tried is the machinery with a real model; a small one's answers are poor.
"""

import gzip
import json
import time
from pathlib import Path
from typing import Any

from extraction_trial import Checks, Trial

from hippogpu.demo import demo_folder

QUESTIONS = 3
READING = """
[answer]
passages = 3
step_passages = 4
passage_characters = 400
max_tokens = 100
largest_tokens = 200
"""


def read_questions(trial: Trial, model: str, checks: Checks) -> None:
    """Answers some of the shipped questions from the shipped index, twice; ranks one by its entities."""
    began = time.monotonic()
    index, config, questions = (trial.work / name for name in ("demo", "reading.toml", "questions.jsonl"))
    config.write_text(model + READING, encoding="utf-8")
    lines = gzip.decompress((demo_folder() / "queries.jsonl.gz").read_bytes()).decode().splitlines()[:QUESTIONS]
    questions.write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, _ = trial.run("demo", str(index), "-q")
    checks.that(code == 0, "the shipped index is built", f"exit code {code}")
    words = ["answer", str(index), "--queries", str(questions), "--filter", "llm", "--ircot", *trial.options]
    words += ["--config", str(config), "--output", str(trial.work / "answers.jsonl"), "-q"]
    code, value = trial.run(*words)
    summary: dict[str, Any] = value.get("summary", {})
    check_answers(trial.work / "answers.jsonl", code, summary, checks)
    code, value = trial.run(*words)
    done = value.get("summary", {}).get("earlier")
    checks.that(code == 0 and done == QUESTIONS, "the same command has nothing left to do", done)
    code, value = trial.run(*words, "--force")
    again = value.get("summary", {})
    same = (again.get("tokens", {}).get("completion"), again.get("em"), again.get("f1"))
    checks.that(same == (0, summary.get("em"), summary.get("f1")), "asked again, every reply is remembered", same)
    name_entities(trial, index, config, json.loads(lines[0])["question"], checks)
    print(f"     questions: {time.monotonic() - began:.0f} s")


def check_answers(output: Path, code: int, summary: dict[str, Any], checks: Checks) -> None:
    """Every question has an answer, or is said to have none, from passages that were shown."""
    answers = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    told = {name: summary.get(name) for name in ("answered", "unanswerable", "failed", "degraded")}
    whole = len(answers) == QUESTIONS and not summary.get("failed") and not summary.get("degraded")
    checks.that(code == 0 and whole, "every question is answered or said to have no answer", told)
    judged = summary.get("filter") or {}
    facts = (judged.get("kept"), judged.get("dropped"), judged.get("unknown"))
    checks.that(judged.get("failed") == 0 and judged.get("asked", 0) >= QUESTIONS, "facts are judged", facts)
    thoughts = [step["thought"] for answer in answers for step in answer["ircot"]["steps"]]
    checks.that(any(thoughts), "thoughts are written", [answer["ircot"]["stop"] for answer in answers])
    cited = [({one["id"] for one in answer["cited"]}, {one["id"] for one in answer["passages"]}) for answer in answers]
    checks.that(all(few <= all_ for few, all_ in cited), "only passages that were found are cited")
    print(
        f"     {summary.get('requests')} replies, tokens {summary.get('tokens')}, {summary.get('seconds')} s",
        flush=True,
    )


def name_entities(trial: Trial, index: Path, config: Path, question: str, checks: Checks) -> None:
    """Ranks a question by the entities that the model names."""
    words = ["search", str(index), question, "--method", "hippo1", "--entities", "llm", *trial.options]
    code, value = trial.run(*words, "--config", str(config), "-q")
    names = [one["name"] for one in value.get("entities", [])]
    checks.that(code == 0 and len(value.get("passages", [])) == 5, "a question is ranked by its entities", names)
