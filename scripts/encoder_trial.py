#!/usr/bin/env python3
"""The real vLLM on a processor as an encoder: encoder_trial.py WRITING_MODEL_FOLDER WORK_FOLDER [DATA_FOLDER]

What `test-vllm encoder` runs in the environment that it made. The model is all-MiniLM-L6-v2, whose vectors are known;
a model that writes text must be refused. DATA_FOLDER holds corpus.jsonl, openie.jsonl.gz and queries.jsonl, the
shipped demo corpus by default. Exit code 1 when a check fails.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import extraction_trial as trials
import numpy as np

from hippogpu.corpus import read_corpus
from hippogpu.demo import demo_folder
from hippogpu.embed import Embedder, count_truncated, default_embedder, embedder_from_name, encode_all
from hippogpu.embed.vllm import VllmEmbedder
from hippogpu.embed.weights import find_minilm
from hippogpu.errors import EncoderError
from hippogpu.llm.vllm_guard import children
from hippogpu.openie import ReplayExtractor
from hippogpu.testing.embedders import check_embedder
from hippogpu.types import Floats, Passage

PASSAGES, PHRASES = 200, 600
TIMINGS = 3
# Two sums of float32 in another order; the promise of every encoder.
LARGEST_DIFFERENCE = 1e-6
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
ODD_TEXTS = ("", " ", "\n\t", "\u200b", ".", "\ud800", "🙂")
HELD = """
import sys, time
from hippogpu.embed import embedder_from_name

if __name__ == "__main__":
    embedder_from_name(sys.argv[1]).encode(["a text"])
    print("encoded", flush=True)
    time.sleep(600)
"""


def compare(ours: Embedder, theirs: Embedder, texts: Sequence[str], what: str, checks: trials.Checks) -> None:
    """The vectors of both, and whether each row of one is nearest to the same row of the other."""
    mine, its = ours.encode(texts), theirs.encode(texts)
    difference = float(np.abs(mine - its).max())
    checks.that(
        difference <= LARGEST_DIFFERENCE, f"{what}: the vectors are MiniLM's", f"at most {difference:.1e} apart"
    )
    distinct = [texts.index(text) for text in dict.fromkeys(texts)]
    checks.that(in_order(mine[distinct], its[distinct]), f"{what}: in the order given", f"{len(texts)} texts")


def in_order(mine: Floats, its: Floats) -> bool:
    """Whether no row of the one is nearer to another row of the other than to its own."""
    scores = its @ mine.T
    return bool(np.all(scores.max(axis=1) <= scores.diagonal() + LARGEST_DIFFERENCE))


def try_vectors(
    ours: Embedder, theirs: Embedder, passages: Sequence[Passage], phrases: Sequence[str], checks: trials.Checks
) -> None:
    """Phrases, passages, texts beyond the window, and texts that hold next to nothing."""
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    long = [" ".join(texts[begin : begin + 5]) for begin in range(0, 100, 5)]
    compare(ours, theirs, phrases, f"{len(phrases)} phrases", checks)
    compare(ours, theirs, texts, f"{len(texts)} passages", checks)
    compare(ours, theirs, long, f"{len(long)} long texts", checks)
    compare(ours, theirs, ODD_TEXTS, f"{len(ODD_TEXTS)} odd texts", checks)
    counts = (count_truncated([*texts, *long], ours), count_truncated([*texts, *long], theirs))
    checks.that(counts[0] == counts[1] >= len(long) - 1, "texts that are cut are counted", counts)


def try_speed(ours: Embedder, theirs: Embedder, texts: dict[str, Sequence[str]]) -> None:
    """Texts of both by the second and by the second of processor time, taking turns: the median of three."""
    for what, these in texts.items():
        rates: dict[str, list[tuple[float, float]]] = {}
        for _ in range(TIMINGS):
            for embedder in (ours, theirs):
                began, used = time.monotonic(), processor_s(os.getpid())
                encode_all(these, embedder)
                spent = (time.monotonic() - began, processor_s(os.getpid()) - used)
                rates.setdefault(embedder.name.partition("@")[0], []).append(spent)
        print(f"     {len(these)} {what} (load {os.getloadavg()[0]:.1f}):", flush=True)
        for name, all_spent in rates.items():
            wall, processor = (len(these) / median(times) for times in zip(*all_spent, strict=True))
            print(f"       {name}: {wall:.1f} a second, {processor:.1f} a second of processor time", flush=True)


def processor_s(process: int) -> float:
    """The processor time of a process and of all that it started and that still run, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_s(child.pid) for child in children(process))


