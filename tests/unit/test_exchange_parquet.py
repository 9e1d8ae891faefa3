"""A Parquet export makes the same index again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from exchange_cases import EDGES, RICH, exported, rich_index
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_index import PASSAGES, Counting, Saying, hashes, index_of, open_index, stating

from hippogpu import IndexConfig, Passage, Searcher
from hippogpu.corpus import read_edges
from hippogpu.embed.hashing import HashingEmbedder
from hippogpu.errors import UsageError
from hippogpu.exchange import export_index, import_parquet
from hippogpu.index.logs import log_path
from hippogpu.openie import ExtractionLog
from hippogpu.store import current_manifest, verify
from hippogpu.text import content_key
from hippogpu.types import Record, Triple

# More with HIPPOGPU_EXCHANGES=300.
CORPORA_TRIED = int(os.environ.get("HIPPOGPU_EXCHANGES", "7"))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
STATED = st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=3).map(
    lambda triples: ";".join("|".join(field.replace("|", "/").replace(";", ",") for field in t) for t in triples)
)
CORPORA = st.lists(
    st.tuples(TEXT, STATED, st.dictionaries(TEXT, st.none() | st.floats(allow_nan=False) | TEXT)), max_size=6
)


@pytest.fixture
def rich(root: Path) -> Path:
    return rich_index(root)


def test_every_file_of_the_index_has_the_hash_it_had(rich: Path, tmp_path: Path) -> None:
    report = import_parquet(tmp_path / "copy.hippo", exported(rich))
    assert hashes(tmp_path / "copy.hippo") == hashes(rich)
    assert report.same == len(hashes(rich))
    assert verify(tmp_path / "copy.hippo", full=True) == []


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_vectors_of_fewer_bytes_come_back_bit_for_bit(kind, root: Path, tmp_path: Path) -> None:
    index_of(root, config=IndexConfig(passage_vectors=kind, phrase_vectors=kind, fact_vectors=kind))
    import_parquet(tmp_path / "copy.hippo", exported(root))
    assert hashes(tmp_path / "copy.hippo") == hashes(root)


def test_cells_of_facts_are_made_anew_and_are_the_same(root: Path, tmp_path: Path) -> None:
    index_of(root, config=IndexConfig(fact_search="ivfpq", fact_vectors="int8"))
    import_parquet(tmp_path / "copy.hippo", exported(root))
    assert hashes(tmp_path / "copy.hippo") == hashes(root)
    assert "fact_codes" in hashes(root)
    assert not (tmp_path / "copy.hippo" / "building").exists()


@given(corpus=CORPORA)
@settings(max_examples=CORPORA_TRIED, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_corpus_comes_back_array_for_array(tmp_path_factory: pytest.TempPathFactory, corpus) -> None:
    folder = tmp_path_factory.mktemp("any")
    passages = [Passage(f"p{number}", title, text, meta) for number, (title, text, meta) in enumerate(corpus)]
    aliases = [passage._replace(id=f"alias of {passage.id}", meta={"n": 1}) for passage in passages[::2]]
    index_of(folder / "one", [*passages, *aliases, stating("last", "a|b|c")])
    export_index(folder / "one", folder / "x.parquet")
    import_parquet(folder / "two", folder / "x.parquet")
    assert hashes(folder / "two") == hashes(folder / "one")


def test_settings_encoder_and_counts_come_back(rich: Path, tmp_path: Path) -> None:
    import_parquet(tmp_path / "copy", exported(rich))
    before, after = current_manifest(rich), current_manifest(tmp_path / "copy")
    assert (after.config, after.encoder, after.counts) == (before.config, before.encoder, before.counts)
    assert (after.diffusion, after.diffusion_state, after.generation) == (before.diffusion, "fresh", 1)


def test_a_later_run_reads_and_encodes_only_what_is_new(rich: Path, tmp_path: Path) -> None:
    import_parquet(tmp_path / "copy", exported(rich))
    extractor, embedder = Saying(), Counting()
    with open_index(tmp_path / "copy", extractor=extractor, embedder=embedder) as index:
        index.add([*RICH, stating("new", "Ada Lovelace|lived in|London")])
        index.commit()
    assert extractor.seen == ["down", "new"]
    assert "Ada Lovelace|lived in|London" in embedder.texts
    assert not {passage.text for passage in PASSAGES} & set(embedder.texts)


def test_failures_come_back_with_the_number_of_their_tries(root: Path, tmp_path: Path) -> None:
    for _ in range(2):
        index_of(root, extractor=Saying(failing={"p3"}))
    import_parquet(tmp_path / "copy", exported(root))
    extractor = Saying(failing={"p3"})
    report = index_of(tmp_path / "copy", extractor=extractor)
    assert (extractor.seen, len(report.extraction.quarantined)) == (["p3"], 0)
    assert len(index_of(tmp_path / "copy", extractor=extractor).extraction.quarantined) == 1


def test_of_two_successes_the_last_goes_along(made: Path, tmp_path: Path) -> None:
    key, last = content_key(PASSAGES[1].text), Record("p1", (Triple("read", "once", "more"),))
    with ExtractionLog(log_path(made, "saying")) as log:
        log.append(key, last)
        log.append(key, Record("p1", (), error="down"))
    import_parquet(tmp_path / "copy", exported(made))
    with ExtractionLog(log_path(tmp_path / "copy", "saying")) as log:
        assert log.load().records[key] == last


def test_both_indexes_answer_alike(rich: Path, tmp_path: Path) -> None:
    import_parquet(tmp_path / "copy", exported(rich))
    rankings = [
        Searcher.open(root).rank(["Who built the engine?", "notes of Lovelace"], k=7)
        for root in (rich, tmp_path / "copy")
    ]
    hits = [[(hit.passage, hit.score) for ranking in answers for hit in ranking.hits] for answers in rankings]
    assert hits[0] == hits[1]


def test_an_index_without_facts_and_edges_comes_back(root: Path, tmp_path: Path) -> None:
    index_of(root, [Passage("only", "", "Nothing is stated")])
    import_parquet(tmp_path / "copy", exported(root))
    assert hashes(tmp_path / "copy") == hashes(root)


def test_an_index_that_was_not_diffused_comes_back_without(root: Path, tmp_path: Path) -> None:
    with open_index(root) as index:
        index.add(PASSAGES)
        index.commit(diffuse="never")
    assert not (exported(root) / "diffused.parquet").exists()
    import_parquet(tmp_path / "copy", exported(root.rename(tmp_path / "moved")))
    assert (hashes(tmp_path / "copy"), current_manifest(tmp_path / "copy").diffusion) == (
        hashes(tmp_path / "moved"),
        None,
    )


def test_other_programs_read_texts_and_vectors(rich: Path) -> None:
    table = pq.read_table(exported(rich) / "passages.parquet")
    assert table["id"].to_pylist()[:2] == ["p0", "p1"]
    expected = HashingEmbedder(32).encode([f"{RICH[0].title}\n{RICH[0].text}"])[0]
    assert np.array_equal(np.array(table["vector"][0].as_py(), np.float32), expected)


def test_every_id_is_there_with_its_own_metadata(rich: Path) -> None:
    rows = pq.read_table(exported(rich) / "ids.parquet").to_pylist()
    found = {row["id"]: (row["passage"], row["title"], json.loads(row["meta"])) for row in rows}
    assert found["alias"] == (0, "Oliver Badman", {"source": None, "pages": [1, 2.5], "ü": {"a": "b"}})
    assert found["split"] == (0, "", {})


def test_exported_user_edges_are_a_file_that_index_reads(rich: Path) -> None:
    read = read_edges(exported(rich) / "user_edges.parquet")
    assert read.refusals == ()
    assert sorted(edge.weight for edge in read.edges) == sorted(edge.weight for edge in EDGES)


def test_a_lost_log_is_told(root: Path) -> None:
    index_of(root)
    (root / "openie" / "saying.jsonl").unlink()
    report = export_index(root, root.with_suffix(".parquet"))
    assert [note.startswith("The log of 'saying' is not there") for note in report.notes] == [True]


def test_a_folder_that_is_there_is_not_imported_into(made: Path, tmp_path: Path) -> None:
    source = exported(made)
    (tmp_path / "empty").mkdir()
    for there in (made, tmp_path / "empty"):
        with pytest.raises(UsageError, match="a new folder only"):
            import_parquet(there, source)


def test_an_index_of_format_1_comes_back_in_todays_with_the_same_arrays(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "formats" / "format-1", tmp_path / "old.hippo")
    import_parquet(tmp_path / "new.hippo", exported(tmp_path / "old.hippo"))
    old, new = hashes(tmp_path / "old.hippo"), hashes(tmp_path / "new.hippo")
    assert {role for role in old if old[role] != new[role]} == {"ids", "passages"}
    assert verify(tmp_path / "new.hippo", full=True) == []
