"""The verb: facts without a language model, how fast they are made and how well questions are answered by them."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.folders import work_folder
from bench.report import machine, print_rows, write_json
from hippogpu.config import MethodName, SearchConfig
from hippogpu.corpus import Query, read_corpus, read_queries
from hippogpu.embed import Embedder, default_embedder, encode_all
from hippogpu.evaluate import CUTOFFS, evaluate
from hippogpu.index import Index
from hippogpu.openie import Extractor, ReplayExtractor
from hippogpu.openie.spacy import SpacyExtractor
from hippogpu.openie.spacy_model import find_model
from hippogpu.openie.spacy_reader import SpacyReader
from hippogpu.searcher import Searcher
from hippogpu.store import StoredVectors, current_manifest, load_snapshot
from hippogpu.types import Floats, Passage

# Extractions that may lie in a folder of data, and what made them.
STORED = {"openie.jsonl.gz": "stored, by a language model", "openie_spacy.jsonl.gz": "stored, by rules over parses"}
_MEMORY_EVERY = 200
RECALLS = tuple(f"recall@{k}" for k in CUTOFFS)


def spacy(
    folders: Annotated[list[Path], typer.Argument(help="Folders with corpus.jsonl and queries.jsonl.")],
    json: Annotated[Path | None, typer.Option(help="Write the result here.")] = None,
    work: Annotated[Path | None, typer.Option(help="Keep vectors here, so that a rerun encodes nothing.")] = None,
    model: Annotated[str, typer.Option(help="spaCy model; the small English one when not given.")] = "",
    rules: Annotated[bool, typer.Option(help="Also openie_spacy.jsonl.gz, where a folder has it.")] = False,
    speed: Annotated[int, typer.Option(min=0, help="Passages of the first folder to time; 0 times nothing.")] = 1890,
) -> None:
    """Passages a second, phrases, facts, and recall of hippo2 by sentence facts beside other extractions and dense.

    A result that is there already keeps what it says of other folders, when the same model and rules made it.
    """
    console = Console() if sys.stdout.isatty() else Console(width=150)
    extractor = SpacyExtractor(model)
    result: dict[str, Any] = {"bench": "spacy", "extractor": extractor.name, "corpora": {}}
    result |= _earlier(json, extractor.name)
    result["pipes"] = SpacyReader(find_model(model)).pipes
    with work_folder(work) as kept:
        for folder in folders:
            result["corpora"][folder.name] = _corpus(folder, extractor, kept / folder.name, rules=rules)
            _print(folder.name, result["corpora"][folder.name], console)
    if speed:
        passages = list(read_corpus([folders[0]]).passages)[:speed]
        rows = [_timed(model, passages, processes) for processes in (1, 2)]
        result["speed"] = {"machine": machine(), "corpus": folders[0].name, "rows": rows}
        print_rows("reading", list(rows[0]), [list(row.values()) for row in rows], console)
    if json is not None:
        write_json(json, result)


def _earlier(path: Path | None, extractor: str) -> dict[str, Any]:
    """A stored result by the same extractor; empty when there is none."""
    if path is None or not path.is_file():
        return {}
    stored: dict[str, Any] = loads(path.read_text(encoding="utf-8"))
    return stored if stored["extractor"] == extractor else {}


class RememberingEmbedder:
    """Another encoder whose vectors are kept in a folder, so that several indexes encode each text once."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner, self._known = inner, StoredVectors(folder, inner.name, inner.width)
        self.name, self.width, self.window = inner.name, inner.width, inner.window
        self.query_to_fact, self.query_to_passage = inner.query_to_fact, inner.query_to_passage

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The inner encoder's rows. Only an encoder without instructions can be remembered."""
        assert not instruction
        return encode_all(texts, self._inner, known=self._known, on_batch=self._known.keep)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """The inner encoder's counts."""
        return self._inner.token_counts(texts)


