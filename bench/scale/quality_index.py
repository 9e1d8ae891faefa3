"""The pool, in which every passage is read and encoded once, and an index of any size made of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hippogpu.config import IndexConfig
from hippogpu.embed import Embedder
from hippogpu.errors import HippoError
from hippogpu.index import CommitReport, Index
from hippogpu.index.build import known_vectors
from hippogpu.store import current_manifest, has_index, load_snapshot, logs_folder
from hippogpu.types import Floats, Passage

POOL, CORPUS, CONFIG = "pool.hippo", "corpus.jsonl", "pool.toml"
ENCODER, EXTRACTOR = "minilm", "spacy"
_SOURCE = Path(__file__).parents[2]
# The pool is there for its records and vectors: nobody walks over its graph.
_POOL_CONFIG = '[index]\nsynonym_search = "cells"\nsynonym_cap = 0\n'

OnStage = Callable[[str, int, int], None]


class Pooled:
    """An encoder that looks every text up among the vectors of a pool, and encodes by another what is not there.

    encoded : how many texts were not there
    """

    def __init__(self, pool: Path, inner: Embedder) -> None:
        self._inner = inner
        self._known = known_vectors(pool, load_snapshot(pool, current_manifest(pool)), inner)
        self.name, self.width, self.window = inner.name, inner.width, inner.window
        self.query_to_fact, self.query_to_passage = inner.query_to_fact, inner.query_to_passage
        self.encoded = 0

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """(len(texts), w) float32; with an instruction nothing is looked up, as the pool was encoded without."""
        if instruction:
            return self._inner.encode(texts, instruction=instruction)
        found, rows = self._known.get(texts)
        made = np.empty((len(texts), self.width), np.float32)
        made[found] = rows
        missing = np.flatnonzero(~found)
        if len(missing):
            made[missing] = self._inner.encode([texts[row] for row in missing.tolist()])
            self.encoded += len(missing)
        return made

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """The inner encoder's counts."""
        return self._inner.token_counts(texts)


def ready_pool(work: Path, passages: Sequence[Passage]) -> Path:
    """The pool with all these passages, made or extended by `hippogpu index`, which goes on where it was killed.

    A pool that holds them is used as it is. HippoError when the verb fails.
    """
    pool = work / POOL
    if has_index(pool):
        held = set(load_snapshot(pool, current_manifest(pool)).passages.ids)
        if all(passage.id in held for passage in passages):
            return pool
    words = [sys.executable, "-m", "hippogpu", "index", str(pool.resolve()), str((work / CORPUS).resolve())]
    words += ["--extractor", EXTRACTOR, "--encoder", ENCODER, "--diffuse", "never"]
    if not has_index(pool):
        (work / CONFIG).write_text(_POOL_CONFIG, encoding="utf-8")
        words += ["--config", str((work / CONFIG).resolve())]
    status = subprocess.run(words, cwd=_SOURCE, check=False).returncode
    if status not in (0, 1) or not has_index(pool):
        raise HippoError(f"The pool '{pool}' was not finished (exit {status}). The same command goes on with it.")
    return pool


def make_index(
    root: Path,
    pool: Path,
    passages: Sequence[Passage],
    embedder: Embedder,
    config: IndexConfig,
    on_stage: OnStage | None = None,
) -> CommitReport:
    """An index of the passages by their records in the pool; what a killed call has finished is not done again.

    A passage that the pool's extractor could not read is in it without a record, as it is in the pool.
    """
    if not has_index(root):
        shutil.copytree(logs_folder(pool), logs_folder(root), dirs_exist_ok=True)
    with Index.open(root, embedder=embedder, config=config, encoder_spec=ENCODER) as index:
        index.add(passages)
        return index.commit(diffuse="never", on_progress=on_stage)
