"""Real questions in a growing sea of real passages: what each method still finds."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from bench.checks import all_passed, equal
from bench.report import machine
from bench.scale.ledger import digest_of
from bench.scale.quality_asking import GROUPS, MEASURES, METHODS, Say, asked, gold_checks, milliseconds
from bench.scale.quality_corpus import (
    SEED,
    Order,
    Questions,
    Sea,
    by_digest,
    by_source,
    chosen,
    digest_of_texts,
    with_copies,
    write_corpus,
)
from bench.scale.quality_index import CORPUS, ENCODER, EXTRACTOR, Pooled, make_index, ready_pool
from hippogpu.config import IndexConfig, RunConfig
from hippogpu.disk import write_atomically
from hippogpu.embed import embedder_from_name
from hippogpu.evaluate import (
    EncodedOnce,
)
from hippogpu.searcher import Searcher
from hippogpu.types import Passage

VARIANTS: Mapping[str, IndexConfig] = {
    "exact": IndexConfig(),
    "cells": IndexConfig(synonym_search="cells"),
    "cells, quantised facts": IndexConfig(synonym_search="cells", fact_vectors="int8", fact_search="ivfpq"),
}


class Case(NamedTuple):
    """An index to be made and asked: of so many passages, in an order of the distractors, by settings of that name."""

    size: int
    variant: str = "exact"
    order: Order = "near"

    @property
    def name(self) -> str:
        return f"{self.size:,} {self.order}, {self.variant}"

    @property
    def file(self) -> str:
        return f"{self.size}-{self.order}-{self.variant.replace(', ', '-').replace(' ', '-')}"


class Bench(NamedTuple):
    """What every case of a work folder is made of."""

    work: Path
    sea: Sea
    questions: Questions
    say: Say

    def passages(self, case: Case) -> list[Passage]:
        """Those of a case, in the sea's order."""
        return chosen(self.sea, self.questions.golden(), case.size, case.order)


Store = Callable[[Case, dict[str, Any]], None]


def cases_of(sizes: Sequence[int], exact_up_to: int, order: Order = "near") -> list[Case]:
    """Synonyms exact up to a size and by cells beyond; both at the last exact one; quantised facts at the largest."""
    cases = [Case(size, "exact" if size <= exact_up_to else "cells", order) for size in sorted(set(sizes))]
    exact = [case for case in cases if case.variant == "exact"]
    both = [exact[-1]._replace(variant="cells")] if exact and order == "near" else []
    last = [cases[-1]._replace(variant="cells, quantised facts")] if order == "near" else []
    return [*cases, *both, *last]


def run_cases(bench: Bench, cases: Sequence[Case], store: Store) -> bool:
    """Measures each case that the work folder has not, and hands each to store as soon as it is there.

    Returns whether all checks passed. The pool is made first, of all passages of all cases, when a case needs it.
    """
    opened: tuple[Path, Pooled] | None = None
    passed = True
    for case in cases:
        path = bench.work / "cases" / f"{case.file}-{_digest(bench, case)}.json"
        if path.exists():
            bench.say(f"{case.name}: was done before")
            result = json.loads(path.read_text(encoding="utf-8"))
        else:
            pool, embedder = opened = opened or _open_pool(bench, cases)
            result = _measured(bench, case, pool, embedder)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(result).encode())
        passed &= all(check["passed"] for check in result["checks"])
        store(case, result)
    return passed


def _open_pool(bench: Bench, cases: Sequence[Case]) -> tuple[Path, Pooled]:
    ids = {passage.id for case in cases for passage in bench.passages(case)}
    passages = [passage for passage in bench.sea.passages if passage.id in ids]
    write_corpus(bench.work / CORPUS, passages)
    pool = ready_pool(bench.work, passages)
    return pool, Pooled(pool, embedder_from_name(ENCODER))


def _digest(bench: Bench, case: Case) -> str:
    asked = [[query.id, query.text, *query.supporting] for query in bench.questions.queries]
    settings = asdict(VARIANTS[case.variant])
    texts = digest_of_texts(bench.passages(case))
    return digest_of(json.dumps([case, settings, texts, asked, METHODS, MEASURES, ENCODER, EXTRACTOR]))


def _measured(bench: Bench, case: Case, pool: Path, embedder: Pooled) -> dict[str, Any]:
    """An index made and asked; it is removed when all is known."""
    passages = by_digest(bench.passages(case))
    root = bench.work / "index" / f"{case.file}.hippo"
    before, where = embedder.encoded, machine()
    bench.say(f"{case.name}: the index is made")
    used = time.process_time()
    report = make_index(root, pool, passages, embedder, VARIANTS[case.variant], _Told(bench.say, case.name))
    used, encoded = time.process_time() - used, embedder.encoded - before
    searcher = Searcher.open(root, embedder=EncodedOnce(embedder), run=RunConfig(backend="cpu"))
    methods, found = asked(bench.questions, searcher, passages, bench.say)
    checks = [equal("passages of the index", report.counts["passages"], case.size), *gold_checks(found["dense"])]
    result: dict[str, Any] = {
        **{"size": case.size, "order": case.order, "variant": case.variant},
        "settings": _settings(VARIANTS[case.variant]),
        "sources": by_source(passages),
        "gold_with_copies": with_copies(passages, bench.questions.golden()),
        "counts": dict(report.counts),
        "unread": len(report.extraction.failed),
        "encoded_anew": encoded,
        "build_s": {name: round(seconds, 2) for name, seconds in report.seconds.items()},
        "build_cpu_s": round(used, 2),
        "machine": {**where, "load_after": round(os.getloadavg()[0], 2)},
        "checks": [check._asdict() for check in checks],
        "methods": methods,
    }
    if all_passed(checks):
        for method in METHODS:
            result["methods"][method]["ms"] = milliseconds(bench.questions, searcher, method)
    del searcher
    shutil.rmtree(root)
    return result


def _settings(config: IndexConfig) -> dict[str, str]:
    names = ("passage_vectors", "phrase_vectors", "fact_vectors", "synonym_search", "fact_search")
    return {name: getattr(config, name) for name in names}


class _Told:
    """Says when a stage of a commit begins, and no more than twice a minute how far it is."""

    def __init__(self, say: Say, name: str) -> None:
        self._say, self._name = say, name
        self._stage, self._told = "", time.monotonic()

    def __call__(self, stage: str, done: int, whole: int) -> None:
        now = time.monotonic()
        if stage != self._stage or now - self._told > 30:
            self._say(f"  {stage}: {done:,} of {whole:,}")
            self._stage, self._told = stage, now


def results_of(bench: Bench, cases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the file of results says of the questions and of all passages, around the cases."""
    return {
        "bench": "scale quality",
        "questions": {group: len(bench.questions.of(group)) for group in GROUPS},
        "gold_passages": len(bench.questions.golden()),
        "asked_passages": bench.sea.asked,
        "modern_passages": bench.sea.modern,
        "extractor": EXTRACTOR,
        "encoder": ENCODER,
        "seed": SEED,
        "cases": dict(cases),
    }
