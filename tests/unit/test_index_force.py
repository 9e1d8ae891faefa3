"""Forced runs: every passage is read again, every text encoded again; what fails keeps what it had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from small_index import PASSAGES, WIDTH, Counting, Saying, file_of, hashes, index_of, open_index

from hippogpu import Index, Passage, Record, Triple
from hippogpu.config import ForceRule
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ConfigError
from hippogpu.index import CommitReport
from hippogpu.store import current_manifest, load_snapshot


class Changed(Saying):
    """Says something else than before, under the same name; remembers whether it was told to forget."""

    forgot = 0

    def extract(self, passages: Iterable[Passage]) -> Iterator[Record]:
        for record in super().extract(passages):
            yield record if record.error else Record(record.passage_id, (Triple("a new", "reading of", "it"),))

    def forget(self) -> None:
        self.forgot += 1


def forced(
    root: Path, rule: ForceRule, *, extractor: Saying | None = None, embedder: HashingEmbedder | None = None
) -> CommitReport:
    with open_index(root, extractor=extractor, embedder=embedder) as index:
        index.add(PASSAGES)
        return index.commit(force=rule)


@pytest.mark.parametrize("rule", ["extract", "build", "all"])
def test_a_forced_run_over_the_same_makes_the_same_index(made: Path, rule: ForceRule) -> None:
    before, extractor, embedder = hashes(made), Saying(), Counting()
    assert forced(made, rule, extractor=extractor, embedder=embedder).generation == 2
    assert hashes(made) == before
    assert bool(extractor.seen) == (rule != "build")
    assert bool(embedder.texts) == (rule != "extract")


def test_a_forced_reading_takes_the_place_of_the_earlier_one(made: Path, tmp_path: Path) -> None:
    extractor = Changed()
    forced(made, "extract", extractor=extractor)
    assert (sorted(extractor.seen), extractor.forgot) == ([passage.id for passage in PASSAGES], 1)
    index_of(tmp_path / "fresh", extractor=Changed())
    assert hashes(made) == hashes(tmp_path / "fresh")


def test_another_extractor_takes_over_when_it_is_forced(made: Path) -> None:
    forced(made, "extract", extractor=Changed(name="other"))
    assert set(load_snapshot(made, current_manifest(made)).passages.extractors) == {"other"}


def test_where_a_forced_reading_fails_the_earlier_record_stays(made: Path) -> None:
    before = load_snapshot(made, current_manifest(made)).tables.statements.row(1).size
    report = forced(made, "extract", extractor=Changed(failing=["p1"]))
    assert report.extraction.failed == (("p1", "down"),)
    assert load_snapshot(made, current_manifest(made)).tables.statements.row(1).size == before


def test_a_forced_reading_that_was_cut_short_goes_on_when_forced_again(made: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        forced(made, "extract", extractor=Changed(stop_after=2))
    extractor = Changed()
    forced(made, "extract", extractor=extractor)
    assert (len(extractor.seen), extractor.forgot) == (3, 0)
    again = Changed()
    forced(made, "extract", extractor=again)
    assert len(again.seen) == 5


def test_a_forced_reading_that_was_cut_short_leaves_the_index_as_it_was(made: Path) -> None:
    before = hashes(made)
    with pytest.raises(KeyboardInterrupt):
        forced(made, "all", extractor=Changed(stop_after=2))
    assert hashes(made) == before


def test_a_reading_can_be_forced_before_the_commit(made: Path) -> None:
    extractor = Changed()
    with open_index(made, extractor=extractor) as index:
        assert index.extract(forced=True).done == 5
        assert index.commit().generation == 2
    assert len(extractor.seen) == 5


def test_a_forced_reading_needs_an_extractor(made: Path) -> None:
    with (
        Index.open(made, embedder=HashingEmbedder(WIDTH)) as index,
        pytest.raises(ConfigError, match="needs an extractor"),
    ):
        index.commit(force="extract")


def test_a_forced_build_takes_no_vector_from_the_index(made: Path) -> None:
    """An encoder that was mended under its old name: its vectors replace those that are stored."""

    class Mended(HashingEmbedder):
        def encode(self, texts, *, instruction: str = "") -> np.ndarray:
            return -super().encode(texts, instruction=instruction)

    before = np.load(file_of(made, "phrase_vectors"))
    forced(made, "build", embedder=Mended(WIDTH))
    assert np.array_equal(np.load(file_of(made, "phrase_vectors")), -before)
