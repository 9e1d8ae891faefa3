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
from hippogpu.errors import ConfigError, StoredIndexError
from hippogpu.index import CommitReport, clean_index
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


def of_reading(root: Path) -> list[int]:
    """How many statements each passage has: Changed makes one of each."""
    statements = load_snapshot(root, current_manifest(root)).tables.statements
    return np.diff(statements.indptr).tolist()


def test_a_forced_reading_without_a_build_goes_into_the_next_commit(made: Path) -> None:
    with open_index(made, extractor=Changed()) as index:
        index.extract(forced=True)
    with open_index(made) as index:
        assert index.commit().changed
    assert of_reading(made) == [1, 1, 1, 1, 1]


def test_once_it_went_into_an_index_the_next_forced_reading_begins_anew(made: Path) -> None:
    with open_index(made, extractor=Changed()) as index:
        index.extract(forced=True)
        index.commit()
    again = Changed()
    forced(made, "extract", extractor=again)
    assert (len(again.seen), again.forgot) == (5, 1)


def test_what_is_added_behind_a_forced_reading_does_not_undo_it(made: Path) -> None:
    extractor = Changed(name="other")
    with open_index(made, extractor=extractor) as index:
        index.extract(forced=True)
        index.add([PASSAGES[0]._replace(id="twin")])
        index.commit()
    assert set(load_snapshot(made, current_manifest(made)).passages.extractors) == {"other"}


def test_a_forced_reading_that_was_told_to_stop_is_not_done(made: Path) -> None:
    extractor = Changed()
    with open_index(made, extractor=extractor) as index:
        assert index.extract(forced=True, stop=lambda: len(extractor.seen) == 2).untouched == 3
    with open_index(made) as index:
        assert not index.commit().changed
    again = Changed()
    forced(made, "extract", extractor=again)
    assert (len(again.seen), of_reading(made)) == (3, [1, 1, 1, 1, 1])


def test_a_failed_forced_reading_leaves_the_record_of_its_own_reader(made: Path) -> None:
    """Also where the list of readers is gone, and another one has read the passage too."""
    before = of_reading(made)
    with open_index(made, extractor=Changed(name="third")) as index:
        index.extract(forced=True)
    clean_index(made, grace_s=0.0, unfinished=True)
    (made / "openie" / "extractors.json").unlink()
    forced(made, "extract", extractor=Changed(name="other", failing=["p1"]))
    snapshot = load_snapshot(made, current_manifest(made))
    assert list(snapshot.passages.extractors) == ["other", "saying", "other", "other", "other"]
    assert of_reading(made) == [1, before[1], 1, 1, 1]


def test_a_forced_commit_that_failed_is_made_up_for_by_the_next(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_index(made, extractor=Changed()) as index:
        with monkeypatch.context() as broken:
            broken.setattr("hippogpu.index.writer.build", failing_build)
            with pytest.raises(StoredIndexError):
                index.commit(force="extract")
        assert index.commit().changed
    assert of_reading(made) == [1, 1, 1, 1, 1]


def failing_build(*parts: object, **named: object) -> CommitReport:
    raise StoredIndexError("the disk is full")


def test_lines_that_a_crash_tore_do_not_count(made: Path) -> None:
    with (made / "openie" / "saying.jsonl").open("ab") as log:
        log.write(b'{"crc":"torn')
    with pytest.raises(KeyboardInterrupt):
        forced(made, "extract", extractor=Changed(stop_after=1))
    again = Changed()
    forced(made, "extract", extractor=again)
    assert (len(again.seen), again.forgot) == (4, 0)


def test_a_forced_build_uses_no_vector_of_an_unfinished_one(made: Path) -> None:
    class Wrong(HashingEmbedder):
        def encode(self, texts, *, instruction: str = "") -> np.ndarray:
            return -super().encode(texts, instruction=instruction)

    before = hashes(made)
    with open_index(made, embedder=Wrong(WIDTH)) as index, pytest.MonkeyPatch.context() as broken:
        broken.setattr("hippogpu.index.build.find_synonyms", failing_build)
        with pytest.raises(StoredIndexError):
            index.commit(force="build")
    assert list((made / "vectors").rglob("float32-*.npy"))
    forced(made, "build")
    assert hashes(made) == before
