"""Full verification finds every single flipped byte, and names where it lies.

By default a sample of the bytes is flipped. HIPPOGPU_FLIPS=all flips every byte of every file by a random mask, and
every single bit of the manifest, of CURRENT and of the extraction log.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_index import PASSAGES, WIDTH, Saying

from hippogpu import Index
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.index import verify_index
from hippogpu.openie import verify_log
from hippogpu.store import current_manifest, files_folder, logs_folder
from hippogpu.store.generations import manifest_path
from hippogpu.types import UserEdge

ALL = os.environ.get("HIPPOGPU_FLIPS") == "all"
BITS = tuple(1 << bit for bit in range(8))
EDGES = [UserEdge(("p0", "p4")), UserEdge(("p1",), ("Analytical Engine",), "tag", 0.5)]
ROLES = (
    *("ids", "passages", "phrases", "facts", "mentions_indptr", "mentions", "statements_indptr", "statements"),
    *("passage_vectors", "phrase_vectors", "fact_vectors", "graph_indptr", "graph_indices", "graph_weights"),
    *("synonym_source", "synonym_target", "synonym_weight", "diffused_vectors", "diffused_ones"),
    *("edges", "edge_source", "edge_target", "edge_weight"),
    *("words", "word_indptr", "word_passages", "word_counts", "word_lengths", "title_words_indptr", "title_words"),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that has every file there can be."""
    root = tmp_path_factory.mktemp("flips") / "small.hippo"
    with Index.open(root, extractor=Saying(failing=["p3"]), embedder=HashingEmbedder(WIDTH)) as index:
        index.add(PASSAGES)
        index.add_edges(EDGES)
        index.commit(diffuse="always")
    return root


def flips(path: Path, *, most: int, masks: tuple[int, ...] = ()) -> Iterator[tuple[int, int]]:
    """Places and masks: all there are, or about so many. Without masks each byte gets a random one that is not 0."""
    size, draw = path.stat().st_size, random.Random(path.name)
    for at in range(size) if ALL else sorted(draw.sample(range(size), min(most, size))):
        own = masks or (draw.randrange(1, 256),)
        for mask in own if ALL else (draw.choice(own),):
            yield at, mask


@contextmanager
def flipped(path: Path, at: int, mask: int) -> Iterator[None]:
    """The file with one byte altered in its place, and as it was again afterwards."""
    good = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([good[at] ^ mask]))
    try:
        yield
    finally:
        path.write_bytes(good)


def test_the_index_that_is_flipped_has_every_file_and_no_problem(kept: Path) -> None:
    assert set(current_manifest(kept).files) == set(ROLES)
    assert verify_index(kept, full=True) == []


@pytest.mark.parametrize("role", ROLES)
def test_every_flipped_byte_of_a_file_is_found_and_named(kept: Path, role: str) -> None:
    path = files_folder(kept) / current_manifest(kept).files[role].file
    for at, mask in flips(path, most=5):
        with flipped(path, at, mask):
            problems = verify_index(kept, full=True)
        assert [path.name in line for line in problems] == [True], (at, mask, problems)


@pytest.mark.parametrize("name", ["CURRENT", "manifest"])
def test_every_flipped_bit_of_the_pointer_and_the_manifest_is_found_and_named(kept: Path, name: str) -> None:
    manifest = manifest_path(kept, current_manifest(kept).generation)
    path = manifest if name == "manifest" else kept / "CURRENT"
    for at, mask in flips(path, most=60, masks=BITS):
        with flipped(path, at, mask):
            problems = verify_index(kept, full=True)
        assert [str(path) in line for line in problems] == [True], (at, mask, problems)


def test_every_flipped_bit_of_an_extraction_log_is_found_and_its_line_named(kept: Path) -> None:
    (log,) = logs_folder(kept).glob("*.jsonl")
    good = log.read_bytes()
    for at, mask in flips(log, most=100, masks=BITS):
        with flipped(log, at, mask):
            problems = verify_log(log)
        line = good.count(b"\n", 0, at) + 1
        assert any(problem.startswith(f"{log}:{line}: ") for problem in problems), (at, mask, problems)


def test_a_flipped_byte_of_a_log_is_told_beside_those_of_files_and_only_in_full(kept: Path) -> None:
    (log,) = logs_folder(kept).glob("*.jsonl")
    path = files_folder(kept) / current_manifest(kept).files["mentions"].file
    with flipped(log, 99, 1), flipped(path, 140, 1):
        problems = verify_index(kept, full=True)
        assert [str(log) in problems[-1], path.name in problems[0], len(problems)] == [True, True, 2]
        assert verify_index(kept) == []


def test_every_damaged_file_has_a_line_of_its_own(kept: Path) -> None:
    paths = [files_folder(kept) / current_manifest(kept).files[role].file for role in ("ids", "graph_weights", "edges")]
    with flipped(paths[0], 700, 1), flipped(paths[1], 140, 8), flipped(paths[2], 2, 1):
        problems = verify_index(kept, full=True)
    assert sorted(path.name for path in paths for line in problems if path.name in line) == sorted(
        p.name for p in paths
    )
    assert len(problems) == len(paths)
