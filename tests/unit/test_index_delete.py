"""Deleting: what is left is the index that never had the passages."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_index import PASSAGES, WIDTH, Counting, Saying, hashes, index_of, open_index, stating

from hippogpu import Index, Passage, Searcher, UserEdge
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import CorpusError, UsageError
from hippogpu.index import DeleteReport
from hippogpu.store import current_manifest, load_snapshot, verify
from hippogpu.types import Floats


def deleted(root: Path, *ids: str) -> DeleteReport:
    with open_index(root) as index:
        report = index.delete(ids)
        index.commit()
    return report


def ids(root: Path) -> list[str]:
    return list(load_snapshot(root, current_manifest(root)).passages.ids)


@pytest.mark.parametrize("gone", [{0}, {4}, {1, 2}, {0, 2, 4}])
def test_what_is_left_is_the_index_that_never_had_them(made: Path, tmp_path: Path, gone: set[int]) -> None:
    ids = tuple(PASSAGES[i].id for i in gone)
    assert deleted(made, *ids) == DeleteReport(ids, ())
    index_of(tmp_path / "never", [passage for i, passage in enumerate(PASSAGES) if i not in gone])
    assert hashes(made) == hashes(tmp_path / "never")


def test_an_id_that_is_not_held_is_reported_and_the_others_go(made: Path) -> None:
    assert deleted(made, "p1", "nobody", "p1", "p3") == DeleteReport(("p1", "p3"), ("nobody",))
    assert ids(made) == ["p0", "p2", "p4"]


def test_deleting_nothing_leaves_the_generation(made: Path) -> None:
    with open_index(made) as index:
        assert index.delete(["nobody"]) == DeleteReport((), ("nobody",))
        assert not index.commit().changed


def test_a_text_in_place_of_ids_is_a_usage_error(made: Path) -> None:
    with open_index(made) as index, pytest.raises(UsageError, match=r"list of ids, not one text: \['p1'\]"):
        index.delete("p1")


def test_a_deletion_reads_and_encodes_nothing(made: Path) -> None:
    extractor, embedder = Saying(), Counting()
    with open_index(made, extractor=extractor, embedder=embedder) as index:
        index.delete(["p1"])
        index.commit()
    assert (extractor.seen, embedder.texts) == ([], [])


def test_a_deletion_needs_no_extractor(made: Path) -> None:
    with Index.open(made, embedder=HashingEmbedder(WIDTH)) as index:
        index.delete(["p1"])
        assert index.commit().counts["ids"] == 4


def test_what_comes_back_is_not_read_again_and_stands_at_the_end(made: Path, tmp_path: Path) -> None:
    deleted(made, "p1")
    extractor = Saying()
    index_of(made, PASSAGES, extractor=extractor)
    assert (extractor.seen, ids(made)) == ([], ["p0", "p2", "p3", "p4", "p1"])
    index_of(tmp_path / "fresh", [*PASSAGES[:1], *PASSAGES[2:], PASSAGES[1]])
    assert hashes(made) == hashes(tmp_path / "fresh")


def test_what_was_added_and_deleted_before_a_commit_never_was(made: Path) -> None:
    before = hashes(made)
    with open_index(made) as index:
        index.add([stating("new", "x|y|z")])
        assert index.delete(["new"]).deleted == 1
        index.commit()
    assert hashes(made) == before


def test_the_text_of_a_deleted_id_stays_under_the_other(root: Path, tmp_path: Path) -> None:
    """Each id keeps its own title, also when the one that came first is gone."""
    one, other = Passage("one", "Ada", "x\nnotes"), Passage("other", "Ada\nx", "notes")
    index_of(root, [one, other])
    deleted(root, "one")
    assert load_snapshot(root, current_manifest(root)).passages.passage(0) == other
    index_of(tmp_path / "never", [other])
    assert hashes(root) == hashes(tmp_path / "never")


def test_another_title_of_the_same_text_is_an_update(root: Path, tmp_path: Path) -> None:
    one, other = Passage("p", "Ada", "notes"), Passage("p", "", "Ada\nnotes")
    index_of(root, [one])
    with open_index(root) as index:
        assert index.add([other])[:3] == (0, 1, 0)
        index.commit()
    index_of(tmp_path / "fresh", [other])
    assert hashes(root) == hashes(tmp_path / "fresh")


def test_edges_of_ones_own_go_with_their_passages(made: Path, tmp_path: Path) -> None:
    edges = [UserEdge(("p0", "p1")), UserEdge(("p1",), ("tag",)), UserEdge(("p2", "p3"))]
    for root, passages, some in ((made, PASSAGES, edges), (tmp_path / "x", [*PASSAGES[:1], *PASSAGES[2:]], edges[2:])):
        with open_index(root) as index:
            index.add(passages)
            index.add_edges(some)
            index.commit()
    assert deleted(made, "p1").edges_gone == 2
    assert hashes(made) == hashes(tmp_path / "x")


def test_an_index_that_lost_all_is_empty_whole_and_answers_nothing(made: Path) -> None:
    assert deleted(made, *(passage.id for passage in PASSAGES)).deleted == 5
    assert (current_manifest(made).counts["nodes"], verify(made, full=True)) == (0, [])
    assert Searcher.open(made).rank(["who wrote notes?", "x"])[1].hits == ()


def test_an_index_that_lost_all_is_filled_again_as_a_new_one(made: Path) -> None:
    before = hashes(made)
    deleted(made, *(passage.id for passage in PASSAGES))
    index_of(made)
    assert hashes(made) == before


def test_deleting_all_that_was_never_committed_makes_no_index(root: Path) -> None:
    with open_index(root) as index:
        index.add(PASSAGES[:1])
        index.delete(["p0"])
        with pytest.raises(CorpusError, match="no passage"):
            index.commit()


def test_ids_are_chosen_by_what_their_passages_are(root: Path) -> None:
    index_of(root, [PASSAGES[0]._replace(meta={"page": 1}), *PASSAGES[1:]])
    with open_index(root) as index:
        assert index.ids_where(lambda passage: passage.meta.get("page") == 1) == ["p0"]
        assert index.ids_where(lambda passage: "Babbage" in passage.text) == ["p1", "p2"]


def test_a_failure_while_committing_leaves_what_was_there(made: Path) -> None:
    class Broken(HashingEmbedder):
        def encode(self, texts, *, instruction: str = "") -> Floats:
            raise RuntimeError("broken")

    before = hashes(made)
    with open_index(made, embedder=Broken(WIDTH)) as index:
        index.delete(["p1"])
        index.add([stating("new", "x|y|zzz")])
        with pytest.raises(RuntimeError):
            index.commit()
    assert hashes(made) == before
