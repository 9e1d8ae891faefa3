"""User edges in an index beside its facts: kept over commits, updated by later runs, and gone without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from small_index import PASSAGES, WIDTH, Counting, Saying, file_of, hashes, index_of, open_index, stating
from test_index_chunks import CONFIG, Words, document

from hippogpu import Passage, Searcher
from hippogpu.backends import load_backend
from hippogpu.config import SearchConfig
from hippogpu.corpus import read_edges
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import IndexDamagedError
from hippogpu.index import EdgeReport
from hippogpu.methods import Asked, Clock, Queries, Verdict, load
from hippogpu.methods.hippo2 import NO_FACT, rank_hippo2
from hippogpu.store import current_manifest, load_snapshot, publish, verify, write_user_edges
from hippogpu.store.user_edges import ROLES
from hippogpu.types import UserEdge

EDGES = [
    UserEdge(("p1", "p3"), (), "link", 2.0),
    UserEdge(("p3",), ("The Engine!",), "tag"),
    UserEdge((), ("Steam", "Power of coal"), "heading", 0.5),
]


def with_edges(root: Path, edges: Sequence[UserEdge] = EDGES, passages: Sequence[Passage] = PASSAGES) -> EdgeReport:
    """One commit of passages and edges."""
    with open_index(root) as index:
        index.add(passages)
        report = index.add_edges(edges)
        index.commit()
    return report


def weight(root: Path, one: str, other: str) -> float:
    """The weight in the graph between two nodes: passages by id, phrases by text."""
    snapshot = load_snapshot(root, current_manifest(root))
    nodes = [*snapshot.passages.ids, *snapshot.tables.phrases]
    row = slice(*snapshot.graph.indptr[nodes.index(one) :][:2])
    found = snapshot.graph.indices[row] == nodes.index(other)
    return float(snapshot.graph.weights[row][found].sum())


def test_user_edges_join_the_nodes_they_name(root: Path) -> None:
    assert with_edges(root) == EdgeReport(3, 0, 0, 0, ())
    pairs = [("p1", "p3"), ("p3", "the engine"), ("steam", "power of coal")]
    assert [weight(root, *pair) for pair in pairs] == [2.0, 1.0, 0.5]
    assert current_manifest(root).counts["user_edges"] == 3
    assert verify(root, full=True) == []


def test_a_phrase_of_an_edge_alone_is_encoded_and_looks_for_synonyms(root: Path) -> None:
    with_edges(root, [UserEdge(("p3",), ("Charles Babbage, Charles",), "tag")])
    assert 0.8 <= weight(root, "charles babbage charles", "charles babbage") < 1


def test_a_passage_that_an_edge_gives_a_phrase_counts_in_the_phrases_specificity(root: Path, tmp_path: Path) -> None:
    index_of(tmp_path / "plain")
    with_edges(root, [UserEdge(("p3",), ("steam",))])
    plain, tagged = (Searcher.open(path).rank(["what ran on steam?"])[0].seeds for path in (tmp_path / "plain", root))
    shares = [{seed.phrase: seed.weight for seed in seeds}["steam"] for seeds in (plain, tagged)]
    assert shares[1] == pytest.approx(shares[0] / 2)


def test_the_same_edges_again_change_nothing(root: Path) -> None:
    with_edges(root)
    before = hashes(root)
    with open_index(root, embedder=Counting()) as index:
        assert index.add_edges(reversed(EDGES)) == EdgeReport(0, 0, 3, 0, ())
        assert not index.commit().changed
    assert hashes(root) == before


def test_edges_alone_are_a_change_that_reads_and_encodes_no_passage_again(made: Path) -> None:
    extractor, embedder = Saying(), Counting()
    with open_index(made, extractor=extractor, embedder=embedder) as index:
        index.add_edges(EDGES)
        assert index.commit().changed
    assert (extractor.seen, embedder.texts) == ([], ["power of coal"])


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_edges_in_two_commits_in_any_order_equal_one(root: Path, tmp_path: Path, cut: int) -> None:
    with_edges(root)
    with_edges(tmp_path / "two", EDGES[cut:])
    with_edges(tmp_path / "two", EDGES[:cut], ())
    assert hashes(tmp_path / "two") == hashes(root)


def test_spellings_and_directions_of_one_edge_are_one(root: Path, tmp_path: Path) -> None:
    with_edges(root, [UserEdge(("p1", "p3")), UserEdge((), ("Ada!", "bob"))])
    again = [UserEdge(("p3", "p1")), UserEdge((), ("BOB", "ada"))]
    with open_index(root) as index:
        assert index.add_edges(again).unchanged == 2
    with_edges(tmp_path / "other", again)
    assert hashes(tmp_path / "other") == hashes(root)


def test_a_later_run_may_change_a_weight(root: Path, tmp_path: Path) -> None:
    heavier = [UserEdge(("p1", "p3"), (), "link", 5.0)]
    with_edges(root)
    assert with_edges(root, heavier) == EdgeReport(0, 1, 0, 0, ())
    with_edges(tmp_path / "fresh", [*heavier, *EDGES[1:]])
    assert hashes(tmp_path / "fresh") == hashes(root)


def test_an_edge_twice_in_one_run_is_a_duplicate_or_refused_by_its_weight(root: Path) -> None:
    edge = UserEdge(("p1", "p3"), (), "link", 2.0, where="edges.jsonl:7")
    twice = [EDGES[0], EDGES[0], UserEdge(edge.passages, (), "link", 3.0, edge.where)]
    report = with_edges(root, twice)
    assert (report[:4], [refusal.where for refusal in report.refused]) == ((1, 0, 0, 1), ["edges.jsonl:7"])
    assert weight(root, "p1", "p3") == 2.0


def test_kinds_of_one_pair_are_edges_of_their_own_of_which_the_greatest_weighs(root: Path) -> None:
    report = with_edges(root, [EDGES[0], UserEdge(("p1", "p3"), (), "tag", 3.0)])
    assert (report.added, weight(root, "p1", "p3")) == (2, 3.0)


@pytest.mark.parametrize(
    ("edge", "reason"),
    [
        (UserEdge(("p1", "gone")), "no passage of the index has the id 'gone'"),
        (UserEdge(("p1",), ("—!",)), "a phrase has no letter or number: '—!'"),
        (UserEdge((), ("Ada", "ada!")), "'Ada' and 'ada!' are one: 'ada'"),
        (UserEdge(("p1", "p2", "p3")), "this one has 3"),
        (UserEdge(("p1", "p2"), weight=0.0), "weight"),
    ],
)
def test_an_edge_that_the_index_cannot_hold_is_refused_and_the_others_go_on(
    root: Path, edge: UserEdge, reason: str
) -> None:
    report = with_edges(root, [*EDGES, edge])
    assert (report.added, report.refused[0].where) == (3, "edge 4")
    assert reason in report.refused[0].reason


def test_a_refused_edge_of_a_file_is_listed_with_its_line(root: Path, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("passage,other_passage\np1,p3\np1,gone\n")
    report = with_edges(root, read_edges(tmp_path / "e.csv").edges)
    assert [str(refusal) for refusal in report.refused] == [
        f"{tmp_path / 'e.csv'}: row 3: no passage of the index has the id 'gone'"
    ]


def test_an_update_of_a_passage_keeps_its_edges(root: Path, tmp_path: Path) -> None:
    new = stating("p3", "Something|is|stated")
    with_edges(root)
    index_of(root, [new])
    with_edges(tmp_path / "fresh", EDGES, [*PASSAGES[:3], new, PASSAGES[4]])
    assert (weight(root, "p1", "p3"), hashes(root)) == (2.0, hashes(tmp_path / "fresh"))


def test_ids_of_one_passage_share_its_edges_and_an_edge_between_them_joins_nothing(root: Path) -> None:
    twin = PASSAGES[1]._replace(id="twin")
    with_edges(root, [UserEdge(("twin", "p3")), UserEdge(("twin", "p1"))], [*PASSAGES, twin])
    assert (weight(root, "p1", "p3"), current_manifest(root).counts["user_edges"]) == (1.0, 2)
    assert weight(root, "p1", "p1") == 0


def test_the_id_of_a_document_stands_for_all_its_chunks(root: Path) -> None:
    with open_index(root, embedder=Words(WIDTH), config=CONFIG) as index:
        index.add([document("d", 3), document("s", 1, word="Other")])
        assert index.add_edges([UserEdge(("d", "s")), UserEdge(("d#1",), ("chapter two",))]).added == 2
        index.commit()
    assert [weight(root, f"d#{i}", "s") for i in range(3)] == [1, 1, 1]
    assert [weight(root, f"d#{i}", "chapter two") for i in range(3)] == [0, 1, 0]


def test_the_edges_of_a_document_follow_its_new_chunks(root: Path) -> None:
    with open_index(root, embedder=Words(WIDTH), config=CONFIG) as index:
        index.add([document("d", 3), document("s", 1, word="Other")])
        index.add_edges([UserEdge(("d", "s"))])
        index.commit()
        assert index.add([document("d", 1)]).edges_gone == 0
        index.commit()
    assert weight(root, "d", "s") == 1


def test_an_edge_of_a_chunk_goes_with_it_as_if_it_had_never_come(root: Path, tmp_path: Path) -> None:
    for path, edges in ((root, [UserEdge(("d#2",), ("chapter three",))]), (tmp_path / "never", [])):
        with open_index(path, embedder=Words(WIDTH), config=CONFIG) as index:
            index.add([document("d", 3)])
            index.add_edges(edges)
            index.commit()
            assert index.add([document("d", 2)]).edges_gone == len(edges)
            index.commit()
    assert hashes(root) == hashes(tmp_path / "never")


def test_an_index_without_user_edges_has_none_of_their_files_and_opens(made: Path) -> None:
    manifest = current_manifest(made)
    assert not {*ROLES} & {*manifest.files} | {"user_edges"} & {*manifest.counts}
    assert len(load_snapshot(made, manifest).tables.user_edges.source) == 0


@pytest.mark.parametrize("role", ROLES)
def test_a_cut_file_of_user_edges_is_damage_that_names_it(root: Path, role: str) -> None:
    with_edges(root)
    path = file_of(root, role)
    path.write_bytes(path.read_bytes()[:-1])
    assert role in verify(root)[0]
    with pytest.raises(IndexDamagedError, match=role):
        load_snapshot(root, current_manifest(root))


@pytest.mark.parametrize("role", ROLES)
def test_a_manifest_that_names_only_some_files_of_user_edges_is_damaged(root: Path, role: str) -> None:
    with_edges(root)
    manifest = current_manifest(root)
    files = {name: entry for name, entry in manifest.files.items() if name != role}
    with pytest.raises(IndexDamagedError, match=f"no file for '{role}'"):
        load_snapshot(root, replace(manifest, files=files))


@pytest.mark.parametrize("edge", [UserEdge(("p1", "gone")), UserEdge(("p1", "p3"), weight=-1.0)])
def test_a_stored_edge_that_is_none_is_damage_to_a_writer(root: Path, edge: UserEdge) -> None:
    with_edges(root)
    manifest, nodes = current_manifest(root), load_snapshot(root, current_manifest(root)).tables.user_edges
    files = {**manifest.files, **write_user_edges(root, [edge], nodes)}
    publish(root, replace(manifest, generation=manifest.generation + 1, files=files))
    with pytest.raises(IndexDamagedError, match="stored user edge 'link' of"):
        open_index(root)


class KeepingNone:
    """A filter that keeps no fact."""

    name = "nothing"

    def __call__(self, questions: Sequence[str], candidates: object) -> list[Verdict]:
        return [Verdict(())] * len(questions)


def test_where_there_are_facts_a_question_that_keeps_none_still_ranks_by_dense_similarity(root: Path) -> None:
    with_edges(root)
    made = load(load_snapshot(root, current_manifest(root)), load_backend("reference"))
    rows = HashingEmbedder(WIDTH).encode(["steam"])
    asked = Asked(["steam"], Queries(rows, rows), KeepingNone())
    (found,) = rank_hippo2(made, asked, k=9, config=SearchConfig(), clock=Clock())
    assert found.fallback == NO_FACT
