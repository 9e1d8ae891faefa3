"""Laws of indexes over corpora that no one chose: what is committed depends on what there is, not on the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from small_index import hashes, index_of, open_index

from hippogpu import Passage, Searcher
from hippogpu.config import PROFILES, IndexConfig, SearchConfig
from hippogpu.store import current_manifest, load_snapshot, verify
from hippogpu.types import UserEdge

CORPORA_A_LAW = settings(max_examples=15, deadline=None)

WORD = st.sampled_from(["ada", "Ada!", "babbage", "the engine", "engines", "—", "北京", "x1", "straße", ""])
TRIPLE = st.tuples(WORD, WORD, WORD).map("|".join)
TEXT = st.lists(TRIPLE, max_size=4).map(";".join)
META = st.sampled_from([{}, {"page": 1}])
BODY = TEXT.map(lambda text: f"a text;{text}")
PASSAGE = st.builds(Passage, st.sampled_from("abcdefg"), st.sampled_from(["", "T"]), BODY, META)
CORPUS = st.lists(PASSAGE, min_size=1, max_size=8, unique_by=lambda passage: passage.id)
PROFILE = st.sampled_from(list(PROFILES.values()))


def committed(root: Path, *parts: Sequence[Passage], config: IndexConfig) -> dict[str, str]:
    """The hashes of all files after one commit a part."""
    for part in parts:
        index_of(root, part, config=config)
    return hashes(root)


@given(corpus=CORPUS, cut=st.integers(1, 7), config=PROFILE)
@CORPORA_A_LAW
def test_adding_in_two_commits_equals_adding_at_once(corpus: list[Passage], cut: int, config: IndexConfig) -> None:
    with TemporaryDirectory() as folder:
        once = committed(Path(folder, "one"), corpus, config=config)
        parts = [part for part in (corpus[:cut], corpus[cut:]) if part]
        assert committed(Path(folder, "two"), *parts, config=config) == once


@given(before=CORPUS, after=CORPUS, config=PROFILE)
@CORPORA_A_LAW
def test_an_index_of_updates_equals_one_of_the_last_texts(
    before: list[Passage], after: list[Passage], config: IndexConfig
) -> None:
    last = {passage.id: passage for passage in [*before, *after]}
    with TemporaryDirectory() as folder:
        updated = committed(Path(folder, "one"), before, after, config=config)
        assert updated == committed(Path(folder, "two"), list(last.values()), config=config)


@given(corpus=CORPUS, config=PROFILE)
@CORPORA_A_LAW
def test_every_index_is_whole_and_a_second_run_changes_nothing(corpus: list[Passage], config: IndexConfig) -> None:
    with TemporaryDirectory() as folder:
        index_of(Path(folder), corpus, config=config)
        assert verify(Path(folder), full=True) == []
        with open_index(Path(folder)) as index:
            assert index.add(corpus).unchanged == len(corpus)
            assert not index.commit().changed


@given(corpus=CORPUS, config=PROFILE)
@CORPORA_A_LAW
def test_every_id_names_its_passage_and_every_passage_is_ranked(corpus: list[Passage], config: IndexConfig) -> None:
    with TemporaryDirectory() as folder:
        index_of(Path(folder), corpus, config=config)
        passages = load_snapshot(Path(folder), current_manifest(Path(folder))).passages
        assert [passages.named(number) for number in range(len(corpus))] == corpus
        (ranking,) = Searcher.open(Path(folder)).rank(
            ["what did ada build?"], k=99, config=SearchConfig(method="hippo2")
        )
        assert {hit.passage.text for hit in ranking.hits} == {passage.text for passage in corpus}
        assert ranking.fallback is not None or sum(hit.score for hit in ranking.hits) <= 1 + 1e-6


IDS, SPELLINGS = st.sampled_from("abcdefg"), st.sampled_from(["Ada", "babbage!", "a tag", "北京", "x1"])
ENDS = st.one_of(
    st.tuples(st.lists(IDS, min_size=2, max_size=2), st.just(())),
    st.tuples(st.lists(IDS, min_size=1, max_size=1), st.lists(SPELLINGS, min_size=1, max_size=1)),
    st.tuples(st.just(()), st.lists(SPELLINGS, min_size=2, max_size=2)),
)
EDGE = st.builds(
    lambda ends, kind, weight: UserEdge(tuple(ends[0]), tuple(ends[1]), kind, weight),
    ENDS,
    st.sampled_from(["link", "tag"]),
    st.sampled_from([0.5, 1.0, 3.0]),
)


def key(edge: UserEdge) -> tuple[object, ...]:
    return frozenset(edge.passages), frozenset(edge.phrases), edge.kind


USER_EDGES = st.lists(EDGE, max_size=8, unique_by=key)


def linked(root: Path, *steps: tuple[Sequence[Passage], Sequence[UserEdge]], config: IndexConfig) -> dict[str, str]:
    """The hashes of all files after one commit a step of passages and edges."""
    for passages, edges in steps:
        with open_index(root, config=config) as index:
            index.add(passages)
            index.add_edges(edges)
            index.commit()
    return hashes(root)


@given(corpus=CORPUS, edges=USER_EDGES, cut=st.integers(0, 8), config=PROFILE, data=st.data())
@CORPORA_A_LAW
def test_user_edges_in_any_order_and_commits_equal_all_at_once(
    corpus: list[Passage], edges: list[UserEdge], cut: int, config: IndexConfig, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(edges))
    with TemporaryDirectory() as folder:
        once = linked(Path(folder, "one"), (corpus, edges), config=config)
        assert linked(Path(folder, "two"), (corpus, shuffled[:cut]), ((), shuffled[cut:]), config=config) == once
        assert verify(Path(folder, "two"), full=True) == []


@given(before=CORPUS, after=CORPUS, edges=USER_EDGES, config=PROFILE)
@CORPORA_A_LAW
def test_updates_of_passages_keep_the_edges_of_their_ids(
    before: list[Passage], after: list[Passage], edges: list[UserEdge], config: IndexConfig
) -> None:
    last = list({passage.id: passage for passage in [*before, *after]}.values())
    held = {passage.id for passage in before}
    known = [edge for edge in edges if held.issuperset(edge.passages)]
    with TemporaryDirectory() as folder:
        updated = linked(Path(folder, "one"), (before, edges), (after, ()), config=config)
        assert updated == linked(Path(folder, "two"), (last, known), config=config)


@given(corpus=CORPUS, edges=USER_EDGES, config=PROFILE)
@CORPORA_A_LAW
def test_the_same_passages_and_edges_again_change_nothing(
    corpus: list[Passage], edges: list[UserEdge], config: IndexConfig
) -> None:
    with TemporaryDirectory() as folder:
        linked(Path(folder), (corpus, edges), config=config)
        with open_index(Path(folder)) as index:
            index.add(corpus)
            report = index.add_edges(edges)
            assert (report.added, report.updated, report.duplicates) == (0, 0, 0)
            assert not index.commit().changed
