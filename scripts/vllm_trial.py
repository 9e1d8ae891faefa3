#!/usr/bin/env python3
"""The real vLLM on a processor reads twelve passages: vllm_trial.py offline|server|all MODEL_FOLDER WORK_FOLDER

What test-vllm runs in the environment that it made. Exit code 1 when a check fails.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import extraction_trial as trials

from hippogpu.config import ExtractConfig, LlmConfig
from hippogpu.errors import ExtractionError
from hippogpu.llm import Engine, Llm, NextRequest, Reply, Request, open_engine
from hippogpu.llm.vllm_guard import children
from hippogpu.openie import LlmExtractor
from hippogpu.openie.prompts import ENTITIES
from hippogpu.types import Passage

IN_FLIGHT = 6
WINDOW = 2048
# The space for keys and values is in GiB. Types below float32 are very slow on processors without instructions for
# them.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
MODEL = f"""
[llm]
engine = "vllm"
in_flight = 3
window = {WINDOW}
dtype = "float32"
"""
SERVED = f"""
[llm]
in_flight = {IN_FLIGHT}
timeout_s = 600.0
"""
SERVER = (
    *("-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--served-model-name", "smollm2"),
    *("--dtype", "float32", "--max-model-len", str(WINDOW), "--max-num-seqs", str(IN_FLIGHT), "--enforce-eager"),
    *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
    *("--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true}'),
)


class Recorder:
    """An engine that notes when each request entered another engine and when its reply came out."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.model, self.endpoint, self.in_flight = engine.model, engine.endpoint, engine.in_flight
        self.events: list[str] = []

    def stream(self, next_request: NextRequest) -> Iterator[Reply]:
        """The other engine's stream."""

        def noted() -> Request | None:
            request = next_request()
            if request is not None:
                self.events.append(f"+{name_of(request)}")
            return request

        for reply in self._engine.stream(noted):
            self.events.append(f"-{name_of(reply.request)}")
            yield reply

    def close(self) -> None:
        """Closes the other engine."""
        self._engine.close()


def name_of(request: Request) -> str:
    """e and the passage's id for a request for entities, t for one for triples."""
    step = "e" if request.messages[0].content == ENTITIES.instruction else "t"
    return f"{step}:{request.tag.passage.id}"


def try_engine(model: Path, checks: trials.Checks) -> None:
    """The engine in this process: guided JSON, the prefix cache, and a stream without a barrier."""
    began = time.monotonic()
    settings = LlmConfig(engine="vllm", model=str(model), in_flight=IN_FLIGHT, window=WINDOW, dtype="float32")
    engine = open_engine(settings)
    print(f"     vLLM started in this process: {time.monotonic() - began:.0f} s", flush=True)
    try:
        trials.ask(engine, 24, checks)
        again = trials.ask(engine, 24, checks)
        checks.that(again.cached > 0, "the prefix cache is used", f"{again.cached} of {again.prompt} prompt tokens")
        try_two_steps(Recorder(engine), checks)
        try_death(engine, checks)
    finally:
        began = time.monotonic()
        engine.close()
        print(f"     closed in {time.monotonic() - began:.1f} s", flush=True)


def try_two_steps(recorder: Recorder, checks: trials.Checks) -> None:
    """Entities, then triples: triples are asked for while entities of other passages are still being read."""
    passages = [Passage(row["_id"], row["title"], row["text"]) for row in trials.shortest_passages()]
    extractor = LlmExtractor(Llm(recorder), ExtractConfig(max_tokens=40, largest_tokens=60))
    records = list(extractor.extract(passages))
    events = recorder.events
    print(f"     order of requests (+) and replies (-): {' '.join(events)}")
    first_triples = next(place for place, event in enumerate(events) if event.startswith("+t:"))
    last_entities = max(place for place, event in enumerate(events) if event.startswith("+e:"))
    good = sum(record.error is None for record in records)
    checks.that(good == len(records) == trials.PASSAGES, "all passages are read in two steps", good)
    checks.that(first_triples < last_entities, "no barrier between the two steps", f"{first_triples} < {last_entities}")
    levels = in_flight_levels(events)
    checks.that(max(levels) == IN_FLIGHT, "the engine is kept full", f"{IN_FLIGHT} in flight")


