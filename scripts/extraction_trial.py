"""Twelve passages through the command line: read by a language model, killed in the middle, resumed, built, searched.

Used by test-llm and test-vllm. What is tried is the machinery with a real model; a small one's triples are poor.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from guided_replies import begins, stored_replies, whole, widest_space

from hippogpu.demo import demo_folder
from hippogpu.llm import Engine, Request, Usage
from hippogpu.openie.prompts import ENTITIES, passage_text
from hippogpu.types import Passage

PASSAGES = 12
KILLED_AFTER = 3
LONGEST_S = 900.0
QUESTION = "Which military leader took part in the Mexican Revolution?"
ANSWER = "mt0439"
EXTRACT = """
[extract]
max_tokens = 40
largest_tokens = 60
"""
SHORT = {
    "type": "object",
    "properties": {
        "entities": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 20}, "maxItems": 3}
    },
    "required": ["entities"],
    "additionalProperties": False,
}


class Checks:
    """What was checked: each is printed, and a failed one is remembered."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def that(self, holds: bool, claim: str, found: object = "") -> None:
        """Prints whether the claim holds, and what was found."""
        print(f"{'ok  ' if holds else 'FAIL'} {claim}{f' ({found})' if found != '' else ''}", flush=True)
        if not holds:
            self.failed.append(claim)

    def end(self) -> None:
        """Ends the program: with 1 when anything failed."""
        print(f"{len(self.failed)} checks failed" if self.failed else "all checks passed", flush=True)
        sys.exit(1 if self.failed else 0)


