"""What a commit holds, and that the way there leaves no trace in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_index import PASSAGES, WIDTH, Counting, Saying, hashes, index_of, open_index, stating

from hippogpu import IndexConfig, Searcher
from hippogpu.config import PROFILES
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import ConfigError, CorpusError, EncoderMismatchError, IndexDamagedError, UsageError
from hippogpu.store import current_manifest, load_snapshot, verify, write_graph
from hippogpu.store.files import Entry
from hippogpu.types import Csr, Edges

PROFILE = [PROFILES["default"], PROFILES["oracle"]]


def counts(root: Path) -> dict[str, int]:
    return dict(current_manifest(root).counts)


def test_the_counts_are_those_of_the_corpus(made: Path) -> None:
    have = counts(made)
    assert have | {"synonyms": 0, "edges": 0} == {
        **{"passages": 5, "ids": 5, "without_record": 0, "phrases": 10, "facts": 7, "fact_pairs": 6, "mentions": 11},
        **{"synonyms": 0, "nodes": 15, "edges": 0},
    }
    assert have["edges"] >= have["mentions"] + have["fact_pairs"]


def test_a_second_run_calls_no_model_and_changes_nothing(made: Path) -> None:
    before, extractor, embedder = (made / "CURRENT").stat(), Saying(), Counting()
    report = index_of(made, extractor=extractor, embedder=embedder)
    assert (report.changed, report.generation, extractor.seen, embedder.texts) == (False, 1, [], [])
    assert (made / "CURRENT").stat() == before
    assert report.extraction.reused == 5


def test_an_unchanged_index_needs_no_extractor(made: Path) -> None:
    from hippogpu import Index

    with Index.open(made, embedder=HashingEmbedder(WIDTH)) as index:
        assert index.add(PASSAGES).unchanged == 5
        assert not index.commit().changed


def test_each_text_is_encoded_once(root: Path) -> None:
    embedder = Counting()
    index_of(root, [*PASSAGES, PASSAGES[0]._replace(id="twin")], embedder=embedder)
    assert len(embedder.texts) == len(set(embedder.texts))


@pytest.mark.parametrize("config", PROFILE)
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_two_commits_equal_one_file_for_file(tmp_path: Path, config: IndexConfig, cut: int) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    index_of(one, config=config)
    index_of(two, PASSAGES[: cut + 1], config=config)
    index_of(two, PASSAGES[cut + 1 :], config=config)
    assert hashes(one) == hashes(two)


def test_two_adds_in_one_commit_equal_one_file_for_file(made: Path, tmp_path: Path) -> None:
    with open_index(tmp_path / "two") as index:
        index.add(PASSAGES[:2])
        index.add(PASSAGES[1:])
        index.commit()
    assert hashes(made) == hashes(tmp_path / "two")


def test_the_second_commit_reads_and_encodes_only_what_is_new(made: Path) -> None:
    extractor, embedder = Saying(), Counting()
    new = stating("p9", "Ada Lovelace|wrote|a letter")
    index_of(made, [*PASSAGES, new], extractor=extractor, embedder=embedder)
    assert extractor.seen == ["p9"]
    assert set(embedder.texts) == {"a letter", "ada lovelace wrote a letter", "Ada Lovelace|wrote|a letter"}


def test_an_update_equals_an_index_of_the_new_text(made: Path, tmp_path: Path) -> None:
    new = stating("p1", "someone else|wrote|it")
    with open_index(made) as index:
        assert index.add([new])[:3] == (0, 1, 0)
        index.commit()
    index_of(tmp_path / "fresh", [PASSAGES[0], new, *PASSAGES[2:]])
    assert hashes(made) == hashes(tmp_path / "fresh")


def test_an_update_and_its_reversal_equal_the_first_index_without_reading_again(made: Path) -> None:
    before, extractor = hashes(made), Saying()
    index_of(made, [stating("p1", "someone else|wrote|it")])
    index_of(made, [PASSAGES[1]], extractor=extractor)
    assert (hashes(made), extractor.seen) == (before, [])


def test_two_ids_of_one_text_are_one_passage_under_both_ids(root: Path) -> None:
    twin = PASSAGES[1]._replace(id="twin", meta={"page": 2})
    index_of(root, [*PASSAGES, twin])
    passages = load_snapshot(root, current_manifest(root)).passages
    assert (len(passages), list(passages.ids)) == (5, [p.id for p in [*PASSAGES, twin]])
    assert (passages.named(5), passages.passage(1)) == (twin, PASSAGES[1])


def test_twins_are_unchanged_on_the_next_run(root: Path) -> None:
    twins = [stating("a", "x\ny", title="T"), stating("b", "y", title="T\nx")]
    index_of(root, twins)
    with open_index(root) as index:
        assert index.add(twins)[:3] == (0, 0, 2)
        assert not index.commit().changed


@pytest.mark.parametrize(
    "meta", [{"pages": (1, 2)}, {1: "x"}, {"x": float("nan")}, {"x": {"y": None}}, {"é": "\u2028"}]
)
def test_any_meta_that_json_takes_is_unchanged_on_the_next_run(root: Path, meta: dict[object, object]) -> None:
    passages = [PASSAGES[0]._replace(meta=meta)]
    index_of(root, passages)
    assert not index_of(root, passages).changed


def test_new_meta_is_an_update(made: Path) -> None:
    with open_index(made) as index:
        assert index.add([PASSAGES[0]._replace(meta={"x": 1})]).updated == 1
        assert index.commit().generation == 2
    assert load_snapshot(made, current_manifest(made)).passages.passage(0).meta == {"x": 1}


def test_an_id_again_is_a_duplicate_or_refused_by_its_content(root: Path) -> None:
    with open_index(root) as index:
        report = index.add([PASSAGES[0], PASSAGES[0], PASSAGES[0]._replace(text="other")])
    assert (report.added, report.duplicates, len(report.refused)) == (1, 1, 1)
    assert "p0" in report.refused[0].reason


@pytest.mark.parametrize(
    "bad", [stating("", "x"), stating("a", " ", title="\n"), stating("a", "\ud800"), stating("\udfff", "x")]
)
def test_a_passage_that_cannot_be_stored_is_refused_and_the_others_go_on(root: Path, bad) -> None:
    with open_index(root) as index:
        report = index.add([bad, *PASSAGES])
        index.commit()
    assert (report.added, len(report.refused), counts(root)["ids"]) == (5, 1, 5)


def test_a_meta_that_is_no_json_is_refused(root: Path) -> None:
    with open_index(root) as index:
        (refusal,) = index.add([PASSAGES[0]._replace(meta={"x": {1, 2}})]).refused
    assert "meta is no JSON" in refusal.reason


def test_an_unfit_update_leaves_the_known_passage(made: Path) -> None:
    before = hashes(made)
    with open_index(made) as index:
        assert len(index.add([stating("p1", "")]).refused) == 1
        assert not index.commit().changed
    assert hashes(made) == before


@pytest.mark.parametrize("passages", [[stating("a", "no fact")], [stating("a", "no"), stating("b", "none")]])
@pytest.mark.parametrize("config", PROFILE)
def test_a_corpus_without_facts_is_an_index(root: Path, passages, config: IndexConfig) -> None:
    index_of(root, passages, config=config)
    assert (counts(root)["facts"], counts(root)["passages"], verify(root, full=True)) == (0, len(passages), [])
    assert not index_of(root, passages).changed


def test_nothing_to_index_is_an_error(root: Path) -> None:
    with pytest.raises(CorpusError, match="no passage"):
        index_of(root, [])


def test_new_passages_need_an_extractor(made: Path) -> None:
    from hippogpu import Index

    with Index.open(made, embedder=HashingEmbedder(WIDTH)) as index:
        index.add([stating("new", "x|y|z")])
        with pytest.raises(ConfigError, match="1 texts have no record"):
            index.commit()


def test_another_encoder_is_refused_by_name(made: Path) -> None:
    with pytest.raises(EncoderMismatchError, match=r"'hashing-32' \(width 32\), not with 'hashing-64'"):
        open_index(made, embedder=HashingEmbedder(64))


def test_another_width_under_the_same_name_is_refused(made: Path) -> None:
    wide = HashingEmbedder(64)
    wide.name = "hashing-32"
    for opening in (lambda: open_index(made, embedder=wide), lambda: Searcher.open(made, embedder=wide)):
        with pytest.raises(EncoderMismatchError, match=r"width 32.*width 64"):
            opening()


def test_other_settings_than_the_indexs_own_are_refused(made: Path) -> None:
    with pytest.raises(ConfigError, match=r"built with synonym_cap 100, not 7\."):
        open_index(made, config=IndexConfig(synonym_cap=7))


def test_an_index_keeps_its_settings_when_none_are_given(root: Path) -> None:
    index_of(root, config=PROFILES["oracle"])
    with open_index(root) as index:
        assert index.config == PROFILES["oracle"]


def test_a_file_in_place_of_the_folder_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        open_index(tmp_path / "x")


def test_a_closed_index_does_not_commit(made: Path) -> None:
    index = open_index(made)
    index.close()
    with pytest.raises(UsageError, match="closed"):
        index.commit()


def test_what_was_added_but_not_committed_is_forgotten(made: Path) -> None:
    with open_index(made) as index:
        index.add([stating("new", "x|y|z")])
    assert counts(made)["ids"] == 5


def test_a_reader_keeps_its_answers_while_a_writer_commits(made: Path) -> None:
    reader = Searcher.open(made)
    before = reader.rank(["who wrote notes?"], k=9)[0].hits
    index_of(made, [stating("p1", "x|y|z"), stating("p8", "who|wrote|notes")])
    assert reader.rank(["who wrote notes?"], k=9)[0].hits == before
    assert len(Searcher.open(made).rank(["who wrote notes?"], k=9)[0].hits) == 6


def test_vectors_of_the_index_are_those_of_its_texts(made: Path) -> None:
    snapshot, encoder = load_snapshot(made, current_manifest(made)), HashingEmbedder(WIDTH)
    texts = [f"{p.title}\n{p.text}" if p.title else p.text for p in PASSAGES]
    assert np.array_equal(snapshot.passage_vectors, encoder.encode(texts))
    assert np.array_equal(snapshot.phrase_vectors, encoder.encode(snapshot.tables.phrases))
    assert np.array_equal(snapshot.fact_vectors, encoder.encode(snapshot.tables.facts.text))


def test_a_fact_text_with_half_a_character_does_not_stop_a_commit(root: Path) -> None:
    class Odd(Saying):
        def extract(self, passages):
            return (record_of(passage) for passage in passages)

    from hippogpu import Record, Triple

    def record_of(passage):
        return Record(passage.id, (Triple("a\ud800", "p", "b", "text \ud800"),))

    assert index_of(root, extractor=Odd()).counts["facts"] == 1


def test_a_generation_that_could_not_be_opened_is_not_published(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(root: Path, graph: Csr, synonyms: Edges) -> dict[str, Entry]:
        files = write_graph(root, graph, synonyms)
        (root / "files" / files["graph_weights"].file).write_bytes(b"")
        return files

    monkeypatch.setattr("hippogpu.index.build.write_graph", cut)
    with pytest.raises(IndexDamagedError, match="graph_weights-"):
        index_of(made, [stating("new", "x|y|zzz")])
    assert (current_manifest(made).generation, verify(made, full=True)) == (1, [])
