"""Vectors of an index, encoded in windows: each text once, nothing twice after a failure, stored as asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_index import PASSAGES, Counting, file_of, hashes, index_of, open_index, stating

from hippogpu import IndexConfig, Passage, Record, SearchConfig, Searcher, Triple
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import IndexDamagedError
from hippogpu.index import encoding
from hippogpu.precision import ScaledRows, float_rows, kind_of, rounded
from hippogpu.store import Snapshot, current_manifest, load_snapshot, verify
from hippogpu.store.text_keys import first_of_equal, keys_of
from hippogpu.types import Floats

MIXED = IndexConfig(passage_vectors="float16", phrase_vectors="float32", fact_vectors="int8")
KINDS = ("float32", "float16", "int8")


def all_as(kind) -> IndexConfig:
    return IndexConfig(passage_vectors=kind, phrase_vectors=kind, fact_vectors=kind)


def snapshot_of(root: Path) -> Snapshot:
    return load_snapshot(root, current_manifest(root))


class SameText:
    """States facts that are all told by one text."""

    name = "same text"

    def extract(self, passages: Sequence[Passage]) -> Iterator[Record]:
        for passage in passages:
            yield Record(passage.id, (Triple(passage.id, "is in", "the sentence", "one sentence"),))


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "WINDOW_TEXTS", 3)
    monkeypatch.setattr(encoding, "_SURVEYED_TEXTS", 2)
    monkeypatch.setattr(encoding, "_GATHERED_ROWS", 2)
    monkeypatch.setattr(encoding, "KEPT_BYTES", 200)


@pytest.mark.parametrize("most", [1, 7, 10, 1000])
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33])
def test_windows_are_all_texts_once_and_hold_no_more_characters_than_they_may(most: int, count: int) -> None:
    lengths = np.random.default_rng(count).integers(0, 9, count).astype(np.int32)
    parts = list(encoding.windows(lengths, most))
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(count))
    assert all(lengths[part].sum() <= most or part.stop - part.start == 1 for part in parts)


@pytest.mark.parametrize("config", [IndexConfig(), all_as("int8"), MIXED], ids=["float32", "int8", "mixed"])
def test_windows_change_no_array(config: IndexConfig, tmp_path: Path, small_windows: None) -> None:
    index_of(tmp_path / "windows", config=config)
    with pytest.MonkeyPatch.context() as wide:
        wide.setattr(encoding, "WINDOW_TEXTS", 1 << 18)
        index_of(tmp_path / "one", config=config)
    assert hashes(tmp_path / "windows") == hashes(tmp_path / "one")


def test_a_text_that_facts_share_is_encoded_once_across_windows(tmp_path: Path, small_windows: None) -> None:
    embedder = Counting()
    passages = [stating(f"p{number}", f"text {number}") for number in range(20)]
    with open_index(tmp_path / "it", extractor=SameText(), embedder=embedder) as index:  # type: ignore[arg-type]
        index.add(passages)
        index.commit()
    assert len(embedder.texts) == len(set(embedder.texts)) == 20 + 21 + 1
    rows = snapshot_of(tmp_path / "it").fact_vectors
    assert rows.shape[0] == 20
    assert np.array_equal(rows, np.repeat(HashingEmbedder(32).encode(["one sentence"]), 20, axis=0))


def test_progress_counts_each_distinct_text_once_and_ends_at_the_whole(tmp_path: Path, small_windows: None) -> None:
    seen: list[tuple[int, int]] = []
    with open_index(tmp_path / "it", extractor=SameText()) as index:  # type: ignore[arg-type]
        index.add([stating(f"p{number}", f"text {number}") for number in range(9)])
        index.commit(on_progress=lambda name, done, whole: name == "encode" and seen.append((done, whole)))
    done = [one for one, _ in seen]
    assert done == sorted(set(done))
    assert done[0] == 0
    assert {whole for _, whole in seen} == {done[-1]}


class Failing(Counting):
    """Is cut short when it is given its fourth block."""

    blocks = 0

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        self.blocks += 1
        if self.blocks == 4:
            raise KeyboardInterrupt
        return super().encode(texts, instruction=instruction)


@pytest.mark.parametrize("config", [IndexConfig(), all_as("float16"), MIXED], ids=["float32", "float16", "mixed"])
def test_what_was_encoded_before_a_failure_is_not_encoded_again(
    config: IndexConfig, tmp_path: Path, small_windows: None
) -> None:
    root, first, again = tmp_path / "it", Failing(), Counting()
    with open_index(root, embedder=first, config=config) as index:
        index.add(PASSAGES)
        with pytest.raises(KeyboardInterrupt):
            index.commit()
    index_of(root, embedder=again, config=config)
    assert len(first.texts) >= 7
    assert set(first.texts).isdisjoint(again.texts)
    index_of(tmp_path / "undisturbed", config=config)
    assert hashes(root) == hashes(tmp_path / "undisturbed")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_texts_rounded_once(kind, tmp_path: Path) -> None:
    index_of(tmp_path / "it", config=all_as(kind))
    snapshot, encoder = snapshot_of(tmp_path / "it"), HashingEmbedder(32)
    texts = {
        "passage": snapshot.passages.wholes,
        "phrase": snapshot.tables.phrases,
        "fact": snapshot.tables.facts.text,
    }
    for name, some in texts.items():
        rows = getattr(snapshot, f"{name}_vectors")
        assert kind_of(rows) == kind
        expected = float_rows(rounded(encoder.encode(list(some)), kind), slice(None))
        assert np.array_equal(float_rows(rows, slice(None)), expected)
    assert verify(tmp_path / "it", full=True) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_stored_is_not_encoded_again_in_any_type(kind, tmp_path: Path) -> None:
    config = all_as(kind)
    index_of(tmp_path / "grown", PASSAGES[:3], config=config)
    before = {text for row in [snapshot_of(tmp_path / "grown")] for text in (*row.passages.wholes, *row.tables.phrases)}
    embedder = Counting()
    index_of(tmp_path / "grown", PASSAGES[3:], embedder=embedder, config=config)
    assert before.isdisjoint(embedder.texts)
    index_of(tmp_path / "once", config=config)
    assert hashes(tmp_path / "grown") == hashes(tmp_path / "once")


def test_scales_are_there_with_int8_and_only_then(tmp_path: Path) -> None:
    index_of(tmp_path / "it", config=MIXED)
    roles = current_manifest(tmp_path / "it").files
    assert [role for role in roles if role.endswith("_scales")] == ["fact_scales"]
    assert isinstance(snapshot_of(tmp_path / "it").fact_vectors, ScaledRows)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("method", ["hippo", "hippo2", "dense"])
def test_an_index_of_each_type_answers_as_one_in_float32(kind, method, tmp_path: Path) -> None:
    best = []
    for config in (IndexConfig(), all_as(kind)):
        root = tmp_path / config.fact_vectors
        index_of(root, config=config)
        hits = Searcher.open(root).rank(["who built the engine?"], config=SearchConfig(method=method))[0].hits
        best.append([hit.passage.id for hit in hits[:2]])
    assert best[0] == best[1]


@pytest.mark.parametrize("role", ["fact_vectors", "fact_scales"])
def test_a_flipped_byte_of_int8_rows_is_found(role: str, tmp_path: Path) -> None:
    index_of(tmp_path / "it", config=all_as("int8"))
    path = file_of(tmp_path / "it", role)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert any(path.name in line for line in verify(tmp_path / "it", full=True))


@pytest.mark.parametrize("role", ["fact_scales", "fact_vectors"])
def test_int8_rows_without_their_scales_or_numbers_are_refused(role: str, tmp_path: Path) -> None:
    index_of(tmp_path / "it", config=all_as("int8"))
    manifest = current_manifest(tmp_path / "it")
    files = {name: entry for name, entry in manifest.files.items() if name != role}
    with pytest.raises(IndexDamagedError, match=role):
        load_snapshot(tmp_path / "it", replace(manifest, files=files))


def test_texts_that_repeat_are_told_by_their_first(tmp_path: Path) -> None:
    texts = ["b", "a", "b", "c", "a", "b"]
    assert first_of_equal(keys_of(texts, 6)).tolist() == [0, 1, 0, 3, 1, 0]