class Trial(NamedTuple):
    """A folder for the files, the options that name the model, and the environment of the runs."""

    work: Path
    options: Sequence[str]
    environment: dict[str, str]

    @property
    def index(self) -> Path:
        return self.work / "index"

    @property
    def corpus(self) -> Path:
        return self.work / "corpus.jsonl"

    @property
    def config(self) -> Path:
        return self.work / "config.toml"

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A run of the command line, in a session of its own."""
        command = [sys.executable, "-m", "hippogpu", *words]
        pipe, environment = subprocess.PIPE, os.environ | self.environment
        # A session of its own: what a run starts can be told from what the trial starts.
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True)

    def run(self, *words: str) -> tuple[int, Any]:
        """Exit code and JSON of a run that comes to its end; its messages go to stderr."""
        process = self.start(*words, "--json")
        out, messages = process.communicate(timeout=LONGEST_S)
        sys.stderr.write(messages)
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return process.returncode, lines[-1] if lines else {}

    def extract(self) -> list[str]:
        """The words of the run that reads the passages."""
        files = [str(self.index), str(self.corpus), "--config", str(self.config)]
        return ["index", *files, *self.options, "--extract-only", "-q"]


def shortest_passages() -> list[dict[str, str]]:
    """The shortest passages of the shipped demo corpus."""
    lines = gzip.decompress((demo_folder() / "corpus.jsonl.gz").read_bytes()).splitlines()
    return sorted(map(json.loads, lines), key=lambda row: (len(row["text"]), row["_id"]))[:PASSAGES]


def prepared(work: Path, options: Sequence[str], model: str, *, environment: dict[str, str] | None = None) -> Trial:
    """A trial whose corpus and configuration are written; model is the table [llm]."""
    work.mkdir(parents=True, exist_ok=True)
    trial = Trial(work, options, environment or {})
    trial.corpus.write_text("".join(json.dumps(row) + "\n" for row in shortest_passages()), encoding="utf-8")
    trial.config.write_text(model + EXTRACT, encoding="utf-8")
    return trial


def logged(index: Path) -> list[dict[str, Any]]:
    """The whole lines of the extraction logs."""
    lines = [line for path in index.glob("openie/*.jsonl") for line in path.read_bytes().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def successes(index: Path) -> Counter[str]:
    """How often each passage was read without error, by its key in the log."""
    return Counter(line["key"] for line in logged(index) if line["record"]["error"] is None)


def left_of(session: int) -> list[str]:
    """The commands of a session that still run after some patience."""
    end = time.monotonic() + 20.0
    while (left := _running_in(session)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def _running_in(session: int) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != b"Z":
                found.append(command)
    return found


def read_and_kill(trial: Trial, checks: Checks) -> Counter[str]:
    """Starts reading and kills the run when some passages are finished; what was finished."""
    began = time.monotonic()
    with trial.start(*trial.extract()) as process:
        while len(successes(trial.index)) < KILLED_AFTER and process.poll() is None:
            if time.monotonic() - began > LONGEST_S:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.stdout.read()  # type: ignore[union-attr]
        sys.stderr.write(process.stderr.read())  # type: ignore[union-attr]
    before = successes(trial.index)
    killed = process.returncode == -signal.SIGKILL and KILLED_AFTER <= len(before) < PASSAGES
    checks.that(killed, "killed in the middle", f"{len(before)} of {PASSAGES} read, {time.monotonic() - began:.0f} s")
    left = left_of(process.pid)
    checks.that(not left, "the killed run leaves no process behind", left or "")
    return before


def resume(trial: Trial, checks: Checks, before: Counter[str]) -> dict[str, Any]:
    """Reads the rest; finished passages are not asked for again."""
    began = time.monotonic()
    code, value = trial.run(*trial.extract())
    extraction: dict[str, Any] = value.get("extraction", {})
    checks.that(code == 0, "the resumed run ends well", f"exit code {code}, {time.monotonic() - began:.0f} s")
    checks.that(extraction.get("reused") == len(before), "finished passages were reused", extraction.get("reused"))
    checks.that(extraction.get("extracted") == PASSAGES - len(before), "the others were read")
    after = successes(trial.index)
    once = len(after) == PASSAGES and set(after.values()) == {1} and before <= after
    checks.that(once, "the log has one success for each passage", dict(Counter(after.values())))
    unread = [drop for line in logged(trial.index) for drop in line["record"]["drops"] if "JSON" in drop[0]]
    checks.that(not unread, "no reply was unreadable", unread or "")
    return extraction


def check_replies(index: Path, checks: Checks, *, most_space: int) -> None:
    """Replies are JSON of the wanted form, or its beginning where the limit cut them, and hold no endless space."""
    replies = list(stored_replies(index))
    broken = [text for text, finish, _ in replies if not (whole(text) if finish == "stop" else begins(text))]
    widest = max((widest_space(text) for text, _, _ in replies), default=0)
    cut = sum(finish == "length" for _, finish, _ in replies)
    checks.that(bool(replies) and not broken, "every reply is guided JSON", broken or f"{len(replies)}, {cut} cut")
    checks.that(widest <= most_space, "white space outside strings is bounded", f"{widest} at most")


def short_requests(count: int) -> list[Request]:
    """Requests for the entities of the passages, with a schema so narrow that a reply is soon whole."""
    passages = [Passage(row["_id"], row["title"], row["text"]) for row in shortest_passages()]
    texts = [passage_text(passages[number % PASSAGES]) for number in range(count)]
    return [Request(number, ENTITIES.messages(text), 100, SHORT) for number, text in enumerate(texts)]


def ask(engine: Engine, count: int, checks: Checks) -> Usage:
    """Asks as one stream and checks every reply; the tokens it took."""
    began = time.monotonic()
    requests = iter(short_requests(count))
    replies = list(engine.stream(lambda: next(requests, None)))
    spent = time.monotonic() - began
    usage = reduce(Usage.plus, (reply.usage for reply in replies))
    valid = sum(reply.finish == "stop" and whole(reply.text) for reply in replies)
    checks.that(valid == len(replies) == count, "every guided reply is whole, valid JSON", f"{valid} of {count}")
    print(f"     {usage}, {spent:.1f} s, {usage.completion / spent:.1f} generated tokens/s", flush=True)
    return usage


def build_and_search(trial: Trial, checks: Checks) -> None:
    """Builds from the log alone, verifies, and asks a question."""
    began = time.monotonic()
    code, value = trial.run("index", str(trial.index), str(trial.corpus), "-q")
    counts = value.get("counts", {})
    checks.that(code == 0 and counts.get("passages") == PASSAGES, "the index is built without a model", counts)
    checks.that(value.get("extraction", {}).get("extracted") == 0, "the build reads no passage")
    code, _ = trial.run("verify", str(trial.index), "--full")
    checks.that(code == 0, "the index verifies", f"exit code {code}")
    code, value = trial.run("search", str(trial.index), QUESTION, "-k", "3")
    found = [passage["id"] for passage in value.get("passages", [])]
    checks.that(code == 0 and ANSWER in found, "the search finds the passage", found)
    print(f"     build, verify and search: {time.monotonic() - began:.0f} s")


def summary(extraction: dict[str, Any]) -> str:
    """One line of what the resumed run took."""
    model = extraction.get("model", {})
    return (
        f"     resumed run: {model.get('requests')} requests, tokens {model.get('tokens')}, "
        f"{extraction.get('seconds')} s, {model.get('tokens_a_second')} tokens/s in and out"
    )