def try_death(engine: Engine, checks: trials.Checks) -> None:
    """vLLM's processes are killed in the middle of a stream: it ends with an error, after the replies there were."""
    requests = iter(trials.short_requests(12))
    replies = 0
    try:
        for _ in engine.stream(lambda: next(requests, None)):
            replies += 1
            for process in children(os.getpid()):
                if b"VLLM" in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                    os.kill(process.pid, signal.SIGKILL)
        checks.that(False, "a dead engine ends the stream")
    except ExtractionError as error:
        checks.that(1 <= replies < 12, "a dead engine ends the stream", f"after {replies} replies: {error}")


def in_flight_levels(events: list[str]) -> list[int]:
    """How many requests were in the engine after each event."""
    levels, level = [], 0
    for event in events:
        level += 1 if event.startswith("+") else -1
        levels.append(level)
    return levels


def interrupt(trial: trials.Trial, checks: trials.Checks) -> None:
    """Ctrl-C, which reaches the whole process group: what is in flight is finished, then the run ends."""
    before = len(trials.successes(trial.index))
    began = time.monotonic()
    with trial.start(*trial.extract()) as process:
        while len(trials.successes(trial.index)) == before and process.poll() is None:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, messages = process.communicate()
    after = len(trials.successes(trial.index))
    held = sum(line["record"]["error"] is not None for line in trials.logged(trial.index))
    claim = "an interrupted run finishes what is in flight"
    found = f"exit code {process.returncode}, {before} to {after} read, {time.monotonic() - began:.0f} s"
    checks.that(process.returncode == 130 and after > before and held == 0, claim, found)
    if process.returncode != 130:
        sys.stderr.write(messages)
    left = trials.left_of(process.pid)
    checks.that(not left, "it leaves no process behind", left or "")


def offline(model: Path, work: Path, checks: trials.Checks) -> None:
    """In process: the engine itself, then the command line with a kill, an interrupt and a resume."""
    try_engine(model, checks)
    trial = trials.prepared(
        work / "offline", ["--extractor", "vllm", "--model", str(model)], MODEL, environment=ENVIRONMENT
    )
    trials.read_and_kill(trial, checks)
    interrupt(trial, checks)
    before = trials.successes(trial.index)
    print(trials.summary(trials.resume(trial, checks, before)))
    # Greedy xgrammar may put one space behind a comma, whatever it is told.
    trials.check_replies(trial.index, checks, most_space=1)
    trials.build_and_search(trial, checks)


@contextmanager
def served(model: Path, work: Path) -> Iterator[str]:
    """The address of vLLM's own server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, *SERVER, "--port", str(port), "--model", str(model)]
    with (work / "server.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Returns when the server answers; ends the program when it does not come up."""
    began = time.monotonic()
    while time.monotonic() - began < trials.LONGEST_S and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
            continue
        print(f"     vLLM's server is up: {time.monotonic() - began:.0f} s", flush=True)
        return
    sys.exit("vLLM's server did not come up; see server.log in the work folder")


def server(model: Path, work: Path, checks: trials.Checks) -> None:
    """As a service: the same passages through the http engine."""
    with served(model, work) as url:
        engine = open_engine(LlmConfig(url=url, model="smollm2", in_flight=IN_FLIGHT, timeout_s=600.0))
        try:
            usage = trials.ask(engine, 24, checks)
        finally:
            engine.close()
        checks.that(usage.cached > 0, "the prefix cache is used", f"{usage.cached} of {usage.prompt} prompt tokens")
        options = ["--extractor", "http", "--url", url, "--model", "smollm2"]
        trial = trials.prepared(work / "server", options, SERVED)
        before = trials.read_and_kill(trial, checks)
        print(trials.summary(trials.resume(trial, checks, before)))
    trials.check_replies(trial.index, checks, most_space=1)
    trials.build_and_search(trial, checks)


def main(part: str, model: Path, work: Path) -> None:
    began = time.monotonic()
    os.environ.update(ENVIRONMENT)
    checks = trials.Checks()
    if part in ("offline", "all"):
        offline(model, work, checks)
    if part in ("server", "all"):
        server(model, work, checks)
    print(f"     in all: {time.monotonic() - began:.0f} s")
    checks.end()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
