"""Indexes that grow by commits, timed one by one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.stored import Stored
from hippogpu.config import DiffuseRule, RunConfig
from hippogpu.embed import Embedder
from hippogpu.index import Index
from hippogpu.store import current_manifest
from hippogpu.types import Floats


class Commit(NamedTuple):
    """One add and its commit: the passages there are after it, its seconds, and those of each stage."""

    passages: int
    seconds: float
    stages: Mapping[str, float]
    counts: Mapping[str, int]


class AllSeen:
    """An encoder that holds every row it gave, and gives it again."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.name, self.width, self.window = inner.name, inner.width, inner.window
        self.query_to_fact, self.query_to_passage = inner.query_to_fact, inner.query_to_passage
        self._rows: dict[tuple[str, str], Floats] = {}

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """The inner encoder's rows, each text asked of it once."""
        missing = [text for text in dict.fromkeys(texts) if (instruction, text) not in self._rows]
        fresh = self._inner.encode(missing, instruction=instruction) if missing else ()
        self._rows.update(((instruction, text), row) for text, row in zip(missing, fresh, strict=True))
        return np.stack([self._rows[instruction, text] for text in texts])

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """The inner encoder's counts."""
        return self._inner.token_counts(texts)


def grow(
    root: Path, stored: Stored, embedder: Embedder, *, batch: int, passages: int, diffuse: DiffuseRule
) -> list[Commit]:
    """The first passages in one index, a batch a commit; each removes the generation before."""
    with Index.open(root, extractor=stored.extractor, embedder=embedder, run=RunConfig(grace_s=0)) as index:
        return [
            _commit(index, stored, start, min(start + batch, passages), diffuse) for start in range(0, passages, batch)
        ]


def one_commit(
    root: Path, stored: Stored, embedder: Embedder, passages: int, *, diffuse: DiffuseRule, start: int = 0
) -> Commit:
    """The passages from start to so many in one commit; the index is opened for it, which is not timed."""
    with Index.open(root, extractor=stored.extractor, embedder=embedder, run=RunConfig(grace_s=0)) as index:
        return _commit(index, stored, start, passages, diffuse)


def _commit(index: Index, stored: Stored, start: int, stop: int, diffuse: DiffuseRule) -> Commit:
    started = time.perf_counter()
    index.add(stored.passages[start:stop])
    report = index.commit(diffuse=diffuse)
    seconds = time.perf_counter() - started
    rest = seconds - sum(report.seconds.values())
    return Commit(stop, seconds, {**report.seconds, "rest": rest}, report.counts)


def files_of(root: Path) -> dict[str, str]:
    """The SHA-256 of each file of the current generation, by role."""
    return {role: entry.sha256 for role, entry in current_manifest(root).files.items()}
