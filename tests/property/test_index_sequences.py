"""Any life of an index leaves what one build of the survivors makes, array for array."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from index_sequences import STORED, differing

from hippogpu import Index, IndexConfig, Passage, ReplayExtractor, RunConfig
from hippogpu.demo import demo_folder, demo_passages
from hippogpu.store import current_manifest

SEQUENCES = int(os.environ.get("HIPPOGPU_SEQUENCES", "8"))


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_any_inserts_deletes_and_updates_in_any_commits_equal_one_build_of_the_survivors(
    seed: int, tmp_path: Path
) -> None:
    assert differing(seed, tmp_path, Counter()) == []


@pytest.mark.parametrize("config", STORED, ids=["float16", "int8", "mixed"])
def test_so_it_is_with_vectors_in_fewer_bytes(config: IndexConfig, tmp_path: Path) -> None:
    for seed in range(max(1, SEQUENCES // 4)):
        assert differing(100 + seed, tmp_path / str(seed), Counter(), config) == []


def of_minilm(root: Path, *parts: tuple[list[Passage], list[str]]) -> dict[str, str]:
    """The hashes of an index by the default encoder, one commit a part of passages to add and ids to delete."""
    for passages, gone in parts:
        extractor = ReplayExtractor(demo_folder() / "openie.jsonl.gz")
        with Index.open(root, extractor=extractor, run=RunConfig(grace_s=0.0)) as index:
            index.add(passages)
            index.delete(gone)
            index.commit()
    return {role: entry.sha256 for role, entry in current_manifest(root).files.items()}


def test_the_default_encoder_too_gives_the_same_arrays_whatever_the_commits(tmp_path: Path) -> None:
    some = list(demo_passages()[:9])
    once = of_minilm(tmp_path / "once", (some[:7], []))
    parts = [(some[:1], []), ([*some[1:4], some[8]], []), (some[3:8], [some[7].id, some[8].id])]
    assert of_minilm(tmp_path / "lived", *parts) == once