def try_refusal(writer: Path, checks: trials.Checks) -> None:
    """A model that writes text is no encoder, and a folder that is not there is none."""
    for model, words in ((writer, "may be no encoder"), (writer / "nothing", "cannot use")):
        try:
            embedder_from_name(f"vllm:{model}")
            checks.that(False, f"vllm:{model.name} is refused")
        except EncoderError as error:
            checks.that(words in str(error), f"vllm:{model.name} is refused", error)


def try_kill(spec: str, work: Path, checks: trials.Checks) -> None:
    """A program that is killed leaves none of vLLM's processes behind."""
    script = work / "held.py"
    script.write_text(HELD)
    process = subprocess.Popen(
        [sys.executable, str(script), spec], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    encoded = process.stdout.readline().strip() == "encoded"
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = trials.left_of(process.pid)
    checks.that(encoded and not left, "a killed program leaves no process behind", left or "")


def try_index(
    specs: dict[str, str], data: Path, passages: Sequence[Passage], work: Path, checks: trials.Checks
) -> None:
    """An index by the command line with each encoder; both rank alike."""
    corpus = work / "passages.jsonl"
    rows = [json.dumps({"_id": passage.id, "title": passage.title, "text": passage.text}) for passage in passages]
    corpus.write_text("\n".join(rows), encoding="utf-8")
    found = {name: indexed(name, spec, data, corpus, work, checks) for name, spec in specs.items()}
    same = sum(found["vllm"][question] == ids for question, ids in found["minilm"].items())
    checks.that(same == len(found["minilm"]) > 0, "both rank the same", f"{same} questions, ten passages each")


def indexed(name: str, spec: str, data: Path, corpus: Path, work: Path, checks: trials.Checks) -> dict[str, list[str]]:
    """The ids that an index with the encoder ranks first, by question."""
    trial = trials.Trial(work, [], ENVIRONMENT)
    folder, ranked = work / f"{name}.hippo", work / f"{name}.jsonl"
    began = time.monotonic()
    openie = str(next(data.glob("openie.jsonl*")))
    code, value = trial.run("index", str(folder), str(corpus), "--openie", openie, "--encoder", spec, "-q")
    # Records of passages beyond the corpus are told of as unused.
    counts = value.get("counts", {})
    checks.that(counts.get("passages") == PASSAGES, f"{name}: the index is built", f"exit code {code}, {counts}")
    print(f"     index with {name}: {time.monotonic() - began:.0f} s", flush=True)
    queries = str(next(data.glob("queries.jsonl*")))
    files = ["--queries", queries, "--output", str(ranked), "-k", "10"]
    code, _ = trial.run("search", str(folder), *files, "--encoder", spec, "-q")
    checks.that(code == 0, f"{name}: questions are ranked", f"exit code {code}")
    lines = [json.loads(line) for line in ranked.read_text(encoding="utf-8").splitlines()]
    return {line["query_id"]: [passage["id"] for passage in line["passages"]] for line in lines if "passages" in line}


def phrases_of(data: Path, passages: Sequence[Passage]) -> list[str]:
    """The first distinct entities that the stored extractions name."""
    records = ReplayExtractor(next(data.glob("openie.jsonl*"))).extract(passages)
    return list(islice(dict.fromkeys(entity for record in records for entity in record.entities), PHRASES))


def main(writer: Path, work: Path, data: Path) -> None:
    began = time.monotonic()
    os.environ.update(ENVIRONMENT)
    checks = trials.Checks()
    passages = tuple(islice(read_corpus([next(data.glob("corpus.jsonl*"))]).passages, PASSAGES))
    phrases = phrases_of(data, passages)
    spec = f"vllm:{find_minilm().weights.parent}?dtype=float32"
    ours, theirs = default_embedder(), embedder_from_name(spec)
    assert isinstance(theirs, VllmEmbedder)
    print(f"     vLLM read the model's files: {time.monotonic() - began:.0f} s", flush=True)
    try_refusal(writer, checks)
    starting = time.monotonic()
    theirs.encode(["the first text"])
    print(f"     vLLM started: {time.monotonic() - starting:.0f} s", flush=True)
    check_embedder(theirs)
    try_vectors(ours, theirs, passages, phrases, checks)
    try_speed(ours, theirs, {"phrases": phrases, "passages": [passage.text for passage in passages]})
    closing = time.monotonic()
    theirs.close()
    print(f"     closed: {time.monotonic() - closing:.0f} s", flush=True)
    try_kill(spec, work, checks)
    try_index({"minilm": "minilm", "vllm": spec}, data, passages, work, checks)
    print(f"     in all: {time.monotonic() - began:.0f} s")
    checks.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(*sys.argv[3:] or (demo_folder(),)).resolve())
