"""Kills extractions over a faulty server at random points, resumes them, and tells what was lost or asked twice.

    python tests/crash/extraction_kills.py FOLDER TRIALS SEED

A trial makes an index of its own: up to four runs of it are killed (SIGKILL) after a random part of the time that an
undisturbed extraction takes (one in four: of extraction and build), then one is left alone. Prints one JSON object; its
lists are empty when nothing was lost.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from hippogpu import Index, Passage
from hippogpu.config import ExtractConfig, LlmConfig
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.index.logs import log_path
from hippogpu.llm import Llm, ReplyCache
from hippogpu.llm.http import HttpEngine
from hippogpu.openie import ExtractionLog, LlmExtractor
from hippogpu.store import current_manifest
from hippogpu.text import content_key, identity

NAMES = ("Ada Lovelace", "Charles Babbage", "Erik Hort", "Montebello", "Rockland County", "Oliver Badman", "Leith")
PASSAGES = [
    Passage(f"p{n}", f"Note {n}", f"{NAMES[n % 7]} met {NAMES[(n + 2) % 7]} in {NAMES[(n + 3) % 7]} number {n}.")
    for n in range(24)
]
FAULTS = {
    "shares": {"busy": 0.04, "broken": 0.04, "dropped": 0.04, "cut": 0.03, "truncated": 0.03, "garbled": 0.03}
    | {"prose": 0.05, "length": 0.05, "empty": 0.02},
    "delay_s": 0.01,
    "delay_spread_s": 0.05,
}
KILLS_A_TRIAL = 4


class Server:
    """The faulty server in a process of its own."""

    def __init__(self, seed: int) -> None:
        words = ["-m", "hippogpu.testing.llm_server", "--faults", json.dumps(FAULTS | {"seed": seed})]
        self._process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url: str = json.loads(self._process.stdout.readline())["url"]

    def asked_of(self) -> Counter[str]:
        """How often each passage was asked for, by its id."""
        counts, texts = (json.load(urllib.request.urlopen(f"{self.url}/{name}")) for name in ("counts", "texts"))
        asked: Counter[str] = Counter()
        for digest, text in texts.items():
            title = text.split("\n", 1)[0].removeprefix("Title: Note ")
            asked[f"p{title}"] += counts["asked"][digest]
        return asked

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def extractor_at(url: str, root: Path, *, remember: bool) -> LlmExtractor:
    """An extractor whose waits between tries are a hundredth of the real ones."""
    config = LlmConfig(url=url, model="rule", in_flight=6)
    engine = HttpEngine(config, sleep=lambda seconds: asyncio.sleep(seconds / 100))
    replies = ReplyCache(root / "openie" / "replies.sqlite") if remember else None
    return LlmExtractor(Llm(engine, replies), ExtractConfig(tries=12, quarantine_after=1000))


def run(url: str, root: Path, *, remember: bool, build: bool) -> None:
    """Extracts, and builds if told to, until it is killed or done."""
    extractor = extractor_at(url, root, remember=remember)
    with Index.open(root, extractor=extractor, embedder=HashingEmbedder(32), encoder_spec="hashing:32") as index:
        index.add(PASSAGES)
        while index.extract().failed:
            pass
        if build:
            index.commit(diffuse="never")
    extractor.llm.close()


def forked(url: str, root: Path, *, remember: bool, after_s: float | None, build: bool = True) -> bool:
    """A run in a child, killed after a time when one is given; whether it came to its end."""
    child = os.fork()
    if not child:
        run(url, root, remember=remember, build=build)
        os._exit(0)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the run ended with {code}"
    return code == 0


def durable(root: Path, name: str) -> set[str]:
    """The ids of the passages whose success is in the log."""
    path = log_path(root, name)
    if not path.exists():
        return set()
    copy = shutil.copyfile(path, root / "copy.jsonl")
    with ExtractionLog(copy) as log:
        finished = log.outcomes().finished
    return {p.id for p in PASSAGES if content_key(identity(p.title, p.text)) in finished}


def successes(root: Path, name: str) -> Counter[str]:
    """How many successes the log holds of each passage."""
    lines = (json.loads(line) for line in log_path(root, name).read_text().splitlines())
    return Counter(line["record"]["passage_id"] for line in lines if line["record"]["error"] is None)


def files(root: Path) -> dict[str, str]:
    return {role: entry.sha256 for role, entry in current_manifest(root).files.items()}


def trial(folder: Path, seed: int, found: dict[str, Any], expected: dict[str, str], spans_s: list[float]) -> None:
    """One index, killed until a run comes to its end; what went wrong is added to `found`."""
    chance, root = random.Random(seed), folder / f"trial-{seed}"
    remember = bool(seed % 2)
    server = Server(seed)
    name = extractor_at(server.url, folder, remember=False).name
    for left in reversed(range(KILLS_A_TRIAL + 1)):
        before, asked = durable(root, name), server.asked_of()
        after_s = chance.uniform(0, chance.choice(spans_s)) if left else None
        ended = forked(server.url, root, remember=remember, after_s=after_s)
        again = server.asked_of()
        found["asked_again"] += [[seed, id_] for id_ in before if again[id_] != asked[id_]]
        if ended:
            break
        found["kills"] += 1
        found["cut_in_extraction"] += 0 < len(durable(root, name)) < len(PASSAGES)
    logged = successes(root, name)
    found["not_once"] += [[seed, p.id, logged[p.id]] for p in PASSAGES if logged[p.id] != 1]
    if files(root) != expected:
        found["other_index"].append(seed)
    server.close()


def main(folder: Path, kills: int, seed: int) -> None:
    found: dict[str, Any] = {"trials": 0, "kills": 0, "cut_in_extraction": 0}
    found |= {"asked_again": [], "not_once": [], "other_index": []}
    import httpx  # noqa: F401  (every child finds it loaded)

    server = Server(seed)
    assert forked(server.url, folder / "warm", remember=False, after_s=None)
    spans_s = []
    for build in (False, True):
        started = time.monotonic()
        assert forked(server.url, folder / "undisturbed", remember=False, after_s=None, build=build)
        spans_s.append(time.monotonic() - started)
    spans_s = [spans_s[0]] * 3 + [sum(spans_s)]
    expected = files(folder / "undisturbed")
    server.close()
    while found["kills"] < kills:
        found["trials"] += 1
        trial(folder, seed + found["trials"], found, expected, spans_s)
    print(json.dumps(found | {"spans_s": [round(s, 2) for s in spans_s]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