def _corpus(folder: Path, extractor: Extractor, work: Path, *, rules: bool) -> dict[str, Any]:
    """Counts and recall by each extraction of a corpus, and dense."""
    passages = tuple(read_corpus([folder]).passages)
    queries = read_queries(folder / "queries.jsonl").queries
    embedder = RememberingEmbedder(default_embedder(), work)
    kinds: dict[str, Extractor] = {"sentence facts": extractor}
    for name in list(STORED)[: 2 if rules else 1]:
        if (folder / name).is_file():
            kinds[STORED[name]] = ReplayExtractor(folder / name)
    rows: dict[str, Any] = {}
    for kind, each in kinds.items():
        with tempfile.TemporaryDirectory() as root:
            counts = _index(Path(root), passages, each, embedder)
            searcher = Searcher.open(root, embedder=embedder)
            rows[kind] = {**counts, **_recall(searcher, queries, "hippo2")}
            rows["dense"] = _recall(searcher, queries, "dense")
    return {"machine": machine(), "passages": len(passages), "questions": len(queries), "rows": rows}


def _index(root: Path, passages: Sequence[Passage], extractor: Extractor, embedder: Embedder) -> dict[str, Any]:
    with Index.open(root, extractor=extractor, embedder=embedder) as index:
        index.add(passages)
        report = index.commit()
    texts = len(set(load_snapshot(root, current_manifest(root)).tables.facts.text))
    counts = {name: report.counts[name] for name in ("phrases", "facts", "synonyms")}
    return {**counts, "fact_texts": texts, "failed": len(report.extraction.failed)}


def _recall(searcher: Searcher, queries: Sequence[Query], method: MethodName) -> dict[str, float]:
    """Recall in percent at each depth, and the share of questions with all gold passages among the first five."""
    config = SearchConfig(method=method, solver="power" if method == "hippo2" else "auto")
    rankings = searcher.rank([query.text for query in queries], k=max(CUTOFFS), config=config)
    ranked = {
        query.id: [hit.passage.id for hit in ranking.hits] for query, ranking in zip(queries, rankings, strict=True)
    }
    gold = {query.id: dict.fromkeys(query.supporting, 1) for query in queries}
    values = evaluate(ranked, gold, depth=max(CUTOFFS)).values
    return {name: round(100 * values[name], 2) for name in (*RECALLS, "all_recall@5")}


def _timed(model: str, passages: Sequence[Passage], processes: int) -> dict[str, Any]:
    """Seconds to the first records (starting and loading, and a batch), and passages a second after them.

    A passage's share of the processes' CPU time, start included, holds on a busy machine too.
    """
    started, used = time.perf_counter(), _children_cpu_s()
    records = SpacyExtractor(model, processes=processes).extract(passages)
    next(records)
    first = time.perf_counter() - started
    count, mib = 0, 0
    for count, _ in enumerate(records, start=1):
        if count % _MEMORY_EVERY == 0:
            mib = max(mib, _largest_child_mib())
    seconds = time.perf_counter() - started - first
    return {
        "processes": processes,
        "passages": len(passages),
        "start_s": round(first, 2),
        "passages_per_s": round(count / seconds, 1),
        "passages_per_cpu_s": round(len(passages) / (_children_cpu_s() - used), 1),
        "largest_process_mib": mib,
    }


def _children_cpu_s() -> float:
    """CPU seconds of the processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _largest_child_mib() -> int:
    """The most memory that any running child has held. (What the system says of ended ones includes their parent's.)"""
    tasks = Path("/proc/self/task").glob("*/children")
    states = [Path(f"/proc/{pid}/status") for task in tasks for pid in task.read_text().split()]
    peaks = [line.split()[1] for state in states for line in state.read_text().splitlines() if line[:6] == "VmHWM:"]
    return max(map(int, peaks), default=0) // 1024


def _print(name: str, corpus: Mapping[str, Any], console: Console) -> None:
    columns = ["", "phrases", "facts", "fact_texts", "synonyms", *RECALLS, "all_recall@5"]
    rows = [[kind, *(row.get(column) for column in columns[1:])] for kind, row in corpus["rows"].items()]
    title = f"{name}: {corpus['passages']} passages, {corpus['questions']} questions; hippo2 by extraction, percent"
    print_rows(title, columns, rows, console)
