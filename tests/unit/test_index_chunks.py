"""Long documents in chunks: whole documents come, change and go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from small_index import Saying, hashes, index_of, open_index, stating

from hippogpu import IndexConfig, Passage, ReplayExtractor, UserEdge
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ConfigError
from hippogpu.index import AddReport
from hippogpu.store import current_manifest, load_snapshot

CONFIG = IndexConfig(chunk_tokens=8, chunk_overlap=0)


class Words(HashingEmbedder):
    """An encoder whose tokens are words."""

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


class Failing(Words):
    """One that fails at a word."""

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        if any("broken" in text for text in texts):
            raise RuntimeError("broken")
        return super().token_counts(texts)


def document(id_: str, sentences: int, *, word: str = "Word") -> Passage:
    """A text of so many sentences, each as long as a chunk may be."""
    return Passage(id_, "", " ".join(f"{word} {i} is here now." for i in range(sentences)))


def ids(root: Path) -> list[str]:
    return list(load_snapshot(root, current_manifest(root)).passages.ids)


def added(root: Path, *passages: Passage) -> AddReport:
    with open_index(root, embedder=Words(32), config=CONFIG) as index:
        report = index.add(passages)
        index.commit()
    return report


def test_a_long_document_is_stored_as_numbered_chunks_that_name_it(root: Path) -> None:
    added(root, document("d", 3), document("s", 1))
    passages = load_snapshot(root, current_manifest(root)).passages
    assert list(passages.ids) == ["d#0", "d#1", "d#2", "s"]
    assert passages.passage(1).meta["chunk_of"] == "d"


def test_a_second_run_over_chunks_changes_nothing(root: Path) -> None:
    added(root, document("d", 3))
    assert not index_of(root, [document("d", 3)], embedder=Words(32)).changed


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (3, 1), (1, 3)])
def test_an_update_of_a_document_replaces_all_its_chunks(root: Path, before: int, after: int) -> None:
    added(root, document("d", before))
    added(root, document("d", after, word="Other"))
    expected = [f"d#{i}" for i in range(after)] if after > 1 else ["d"]
    assert sorted(ids(root)) == expected
    texts = load_snapshot(root, current_manifest(root)).passages.wholes
    assert all(text.startswith("Other") for text in texts)


def test_an_updated_document_equals_a_fresh_index(root: Path, tmp_path: Path) -> None:
    added(root, document("d", 4))
    added(root, document("d", 2, word="Other"))
    added(tmp_path / "fresh", document("d", 2, word="Other"))
    assert hashes(root) == hashes(tmp_path / "fresh")


def test_a_document_twice_with_other_content_is_refused_whole(root: Path) -> None:
    report = added(root, document("d", 2), document("d", 4, word="Other"))
    assert (ids(root), len(report.refused)) == (["d#0", "d#1"], 1)


def test_a_document_twice_with_the_same_content_is_one_duplicate(root: Path) -> None:
    assert added(root, document("d", 2), document("d", 2)).duplicates == 1


def test_an_unfit_update_leaves_the_chunks_of_the_document(root: Path) -> None:
    added(root, document("d", 3))
    for bad in (Passage("d", "", " "), Passage("d", "", document("d", 5).text + "\ud800")):
        assert len(added(root, bad).refused) == 1
        assert ids(root) == ["d#0", "d#1", "d#2"]


def test_a_title_that_leaves_no_room_is_refused_and_the_others_go_on(root: Path) -> None:
    report = added(root, document("s", 1), document("d", 3)._replace(title="very " * 20))
    assert (ids(root), "no room" in report.refused[0].reason) == (["s"], True)


@pytest.mark.parametrize("order", [1, -1])
def test_a_chunk_whose_id_another_passage_has_is_refused_with_its_document(root: Path, order: int) -> None:
    report = added(root, *[stating("d#1", "mine"), document("d", 3)][::order])
    assert (len(report.refused), "d#1" in report.refused[0].reason + report.refused[0].where) == (1, True)
    assert ids(root) == (["d#1"] if order == 1 else ["d#0", "d#1", "d#2"])


def test_a_document_does_not_take_the_id_of_a_passage_that_was_there(root: Path) -> None:
    added(root, stating("d#1", "mine"))
    assert len(added(root, document("d", 3)).refused) == 1
    assert ids(root) == ["d#1"]


@pytest.mark.parametrize("id_", ["d#0", "part-1"])
def test_without_chunking_a_chunk_of_in_meta_means_nothing(root: Path, id_: str) -> None:
    part = Passage(id_, "", "x|y|z", {"chunk_of": "d"})
    index_of(root, [part])
    index_of(root, [stating("d", "a|b|c")])
    assert ids(root) == [id_, "d"]


def test_with_chunking_a_chunk_of_other_programs_is_not_replaced(root: Path) -> None:
    added(root, Passage("part-1", "", "short", {"chunk_of": "d"}))
    added(root, document("d", 1))
    assert ids(root) == ["part-1", "d"]


def test_stored_extractions_are_refused_with_chunking(root: Path, tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text('{"_id": "a", "entities": [], "triples": []}')
    extractor = ReplayExtractor(tmp_path / "o.jsonl")
    with pytest.raises(ConfigError, match="whole passages"):
        open_index(root, extractor=extractor, config=CONFIG)  # type: ignore[arg-type]


def test_each_chunk_is_read_by_the_extractor(root: Path) -> None:
    extractor = Saying()
    index_of(root, [document("d", 3)], extractor=extractor, embedder=Words(32), config=CONFIG)
    assert extractor.seen == ["d#0", "d#1", "d#2"]


@pytest.mark.parametrize(("before", "after"), [(5, 9), (5, 2), (1, 4), (4, 1)])
def test_an_updated_document_keeps_its_place_among_the_others(
    root: Path, tmp_path: Path, before: int, after: int
) -> None:
    new = document("a", after, word="Other")
    added(root, document("a", before), document("b", 2))
    added(root, new)
    added(tmp_path / "once", new, document("b", 2))
    assert hashes(root) == hashes(tmp_path / "once")


def test_a_deleted_document_takes_all_its_chunks_along(root: Path, tmp_path: Path) -> None:
    added(root, document("a", 3), document("b", 2))
    with open_index(root, embedder=Words(32)) as index:
        assert index.delete(["a", "b#1"]).deleted == 4
        index.commit()
    assert ids(root) == ["b#0"]
    with open_index(root, embedder=Words(32)) as index:
        index.add([document("b", 2)])
        index.commit()
    added(tmp_path / "once", document("b", 2))
    assert hashes(root) == hashes(tmp_path / "once")


def test_a_passage_of_ones_own_does_not_take_the_id_of_a_chunk(root: Path) -> None:
    added(root, document("a", 3))
    assert len(added(root, stating("a#1", "mine")).refused) == 1
    assert ids(root) == ["a#0", "a#1", "a#2"]


def test_a_passage_that_calls_itself_a_chunk_is_refused(root: Path) -> None:
    report = added(root, Passage("a#7", "", "short", {"chunk_of": "a"}), document("a", 1))
    assert (ids(root), "give another id" in report.refused[0].reason) == (["a"], True)


def test_a_failure_while_chunking_takes_nothing_in(root: Path) -> None:
    """Else the first document would have lost chunks, and edges that end there would make the index unusable."""
    added(root, document("a", 5), document("b", 1))
    with open_index(root, embedder=Words(32)) as index:
        index.add_edges([UserEdge(("a#4",), ("a tag",))])
        index.commit()
    before = hashes(root)
    with open_index(root, embedder=Failing(32)) as index:
        with pytest.raises(RuntimeError):
            index.add([document("a", 2, word="Other"), document("b", 2, word="broken")])
        assert not index.commit().changed
    assert hashes(root) == before
